"""Replaces bytes in a file's content: each old text must occur exactly once, unless `everywhere`, or nothing changes.

All other bytes stay as they are. A model writes `\\n` for any line end: a text that is not found as written is searched
with `\\r\\n`, and in a file with only such line ends, new text gets them too.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.base.record import Record
from harness.filesystem.protocol import FileFault, Replacement

LF, CRLF = b"\n", b"\r\n"
MAX_SHOWN_LINES = 5  # lines that a fault names


class EditResult(Record):
    """The new content, and the number of replacements."""

    data: bytes
    count: int


def apply(data: bytes, changes: Sequence[Replacement], path: str) -> EditResult | FileFault:
    """The content after all changes, applied in order; or the FileFault of the first that fails."""
    if not changes:
        return FileFault(kind="invalid", path=path, text=f"No change of {path} was given.")
    count = 0
    for number, change in enumerate(changes, start=1):
        which = f" (change {number} of {len(changes)}; none was made)" if len(changes) > 1 else ""
        made = _one(data, change, path, which)
        if isinstance(made, FileFault):
            return made
        data, count = made.data, count + made.count
    return EditResult(data=data, count=count)


def _one(data: bytes, change: Replacement, path: str, which: str) -> EditResult | FileFault:
    """The content with one change."""
    if not change.old:
        text = f"The text to replace in {path} is empty{which}. Give the text that is there, or write the whole file."
        return FileFault(kind="invalid", path=path, text=text)
    if change.old == change.new:
        return FileFault(
            kind="invalid", path=path, text=f"The old and the new text are the same{which}: nothing to do."
        )
    old, new = _as_in(data, change)
    count = data.count(old)
    if not count:
        text = f"The text to replace is not in {path}{which}. Read the file again and copy it exactly, spaces included."
        return FileFault(kind="not_found", path=path, text=text)
    if count > 1 and not change.everywhere:
        text = f"The text to replace is {count} times in {path}, on {_lines(data, old)}{which}. "
        return FileFault(
            kind="not_unique", path=path, text=text + "Give more of what is around it, or replace everywhere."
        )
    return EditResult(data=data.replace(old, new), count=count)


def _as_in(data: bytes, change: Replacement) -> tuple[bytes, bytes]:
    """The old and new text with the line ends of the content."""
    old, new = change.old, change.new
    if old not in data and LF in old and CRLF in data:
        old = _with_crlf(old)
    lines = data.count(LF)
    if lines and lines == data.count(CRLF):
        new = _with_crlf(new)
    return old, new


def _with_crlf(text: bytes) -> bytes:
    return text.replace(CRLF, LF).replace(LF, CRLF)


def _lines(data: bytes, old: bytes) -> str:
    """The lines of the first occurrences, for a message."""
    found, at = list[int](), data.find(old)
    while at >= 0 and len(found) <= MAX_SHOWN_LINES:
        found.append(data.count(LF, 0, at) + 1)
        at = data.find(old, at + len(old))
    return "lines " + ", ".join(map(str, found[:MAX_SHOWN_LINES])) + (" …" if len(found) > MAX_SHOWN_LINES else "")
