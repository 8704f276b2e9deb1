"""Messages of a conversation as text, for people, for a search, and for a summary."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harness.builtin.exchange import Message

NAMES = {"user": "Person", "assistant": "Agent"}


def said(message: Message) -> str:
    """What was said in a message: without calls, and of a result its text."""
    if message["role"] == "assistant":
        return "\n".join(str(part["content"]) for part in message["parts"] if part.get("part_kind") == "text")
    return str(message["text"])


def calls(message: Message) -> list[tuple[str, str]]:
    """(name, arguments as text) of the calls in an answer."""
    if message["role"] != "assistant":
        return []
    named = ((part.get("tool_name"), part.get("args")) for part in message["parts"])
    return [(name, args if isinstance(args, str) else str(args or "")) for name, args in named if name]


def shown(message: Message, most: int) -> str:
    """A message with who said it, of at most about `most` characters for each text in it."""
    if message["role"] == "tool":
        return f"Result of {message['name']}: {_cut(message['text'], most)}"
    rows = [f"{NAMES[message['role']]}: {_cut(said(message), most)}"] if said(message) else []
    rows += [f"Agent calls {name}({_cut(arguments, most)})" for name, arguments in calls(message)]
    return "\n".join(rows)


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[: most // 2]} [… {len(text) - most} characters …] {text[len(text) - most // 2 :]}"
