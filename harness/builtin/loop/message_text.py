"""Messages of a conversation as text, for people, for a search, and for a summary; and how many tokens they take, about."""

from __future__ import annotations

from harness.base import encoding
from harness.base.tokens import estimated
from harness.builtin.loop.exchange import AS_TEXT, Answer, Message, Request
from harness.mission.usage import Usage

NAMES = {"user": "Person", "assistant": "Agent"}
WHOLE = 10**9  # characters: more than any message has
FRAME = 5  # tokens of a message besides its text


def said(message: Message) -> str:
    """The texts of a message without its calls; of a result its text."""
    if message["role"] == "assistant":
        if any(part.get(AS_TEXT) for part in message["parts"]):  # its text is its calls
            return ""
        return "\n".join(str(part["content"]) for part in message["parts"] if part.get("part_kind") == "text")
    return str(message["text"])


def calls(message: Message) -> list[tuple[str, str]]:
    """(name, arguments as text) of the calls in an answer."""
    if message["role"] != "assistant":
        return []
    named = ((part.get("tool_name"), part.get("args")) for part in message["parts"])
    return [(name, args if isinstance(args, str) else str(args or "")) for name, args in named if name]


def shown(message: Message, most: int) -> str:
    """A message with its author, of about `most` characters at most for each text in it."""
    if message["role"] == "tool":
        return f"Result of {message['name']}: {_cut(message['text'], most)}"
    rows = [f"{NAMES[message['role']]}: {_cut(said(message), most)}"] if said(message) else []
    rows += [f"Agent calls {name}({_cut(arguments, most)})" for name, arguments in calls(message)]
    return "\n".join(rows)


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[: most // 2]} [… {len(text) - most} characters …] {text[len(text) - most // 2 :]}"


def tokens(message: Message) -> int:
    """About how many tokens a message takes in a request."""
    return estimated(shown(message, WHOLE)) + FRAME


def estimate(request: Request, answer: str) -> Usage:
    """The usage of a request and of this much of its answer, where the vendor's count of them is missing."""
    sent = estimated(request.system) + estimated(encoding.compact(request.tools)) + sum(map(tokens, request.messages))
    got = estimated(answer)
    return Usage(model=model_of(request.parameters), input=sent, output=got, estimated=sent + got)


def counted(request: Request, answer: Answer) -> Answer:
    """The answer, with an estimate of its usage where its vendor counted nothing."""
    if answer.usage.tokens:
        return answer
    made = estimate(request, shown(answer.message, WHOLE))
    counts = {name: getattr(made, name) for name in ("input", "output", "estimated")}
    return answer.replace(usage=answer.usage.replace(**counts))


def model_of(parameters: dict[str, str]) -> str:
    """The name of the model of some parameters, without its vendor."""
    return parameters["model"].partition(":")[2]
