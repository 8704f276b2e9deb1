"""write_file and edit_file: a file is changed only as the model saw it last, all of the changes or none."""

from __future__ import annotations

import re
from typing import Any

from harness.base.encoding import digest
from harness.builtin.tools import _closest_text, _read_digests, read_files, text_diff, tool_results
from harness.builtin.tools.tool import WRITES, Tool, ToolResult, ToolSession
from harness.builtin.tools.tool_results import counted, failed
from harness.filesystem import line_ends, transfer
from harness.filesystem.protocol import FileContent, FileFault, Replacement

AROUND, MOST_SHOWN, LONGEST_SHOWN = 2, 40, 200
ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")


class _Unfit(ValueError):
    """An edit that cannot be applied, in words."""


def _write_file(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    path, data = arguments["path"], _bytes(arguments["content"])
    before = _before(session, path) if transfer.exists(session.files, path) else None
    if isinstance(before, ToolResult):
        return before
    data = line_ends.like_file(before.data, data) if before else data
    made = session.files.write(path, data, create=before is None, expect=before.digest if before else "")
    if isinstance(made, FileFault):
        return _refused(session, made, path)
    _read_digests.remember(session, path, made.digest or digest(data))
    lines = counted(len(read_files.lines_of(data)), "line") if data else "empty"
    return ToolResult(text=f"{'Replaced' if before else 'Created'} {path} ({lines}, {tool_results.size(len(data))}).")


def _edit_file(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    path, edits = arguments["path"], _edits(arguments)
    if isinstance(edits, ToolResult):
        return edits
    before = _before(session, path)
    if isinstance(before, ToolResult):
        return before
    try:
        changes, after, at = _applied(path, before.data, edits)
    except _Unfit as unfit:
        return failed(str(unfit))
    made = session.files.edit(path, changes, expect=before.digest)
    if isinstance(made, FileFault):
        return _refused(session, made, path)
    _read_digests.remember(session, path, made.digest or digest(after))
    return ToolResult(text=f"Edited {path}: {counted(made.count, 'replacement')}.\n{_shown(after, at)}")


def preview(session: ToolSession, arguments: dict[str, Any]) -> str:
    """The diff that a call would make; "" where it would fail."""
    path, found = arguments["path"], transfer.read_whole(session.files, arguments["path"])
    before = None if isinstance(found, FileFault) else found.data
    if "content" in arguments:
        return text_diff.diff(path, before, line_ends.like_file(before or b"", _bytes(arguments["content"])))
    edits = _edits(arguments)
    try:
        return text_diff.diff(path, before, _applied(path, before or b"", edits)[1]) if isinstance(edits, list) else ""
    except _Unfit:
        return ""


def _before(session: ToolSession, path: str) -> FileContent | ToolResult:
    """The content of a file that may be changed now, as the model saw it last; else why not."""
    found = transfer.read_whole(session.files, path)
    if isinstance(found, FileFault):
        return tool_results.fault(session, found)
    why = _read_digests.refusal(session, path, found.digest)
    return failed(why) if why else found


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _refused(session: ToolSession, found: FileFault, path: str) -> ToolResult:
    if found.kind == "changed":
        return failed(_read_digests.CHANGED.format(path=path))
    if found.kind == "exists":
        return failed(_read_digests.UNREAD.format(path=path))
    return tool_results.fault(session, found)


def _edits(arguments: dict[str, Any]) -> list[dict[str, Any]] | ToolResult:
    """The edits of a call: the list, or the one given by itself."""
    listed = arguments.get("edits", [])
    alone = {name: arguments[name] for name in EDIT if name in arguments}
    if listed and alone:
        return failed("Give either old_string and new_string, or edits; not both.")
    if not listed and not alone.keys() >= {"old_string", "new_string"}:
        return failed("Give old_string and new_string, or a list of edits.")
    return listed or [alone]


def _applied(path: str, before: bytes, edits: list[dict[str, Any]]) -> tuple[list[Replacement], bytes, list[int]]:
    """The changes in bytes, the content after them, and the lines of it where they stand; raises _Unfit."""
    changes, data, spans = list[Replacement](), before, list[tuple[int, int]]()
    for number, edit in enumerate(edits, start=1):
        which = f"Edit {number} of {len(edits)} (nothing was written): " if len(edits) > 1 else ""
        change = _change(path, data, edit, which)
        places = line_ends.find_text(data, change.old)
        at, data = places[0].start(), line_ends.replace_matches(data, places, change.new)
        moved = len(change.new) - len(change.old)
        spans = [(start + moved if start > at else start, size) for start, size in spans]
        spans.append((at, len(change.new)))
        changes.append(change)
    lines = {data.count(b"\n", 0, start + offset) for start, size in spans for offset in (0, size)}
    return changes, data, sorted(lines)


def _change(path: str, data: bytes, edit: dict[str, Any], which: str) -> Replacement:
    """One edit as a change of these bytes, in their line ends; raises _Unfit."""
    if not edit["old_string"]:
        raise _Unfit(f"{which}old_string is empty. Give the text to replace; write_file replaces a whole file.")
    if edit["old_string"] == edit["new_string"]:
        raise _Unfit(f"{which}old_string and new_string are the same: there is nothing to change.")
    for old, new in _spellings(data, edit["old_string"], edit["new_string"]):
        found = line_ends.find_text(data, old)
        if len(found) > 1 and not edit.get("replace_all"):
            raise _Unfit(f"{which}{_several(path, data, found)}")
        if found:
            there = {match[0] for match in found}
            return Replacement(
                old=there.pop() if len(there) == 1 else old,
                new=line_ends.like_most(data, new),
                everywhere=bool(edit.get("replace_all")),
            )
    text = read_files.decoded(data.removeprefix(read_files.BOM)).replace("\r\n", "\n")
    raise _Unfit(which + _closest_text.unfound(path, edit["old_string"].replace("\r\n", "\n"), text))


def _spellings(data: bytes, old: str, new: str) -> list[tuple[bytes, bytes]]:
    """The bytes that the two texts may stand for: as given; in a file that is not UTF-8, with the byte for a \\xNN, as read_file
    shows it."""
    given = (_bytes(old), _bytes(new))
    return [given] if read_files.is_utf8(data) else [given, (_unescaped(given[0]), _unescaped(given[1]))]


def _unescaped(text: bytes) -> bytes:
    return ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), text)


