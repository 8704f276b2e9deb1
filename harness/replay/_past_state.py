"""The past state of a mission, before a run or at a snapshot, from digests, lengths and objects.

A managed file is the object of its digest. An append-only file is a prefix of the present file, or of its copy in the snapshot
that a restore made before it truncated the file. So is raw.md until a curation truncates it; later its lines come from the
archive, where some are masked. Unrecorded files are reported, and never count as absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness.base import encoding, schema
from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.base.schema import Whole
from harness.memory import archive, pages
from harness.memory.archive import ArchiveEntry
from harness.mission import runs
from harness.state import json_lines, names, objects
from harness.state.layout import Layout, command
from harness.state.state import State

MASKED = "its lines come from the archive, where some are masked"
SHORTER = "the file is now shorter than it was"
EVERY = (*names.MANAGED, *names.APPEND_ONLY, names.RAW)
PUT_BACK = (names.SPEC, names.FEATURES, names.CONTRACT, names.SUMMARY, names.MEMORY, names.CURATED, names.LESSONS)
# A restore truncates these and keeps a copy; the others only grow.
CUT_BACK = (names.CONTRACT_LOG, names.ISSUES, names.ARCHIVE, names.RAW)


class RestoreRow(Record):
    """A line of restores.jsonl: the restored snapshot `to`, the snapshot `kept` of the state before, the new branch with its
    commit, and the length of the run log, in bytes, at that moment."""

    at: str
    by: str
    to: str
    kept: str
    branch: str
    commit: str
    log: Whole


class PastState(Record):
    """The state at a moment: {name below .harness: bytes} of managed files, append-only files and raw.md, without absent ones.
    `unknown`: {name: why its bytes are not recorded}; `inexact`: {name: how its bytes differ}; `commit`: the position of the
    mission."""

    at: str
    commit: str
    files: dict[str, bytes]
    unknown: dict[str, str]
    inexact: dict[str, str]

    def known(self, name: str) -> bytes | None:
        """The bytes of a file, None if it was absent; raises BrokenFile if they are not recorded."""
        if name in self.unknown:
            raise BrokenFile(name, f"its past content is not recorded: {self.unknown[name]}", remedy=_look())
        return self.files.get(name)


def _look() -> str:
    return f"See: {command('doctor')}"


def at(layout: Layout, run_id: str, only: Iterable[str] = EVERY) -> PastState:
    """The state, or `only` these files, at the start of a run; the feature of a worker is not yet in progress.
    Raises UsageFault if the run does not exist, BrokenFile if its context.json is broken."""
    context = runs.context(layout, run_id)
    marks = {name: (str(row[0]), int(row[1])) for name, row in context.live.items()}
    log = marks.get(names.RUN_LOG, ("", 0))[1]
    era = next((one for one in restores(layout) if one.log > log), None)
    return resolve(StateSource(layout, era), StateRecord(context.at, context.head, marks, context.raw), only)


class StateRecord:
    """The recorded state at a moment: (digest, "" for an append-only file; length) of each file; for raw.md the length, the
    generation, and the number of entries so far (-1: not recorded)."""

    def __init__(
        self, at: str, commit: str, marks: Mapping[str, tuple[str, int]], raw: Sequence[Any], entries: int = -1
    ) -> None:
        self.at, self.commit, self.marks, self.entries = at, commit, marks, entries
        self.raw = int(raw[0]), str(raw[1])


class StateSource:
    """The source of past bytes: objects, and append-only files and raw.md as they are now, or, for a time before a restore, as
    its snapshot has them."""

    def __init__(self, layout: Layout, era: RestoreRow | None) -> None:
        self.layout, self.state = layout, State(layout)
        self.cut = _whole(layout, era.kept) if era else None

    def part(self, name: str, length: int | None = None) -> bytes:
        """The first `length` bytes of a file, or all; empty if it is absent."""
        if self.cut is not None and name in (*PUT_BACK, *CUT_BACK):
            return objects.get(self.layout, self.cut[name])[:length] if name in self.cut else b""
        return self.state.part(name, 0, self.state.length(name) if length is None else length)

    def curated(self) -> pages.CurationProgress:
        """The curation progress at the end of this period."""
        return pages.parse_curated(self.part(names.CURATED) or None)


def resolve(source: StateSource, wanted: StateRecord, only: Iterable[str] = EVERY) -> PastState:
    """The files of a recorded state."""
    then = PastState(at=wanted.at, commit=wanted.commit, files={}, unknown={}, inexact={})
    for name in only:
        try:
            data = _raw(source, wanted, then.inexact) if name == names.RAW else _data(source, wanted, name)
        except BrokenFile as fault:
            then.unknown[name] = str(fault)
            continue
        if data is not None:
            then.files[name] = data
    return then


def _data(source: StateSource, wanted: StateRecord, name: str) -> bytes | None:
    """A managed file by its digest, or the prefix of an append-only one."""
    if name not in wanted.marks:
        return None
    digest, length = wanted.marks[name]
    if digest:
        now = source.state.data(name)
        return now if now is not None and encoding.digest(now) == digest else objects.get(source.layout, digest)
    data = source.part(name, length)
    if len(data) < length:
        raise BrokenFile(source.state.path(name), SHORTER, remedy=_look())
    return data


def _raw(source: StateSource, wanted: StateRecord, inexact: dict[str, str]) -> bytes | None:
    """raw.md of that length and generation; None if it was absent."""
    length, mark = wanted.raw
    if not length:
        return None
    now = source.part(names.RAW, length)
    if len(now) == length and mark == str(source.curated().generation):
        return now
    first = pages.parse_curated(_data(source, wanted, names.CURATED), source.layout.path(names.CURATED)).first_seq
    made = b"".join(line for _, line in _up_to(lines(source, first), length))
    if len(made) != length:
        inexact[names.RAW] = MASKED
        made = b"".join(line for seq, line in lines(source, first) if _was_there(wanted, seq, line))
    return made


def _was_there(wanted: StateRecord, seq: int, line: bytes) -> bool:
    """Whether an entry existed: by the number of entries, else by its time."""
    if wanted.entries >= 0:
        return seq < wanted.entries
    return line[1:21].decode("utf-8", "replace") <= wanted.at


def _up_to(lines: Iterable[tuple[int, bytes]], length: int) -> Iterator[tuple[int, bytes]]:
    """The lines that start before this many bytes."""
    for seq, line in lines:
        if length <= 0:
            return
        length -= len(line)
        yield seq, line


def lines(source: StateSource, first: int = 0) -> Iterator[tuple[int, bytes]]:
    """The numbered lines of raw.md from an entry on: those of the archive, then the uncurated ones."""
    seq = 0
    for number, line in json_lines.whole(source.part(names.ARCHIVE)):
        try:
            row = archive.parse(line)
        except (ValueError, TypeError, KeyError):
            raise BrokenFile(source.layout.path(names.ARCHIVE), "neither an entry nor a change", line=number) from None
        if isinstance(row, ArchiveEntry):
            seq = row.seq + 1
            if row.seq >= first:
                yield row.seq, row.entry.encode() + b"\n"
    waiting = enumerate(source.part(names.RAW).splitlines(keepends=True), source.curated().first_seq)
    yield from ((number, line) for number, line in waiting if number >= max(seq, first))


def restores(layout: Layout) -> list[RestoreRow]:
    """The restores of the mission, oldest first; raises BrokenFile with the line number of an invalid line."""
    data, path = State(layout).data(names.RESTORES), State(layout).path(names.RESTORES)

    def make(row: Any) -> RestoreRow:
        return schema.record(RestoreRow, row, "a restore has")

    return json_lines.parse(data, path, make, "the line is not a restore", _look())


def _whole(layout: Layout, snapshot: str) -> dict[str, str]:
    """{file: object} of the snapshot made before a restore."""
    name = f"{names.SNAPSHOTS}/{snapshot}.json"
    found = State(layout).json(name)
    rows = {**found.get("live", {}), **found.get("saved", {})} if isinstance(found, dict) else {}
    if not rows or not all(isinstance(one, str) for one in rows.values()):
        fault = "the file is missing" if found is None else "not a snapshot made before a restore"
        raise BrokenFile(State(layout).path(name), fault, remedy=_look())
    return rows
