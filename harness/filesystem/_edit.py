"""Replaces bytes in a file's content: each old text must occur exactly once, unless `everywhere`, or nothing changes.

All other bytes stay as they are; `line_ends` says what a line end in a text stands for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.base.record import Record
from harness.filesystem import line_ends
from harness.filesystem.protocol import FileFault, Replacement

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
        text = f"The old and the new text are the same{which}: nothing to do."
        return FileFault(kind="invalid", path=path, text=text)
    found = line_ends.find_text(data, change.old)
    if not found:
        text = f"The text to replace is not in {path}{which}. Read the file again and copy it exactly, spaces included."
        return FileFault(kind="not_found", path=path, text=text)
    if len(found) > 1 and not change.everywhere:
        text = f"The text to replace is {len(found)} times in {path}, on {_lines(data, found)}{which}."
        remedy = "Give more of the surrounding text, or replace everywhere."
        return FileFault(kind="not_unique", path=path, text=f"{text} {remedy}")
    return EditResult(
        data=line_ends.replace_matches(data, found, line_ends.like_most(data, change.new)), count=len(found)
    )


def _lines(data: bytes, found: Sequence[re.Match[bytes]]) -> str:
    """The lines of the first matches, for a message."""
    lines = [data.count(b"\n", 0, match.start()) + 1 for match in found[:MAX_SHOWN_LINES]]
    return "lines " + ", ".join(map(str, lines)) + (" …" if len(found) > MAX_SHOWN_LINES else "")
