"""From one on-disk format to the next: a list of small functions, each carried out in one journal, so whole or not at all.

Everything else reads the newest format alone. What is sealed (the folders of finished runs) stays as it is, byte for byte:
its readers accept that a field which came later is absent.
"""

from __future__ import annotations

import json
import os

from harness.base.errors import RESTORE, BrokenFile
from harness.store import files, journal
from harness.store.journal import Journal
from harness.store.layout import Layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FORMAT = 2
NOTES_1 = {  # kind of a note in format 1 -> the field that takes its `ids`; None where it carries nothing
    "needs": "features",
    "dispute": "claims",
    "cut": "run",
    **dict.fromkeys(("reason", "retry", "person"), ""),
    **dict.fromkeys(("judged", "aimed", "replanned")),
}


def number(layout: Layout) -> int:
    """The format of the mission in this folder; 0 where there is none, or where the file says no number."""
    try:
        said = (files.read(layout.format) or b"").strip()
    except BrokenFile:
        return 0
    return int(said) if said.isdigit() and len(said) < len("1000000") else 0


def is_due(layout: Layout) -> bool:
    """Whether the mission is of an older format, so that the next start migrates it."""
    return 0 < number(layout) < FORMAT


def migrate(layout: Layout) -> None:
    """Bring an older mission to FORMAT; raises BrokenFile where it is not what its format says, with all as it was.

    The caller holds the mission lock, and has put back what runs that died have changed."""
    while is_due(layout):
        old, changes = number(layout), Journal(layout)
        STEPS[old](layout, changes)
        changes.replace(layout.format, f"{old + 1}\n".encode())
        _tell_dead_runs(layout, changes)
        for name in files.names(layout.cache):
            changes.remove(os.path.join(layout.cache, name))
        changes.commit()


def _tell_dead_runs(layout: Layout, changes: Journal) -> None:
    """The lock of a run that died says how the state was when it opened, and recovery may be cut short and go by it again:
    what is migrated is no tampering."""
    written = list(changes.contents.items())
    for name in files.names(layout.locks):
        path = os.path.join(layout.locks, name)
        held = files.Lock(path).holder() if name.startswith("run-") and files.is_free(path) else {}
        if isinstance(held.get("live"), dict):
            for changed, data in written:
                journal.note_in_ledger(layout, held["live"], changed, data)
            changes.replace(path, files.dump_json(held))


def _to_2(layout: Layout, changes: Journal) -> None:
    """A note carries what its kind says, and what a person answered is no run: it has a file of its own."""
    queue = files.read_json(layout.features)
    if queue is not None:
        changes.replace(layout.features, _queue_2(layout, queue))
    data = files.read(layout.books) or b""
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
        changes.replace(layout.books, b"".join(kept))
    if answers:
        changes.replace(layout.answers, b"".join(map(files.dump_json, answers)))


def _queue_2(layout: Layout, queue: Any) -> bytes:
    rows = queue.get("features") if isinstance(queue, dict) else None
    if not isinstance(rows, list):
        raise BrokenFile(layout.features, 'not an object {"features": […]}', line=1, remedy=RESTORE)
    made = []
    for number, row in enumerate(rows, start=2):
        try:
            made.append({**row, "notes": [_note_2(note) for note in row["notes"]]})
        except (KeyError, TypeError, AttributeError):
            fault, remedy = "the line is no feature of format 1", f"Mend that feature. {RESTORE}"
            raise BrokenFile(layout.features, fault, line=number, remedy=remedy) from None
    return b'{"features":[\n' + b",\n".join(files.dump_json(row).rstrip() for row in made) + b"\n]}\n"


def _note_2(note: dict[str, Any]) -> dict[str, Any]:
    name = NOTES_1[note["kind"]]
    made = {key: note[key] for key in ("at", "by", "kind", *(["text"] if name is not None else []))}
    if name:
        made[name] = note["ids"] if name != "run" else (note["ids"] or [note["by"]])[0]
    return made


def _object(line: bytes) -> dict[str, Any]:
    """The object in a line; an empty one where it holds none."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}


STEPS: dict[int, Callable[[Layout, Journal], None]] = {1: _to_2}
