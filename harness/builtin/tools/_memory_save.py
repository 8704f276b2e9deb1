"""memory_save: a line that later conversations shall know; in a run the verb `note`, elsewhere a line of a memory file."""

from __future__ import annotations

import os
from typing import Any

from harness.base import clock, redaction
from harness.builtin.tools import _mission_tools
from harness.builtin.tools.tool import NOTES, WRITES, Tool, ToolResult, ToolSession
from harness.builtin.tools.tool_results import failed
from harness.memory import gates
from harness.state import files, raw
from harness.state.folder_lock import FolderLock

HEAD = "# Memory\n\n"


def memory_save(bench: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    """Carry a call out. Outside a run the gates of memory stand before the file, since nobody compacts it later."""
    if bench.layout is not None and bench.run_id:
        return _mission_tools.note(bench, arguments)
    text = raw.checked("-", arguments["text"], in_run=False)
    if why := gates.gated(text):
        return failed(f"It is not kept: it has, or looks like, {why}. Say the fact in plain words, without it.")
    row = f"- [{clock.stamp(clock.now())[:10]}] {redaction.mask(text)}\n"
    folder = os.path.dirname(bench.memory)
    files.make_folder(folder)
    lock = FolderLock(folder)
    lock.take(wait=True)
    try:
        new = files.length(bench.memory) == 0
        files.add_line(bench.memory, ((HEAD if new else "") + row).encode())
    finally:
        lock.release()
    return ToolResult(text="Kept.")


TOOL = Tool(
    name="memory_save",
    description="Keep one line for later conversations: a fact, a decision, a wish of the user.",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    effects=WRITES,
    run=memory_save,
    needs=NOTES,
    about="text",
)
