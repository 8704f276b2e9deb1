"""todo_write: the to-do list, kept with the conversation; each call replaces the whole list."""

from __future__ import annotations

from typing import Any

from harness.builtin.tools.tool import READS, TALK, Tool, ToolResult, ToolSession
from harness.builtin.tools.tool_results import failed

KEY = "todo"
MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}
MOST, LONGEST = 100, 500


def _todo_write(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    todos = [{"content": one["content"].strip(), "status": one["status"]} for one in arguments["todos"]]
    wrong = _fault(todos)
    if wrong:
        return failed(f"{wrong} The list was not changed.")
    session.state[KEY] = todos
    return ToolResult(text=shown(session) or "The todo list is empty.")


def shown(session: ToolSession) -> str:
    """The list as the model sees it, "" for none; for a prompt, too."""
    return "\n".join(f"{MARKS[one['status']]} {one['content']}" for one in session.state.get(KEY, []))


def _fault(todos: list[dict[str, str]]) -> str:
    if len(todos) > MOST:
        return f"A list has at most {MOST} items; this one has {len(todos)}."
    contents = [one["content"] for one in todos]
    if not all(contents):
        return f"Item {contents.index('') + 1} has no content."
    long = next((index for index, text in enumerate(contents, start=1) if len(text) > LONGEST), 0)
    if long:
        return f"Item {long} has {len(contents[long - 1])} characters; at most {LONGEST} are kept."
    if sum(one["status"] == "in_progress" for one in todos) > 1:
        return "Only one item may be in_progress at a time."
    return ""


TOOL = Tool(
    name="todo_write",
    description=(
        "Keep a list of what is to do in work of several steps. Each call gives the whole list; at most one item is in_progress."
    ),
    parameters={
        "type": "object",
        "properties": {
            "todos": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "content": {"type": "string"},
                        "status": {"type": "string", "enum": list(MARKS)},
                    },
                    "required": ["content", "status"],
                },
            }
        },
        "required": ["todos"],
    },
    effects=READS,
    needs=TALK,
    run=_todo_write,
)
