"""manifest.json: the parts of a prompt, in order; lost objects are restored from prompts with its help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.base import encoding
from harness.base.errors import BrokenFile
from harness.base.record import Json
from harness.state import names, objects
from harness.state.layout import Layout
from harness.state.state import State

Rows = list[dict[str, Json]]


def rendered(layout: Layout, parts: Iterable[tuple[bytes, str]]) -> bytes:
    """The bytes of manifest.json for these parts, (bytes, source); those with a source are stored as objects."""
    rows = [
        {"object": objects.put(layout, data), "bytes": len(data), "source": layout.folders.relative(source)}
        if source
        else {"text": data.decode()}
        for data, source in parts
    ]
    return encoding.dump_json(rows)


def lost(layout: Layout) -> list[str]:
    """The names of objects that a prompt uses but are missing, and of objects whose digest is not their name. Reads
    every object."""
    right, wrong = objects.look(layout)
    wanted = {name for run_id in State(layout).list(names.RUNS) for name in _objects(_rows(layout, run_id))}
    return sorted({*wrong, *(wanted - right)})


def restore(layout: Layout) -> tuple[int, list[str]]:
    """Restore lost objects from prompts and from the present managed files: (how many, names of those found nowhere). A
    kill at any point is safe: the next start begins again."""
    objects.begin_restoring(layout)
    gone = set(lost(layout))
    count = len(gone)
    state = State(layout)
    for name in names.MANAGED:  # recovery restores these after an unconfined run
        data = state.data(name)
        if data is not None and state.is_ours(name, data):
            gone.discard(objects.put(layout, data))
    for run_id in state.list(names.RUNS) if gone else ():
        rows = _rows(layout, run_id)
        if not gone.isdisjoint(_objects(rows)):
            for name, data in _pieces(rows, _prompt(layout, run_id)):
                if name in gone and encoding.digest(data) == name:
                    gone.discard(objects.put(layout, data))
    objects.end_restoring(layout)
    return count - len(gone), sorted(gone)


def _prompt(layout: Layout, run_id: str) -> bytes:
    try:
        return State(layout).data(names.of_run(run_id, names.PROMPT)) or b""
    except BrokenFile:  # not a regular file
        return b""


def _rows(layout: Layout, run_id: str) -> Rows:
    """The rows of a run's manifest; [] if it is absent or unreadable."""
    try:
        found = State(layout).json(names.of_run(run_id, names.MANIFEST))
    except BrokenFile:  # a digest of the run covers it, and is reported elsewhere
        return []
    whole = isinstance(found, list) and all(isinstance(row, dict) for row in found)
    return found if whole and found else []


def _objects(rows: Rows) -> list[str]:
    return [name for row in rows if isinstance(name := row.get("object"), str)]


def _pieces(rows: Rows, prompt: bytes) -> Iterator[tuple[str, bytes]]:
    """(object, its bytes in the prompt), up to the first part of unknown length."""
    at = 0
    for number, row in enumerate(rows):
        text, name = row.get("text"), row.get("object")
        if isinstance(text, str):
            at += len(text.encode())
            continue
        length = row.get("bytes")
        if not isinstance(length, int) and isinstance(name, str):
            after = rows[number + 1].get("text", "") if number + 1 < len(rows) else ""
            length = _length(name, prompt, at, after.encode() if isinstance(after, str) else b"")
        if not isinstance(length, int) or not isinstance(name, str) or length < 0:
            return
        yield name, prompt[at : at + length]
        at += length


def _length(name: str, prompt: bytes, at: int, after: bytes) -> int:
    """The length of an object in a prompt whose older manifest lacks it, found by the text after it and checked by
    digest; -1 if it is not there."""
    end = prompt.find(after, at) if after else len(prompt)
    while end >= 0:
        if encoding.digest(prompt[at:end]) == name:
            return end - at
        end = prompt.find(after, end + 1) if after else -1
    return -1
