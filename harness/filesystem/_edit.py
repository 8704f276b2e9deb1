"""Replaces bytes in the content of a file: each text is there exactly once, unless everywhere is asked for, or nothing changes.

What is not replaced stays byte for byte. A model writes `\\n` for the end of a line whatever the file has: a text that is not
there as it was written is looked for with `\\r\\n`, and in a file all of whose lines end so, what is put in ends so too.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.base.record import Record
from harness.filesystem.protocol import FileFault, Replacement

LF, CRLF = b"\n", b"\r\n"
MAX_SHOWN_LINES = 5  # lines that a fault names


class EditResult(Record):
    """New content, and how many places were replaced."""

    data: bytes
    count: int


def apply(data: bytes, changes: Sequence[Replacement], path: str) -> EditResult | FileFault:
    """The content with all of the changes, each made in what those before it left; or the Fault of the first that cannot be."""
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
    """The old and the new text with the line ends of the content."""
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
    """Which lines the first places are on."""
    found, at = list[int](), data.find(old)
    while at >= 0 and len(found) <= MAX_SHOWN_LINES:
        found.append(data.count(LF, 0, at) + 1)
        at = data.find(old, at + len(old))
    return "lines " + ", ".join(map(str, found[:MAX_SHOWN_LINES])) + (" …" if len(found) > MAX_SHOWN_LINES else "")
