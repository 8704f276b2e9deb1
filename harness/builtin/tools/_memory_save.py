"""memory_save: a line that later conversations shall know; in a run the verb `note`, elsewhere a line of the user's memory."""

from __future__ import annotations

from typing import Any

from harness.base import clock, redaction
from harness.base.errors import VersionConflict
from harness.builtin.tools import _mission_tools
from harness.builtin.tools.tool import NOTES, WRITES, Tool, ToolResult, ToolSession
from harness.builtin.tools.tool_results import failed
from harness.memory import gates
from harness.state import raw
from harness.stores.store import ABSENT, StoreKey

HEAD = "# Memory\n\n"


def memory_save(bench: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    """Carry a call out. Outside a run the gates of memory stand before the text, since nobody compacts it later."""
    if bench.layout is not None and bench.run_id:
        return _mission_tools.note(bench, arguments)
    text = raw.checked("-", arguments["text"], in_run=False)
    if why := gates.gated(text):
        return failed(f"It is not kept: it has, or looks like, {why}. Say the fact in plain words, without it.")
    assert bench.memory is not None, "else the tool is not offered"
    _add(bench.memory, f"- [{clock.stamp(clock.now())[:10]}] {redaction.mask(text)}\n".encode())
    return ToolResult(text="Kept.")


def _add(at: StoreKey, row: bytes) -> None:
    """Put the row behind what is there, whoever else writes."""
    while True:
        known = at.store.get(at.key)
        text = known.data if known and known.data else HEAD.encode()
        try:
            at.store.put(at.key, text + b"\n" * (not text.endswith(b"\n")) + row, known.version if known else ABSENT)
        except VersionConflict:
            continue
        return


TOOL = Tool(
    name="memory_save",
    description="Keep one line for later conversations: a fact, a decision, a wish of the user.",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    effects=WRITES,
    run=memory_save,
    needs=NOTES,
    about="text",
)
