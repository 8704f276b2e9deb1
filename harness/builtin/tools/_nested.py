"""The nearest AGENTS.md of a folder, added to the first result about a file below that folder, once in a conversation."""

from __future__ import annotations

from typing import Any

from harness.base.errors import HarnessError
from harness.base.tokens import estimated
from harness.builtin.tools._read_digests import key
from harness.builtin.tools.tool import ToolResult, ToolSession
from harness.workspace import places, snapshot

TOOLS = ("read_file", "edit_file", "write_file")
KEY = "nested"  # {path: tokens} of those that were added
ADDED = "{result}\n\n[Instructions for the files below {folder}, from {path}:]\n{text}"


def added(session: ToolSession, tool: str, arguments: dict[str, Any], result: ToolResult) -> ToolResult:
    """The result of a call, with the instructions for its file that the conversation has not had yet."""
    given, home = session.workspace, session.home
    if tool not in TOOLS or result.failed or given is None or home is None or not session.in_project:
        return result
    file = key(arguments["path"])
    path = places.nearest(given.nested, file)
    known = session.state.get(KEY, {})
    if not path or path in known:
        return result
    try:
        text = "" if file == path else snapshot.nested_text(home, given, path, given.room - sum(known.values()))
    except (HarnessError, OSError) as fault:  # the call was carried out
        text = f"({path} cannot be read: {fault})\n"
    session.state[KEY] = {**known, path: estimated(text)}
    folder = path.removesuffix(places.INSTRUCTIONS)
    words = ADDED.format(result=result.text, folder=folder, path=path, text=text)
    return result.replace(text=words) if text else result
