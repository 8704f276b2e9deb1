"""How results of tools are put: failures with a remedy, sizes and counts in words, text that may be long."""

from __future__ import annotations

import posixpath

from harness.builtin.tools._arguments import nearest
from harness.builtin.tools.tool import ToolResult, ToolSession
from harness.filesystem.protocol import FileEntry, FileFault, Listing

REMEDIES = {
    "is_folder": "list_files shows what is in it.",
    "not_folder": "read_file reads a file, list_files lists a folder.",
    "changed": "Read it again with read_file, then decide anew.",
    "outside": "Give a path relative to the root, without leaving it.",
}


def failed(text: str) -> ToolResult:
    """A call that was not carried out; the text says what to do."""
    return ToolResult(text=text, failed=True)


def fault(session: ToolSession, found: FileFault) -> ToolResult:
    """A fault of the filesystem, with the nearest path that there is, or the tool that helps."""
    text = found.text if found.text.endswith((".", "?", "!")) else found.text + "."
    if found.kind == "missing":
        near = _near(session, found.path)
        return failed(f"{text} {f'Did you mean {near}?' if near else 'glob_files finds files by name.'}")
    return failed(f"{text} {REMEDIES.get(found.kind, '')}".strip())


def _near(session: ToolSession, path: str) -> str:
    """A path beside this one whose name is most like it."""
    folder, name = posixpath.split(path.rstrip("/"))
    listed = session.files.ls(folder or ".")
    if not isinstance(listed, Listing):
        return ""
    names = {posixpath.basename(entry.path): entry.path for entry in listed.entries}
    return names.get(nearest(name, names), "")


def counted(number: int, noun: str, several: str = "") -> str:
    """`1 line`, `1,234 lines`."""
    return f"{number:,} {noun if number == 1 else several or noun + 's'}"


def size(number: int) -> str:
    """Bytes in words."""
    return counted(number, "byte")


def cut(text: str, most: int) -> str:
    """The text, or so many characters of it and a sign that there are more."""
    return text if len(text) <= most else f"{text[:most]}…"


def row(entry: FileEntry) -> str:
    """An entry of a listing on one line."""
    if entry.kind == "folder":
        return f"{entry.path}/"
    return f"{entry.path}  ({size(entry.size) if entry.kind == 'file' else entry.kind})"


def left_out(more: int, noun: str, hint: str) -> str:
    """The last line of a list that was cut; "" for one that is whole."""
    if not more:
        return ""
    return f"\n\n[{'More' if more < 0 else f'{more:,} more'} {noun} left out. {hint}]"