def _several(path: str, data: bytes, found: list[re.Match[bytes]]) -> str:
    lines = ", ".join(str(data.count(b"\n", 0, match.start()) + 1) for match in found[:8])
    more = ", …" if len(found) > 8 else ""
    return (
        f"old_string is in {path} {len(found)} times (lines {lines}{more}). Add lines around it until it is unique,"
        " or set replace_all."
    )


def _shown(data: bytes, changed: list[int]) -> str:
    """The lines around the changes (0-based numbers) as read_file shows them."""
    lines = read_files.lines_of(data.removeprefix(read_files.BOM))
    wanted = sorted({n for at in changed for n in range(at - AROUND, at + AROUND + 1) if 0 <= n < len(lines)})
    rows, last = list[str](), -1
    for number in wanted[:MOST_SHOWN]:
        rows += ["     …"] if rows and number > last + 1 else []
        text = read_files.decoded(lines[number].removesuffix(b"\r"))
        rows.append(read_files.numbered(number + 1, text[:LONGEST_SHOWN] + ("…" if len(text) > LONGEST_SHOWN else "")))
        last = number
    return "\n".join(rows)


EDIT = {"old_string": {"type": "string"}, "new_string": {"type": "string"}, "replace_all": {"type": "boolean"}}
WRITE_TOOL = Tool(
    name="write_file",
    about="path",
    description=(
        "Create a file, with its folders, or replace a whole file. An existing file must have been read before,"
        " and not changed since."
    ),
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
    },
    effects=WRITES,
    run=_write_file,
    preview=preview,
)
EDIT_TOOL = Tool(
    name="edit_file",
    about="path",
    description=(
        "Replace text in a file that you have read: old_string exactly as it stands there, without line numbers, is replaced by"
        " new_string. It must be there once, unless replace_all. `edits` makes several, in order, all or none."
    ),
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            **EDIT,
            "edits": {
                "type": "array",
                "items": {"type": "object", "properties": EDIT, "required": ["old_string", "new_string"]},
            },
        },
        "required": ["path"],
    },
    effects=WRITES,
    run=_edit_file,
    preview=preview,
)
