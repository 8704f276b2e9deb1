"""Migrates a mission from one on-disk format to the next, each step through one journal, so atomically.

All other code reads only the newest format. The folders of finished runs have a run digest and never change: their
readers accept that a newer field is absent.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from harness.base.errors import RESTORE, BrokenFile
from harness.state import files, json_lines, names
from harness.state.journal import Journal
from harness.state.layout import Layout

FORMAT = 2
NOTES_1 = {  # kind of a note in format 1 -> the field that takes its `ids`; None if it has no more fields
    "needs": "features",
    "dispute": "claims",
    "cut": "run",
    **dict.fromkeys(("reason", "retry", "person"), ""),
    **dict.fromkeys(("judged", "aimed", "replanned")),
}


def number(layout: Layout) -> int:
    """The format number of the mission in this folder; 0 without a mission or a number."""
    try:
        text = (files.read(layout.path(names.FORMAT)) or b"").strip()
    except BrokenFile:
        return 0
    return int(text) if text.isdigit() and len(text) < len("1000000") else 0


def is_due(layout: Layout) -> bool:
    """Whether the mission has an older format, so that the next start migrates it."""
    return 0 < number(layout) < FORMAT


def migrate(layout: Layout) -> None:
    """Migrate an older mission to FORMAT; raises BrokenFile, and changes nothing, if a file does not match its format.
    The caller holds the mission lock and has reverted the changes of dead runs."""
    while is_due(layout):
        old, changes = number(layout), Journal(layout)
        STEPS[old](layout, changes)
        changes.replace(layout.path(names.FORMAT), f"{old + 1}\n".encode())
        for name in files.names(layout.cache):
            changes.remove(os.path.join(layout.cache, name))
        changes.commit()


def _to_2(layout: Layout, changes: Journal) -> None:
    """Format 2: a note has the fields of its kind, and a person's answer moves from the run log to a file of its own."""
    queue = files.read_json(layout.path(names.FEATURES))
    if queue is not None:
        changes.replace(layout.path(names.FEATURES), queue_2(layout.path(names.FEATURES), queue))
    data = files.read(layout.path(names.RUN_LOG)) or b""
    kept, answers, newest = [], [], ""
    *lines, torn = data.split(b"\n")
    for line in [*lines, *([torn] if _object(torn) else [])]:
        row = _object(line)
        if row.get("role") == "person" and row.get("run") == "-":
            answers.append({"at": row.get("at"), "by": "person", "text": row.get("reason"), "after": newest})
        else:
            kept.append(line + b"\n")
            newest = row.get("run", newest)
    if b"".join(kept) != data:
        changes.replace(layout.path(names.RUN_LOG), b"".join(kept))
    if answers:
        changes.replace(layout.path(names.ANSWERS), b"".join(map(files.dump_json, answers)))


def queue_2(path: str, queue: Any) -> bytes:
    """Convert the format 1 value of features.json to the bytes of format 2; raises BrokenFile, with this path, if it is
    invalid."""
    rows = queue.get("features") if isinstance(queue, dict) else None
    if not isinstance(rows, list):
        raise BrokenFile(path, 'not an object {"features": […]}', line=1, remedy=RESTORE)
    made = []
    for number, row in enumerate(rows, start=2):
        try:
            made.append({**row, "notes": [_note_2(note) for note in row["notes"]]})
        except (KeyError, TypeError, AttributeError):
            fault, remedy = "the line is not a feature of format 1", f"Correct that feature. {RESTORE}"
            raise BrokenFile(path, fault, line=number, remedy=remedy) from None
    return b'{"features":[\n' + b",\n".join(files.dump_json(row).rstrip() for row in made) + b"\n]}\n"


def _note_2(note: dict[str, Any]) -> dict[str, Any]:
    name = NOTES_1[note["kind"]]
    made = {key: note[key] for key in ("at", "by", "kind", *(["text"] if name is not None else []))}
    if name:
        made[name] = note["ids"] if name != "run" else (note["ids"] or [note["by"]])[0]
    return made


def _object(line: bytes) -> dict[str, Any]:
    """The object in a line; {} if there is none."""
    try:
        row = json_lines.value(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


STEPS: dict[int, Callable[[Layout, Journal], None]] = {1: _to_2}
