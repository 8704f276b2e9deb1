"""The difference of two contents of a file, as people read it."""

from __future__ import annotations

import difflib

MOST_LINES = 200


def diff(path: str, before: bytes | None, after: bytes | None) -> str:
    """A unified diff of at most about 200 lines; None for a file that is not there. "" where nothing differs."""
    if before == after:
        return ""
    if any(b"\0" in data for data in (before, after) if data):
        return f"{path}: binary, {len(before or b'')} bytes before and {len(after or b'')} after"
    old, new = ((data or b"").decode("utf-8", "backslashreplace").splitlines() for data in (before, after))
    names = [path if data is not None else "/dev/null" for data in (before, after)]
    rows = [*difflib.unified_diff(old, new, names[0], names[1], lineterm="")]
    cut = [f"… {len(rows) - MOST_LINES} lines more"] if len(rows) > MOST_LINES else []
    return "\n".join([*rows[:MOST_LINES], *cut])
