"""memory_save: keeps a line for later conversations in the user's memory; in a run `note` does."""

from __future__ import annotations

from typing import Any

from harness.builtin.tools.tool import NOTES, WRITES, Tool, ToolResult, ToolSession
from harness.builtin.tools.tool_results import failed
from harness.memory import user_memory
from harness.state import raw


def _memory_save(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    """A line of the memory, which is curated at once."""
    text = raw.checked("-", arguments["text"], in_run=False)
    assert session.memory is not None, "else the tool is not offered"
    if why := user_memory.remember(session.memory, [text])[0]:
        return failed(f"It is not kept: it has, or looks like, {why}. Say the fact in plain words, without it.")
    return ToolResult(text="Kept.")


TOOL = Tool(
    name="memory_save",
    description="Keep one line for later conversations: a fact, a decision, a wish of the user.",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    effects=WRITES,
    run=_memory_save,
    needs=NOTES,
    about="text",
)
