"""Recovery evidence: what still says, once a run has died, how the state was when it opened.

The ledger, the run's context (in its folder, and again in its lock) and the copies beside them all lie where an agent can
write, so each is held against the others, on bytes: nothing is parsed that has not been put back.
"""

from __future__ import annotations

import os

from harness.base.errors import BrokenFile, UsageFault
from harness.base.record import Record
from harness.model import runs
from harness.model.runs import Context
from harness.store import files, journal, objects
from harness.store.layout import Layout, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harness.model.open_run import Begun
    from harness.store.layout import RunLayout

    Ledger = dict[str, list[object]]

COPIES = "open"
STEADY = (  # what nobody writes while a run is open: it lands when the run closes, or came before
    *("format", "mission.json", "spec.md", "features.json", "validation-contract.md"),
    *("contract-log.jsonl", "answers.jsonl", "runs.jsonl"),
)


def copy_of(run: RunLayout, path: str) -> str:
    """Where the copy of a growing file lies beside a run that is open."""
    return os.path.join(run.folder, COPIES, os.path.basename(path))


def context(layout: Layout, run_id: str) -> Context | None:
    """How the run was opened, from its folder, else from its lock; None where neither tells."""
    try:
        found: Context | None = runs.context(layout, run_id)
    except (BrokenFile, UsageFault):
        found = None
    if found is None or found.run != run_id:
        found = runs.held_context(layout, run_id)
    return found if found and found.run == run_id else None


def began(layout: Layout, run_id: str) -> bool:
    """Whether a run without a context had begun: its folder was taken away, or has more than what a crash leaves there."""
    paths = layout.run(run_id)
    left = [name for name in files.names(paths.folder) if not name.endswith(".tmp")]
    return bool(left or files.length(paths.lock)) or not os.path.isdir(paths.folder)


def closed(layout: Layout, run_id: str) -> bool:
    """Whether a run that nobody settled had closed: its line is the last that the ledger knows, and its files are as they
    were sealed with it."""
    row = _ledger(layout).get(os.path.basename(layout.books))
    known = _head(files.read(layout.books) or b"", row) if row else None
    line = (known or b"").rstrip(b"\n").rpartition(b"\n")[2] + b"\n"
    found, _ = runs.parse(line)
    if found is None or found.run != run_id or files.read(layout.run(run_id).result) != line:
        return False
    return found.seal == runs.seal(layout.run(run_id))


def ledger(layout: Layout, run_id: str) -> Ledger:
    """The ledger as it was while this run was open. Where it does not parse, or is gone, as the run found it; what is
    STEADY as the run's lock has it. Empty where nothing tells."""
    held, found = runs.held_context(layout, run_id), _ledger(layout)
    if not found:
        opened = held or context(layout, run_id)
        return dict(opened.live) if opened else {}
    if held is None:
        return found
    steady = {name: held.live[name] for name in STEADY if name in held.live}
    return {name: row for name, row in found.items() if name not in STEADY} | steady


def _ledger(layout: Layout) -> Ledger:
    try:
        return dict(journal.read_ledger(layout))
    except BrokenFile:
        return {}


class Evidence(Record):
    """The state before a run that died. What cannot be put back raises BrokenFile; where a person lets it be as it is,
    `yielded` collects its names."""

    run: Begun
    yielded: list[str] | None = None

    def live(self, path: str, data: bytes | None, row: list[object] | None) -> bytes | None:
        """What a managed file held, by its row in the ledger; None where there was none."""
        if row is None:
            return None
        if data is not None and files.digest(data) == row[0]:
            return data
        try:
            return objects.get(self.run.layout, str(row[0]))
        except BrokenFile:
            _lost(path, self.yielded)
            return data

    def grown(self, path: str, data: bytes, row: list[object] | None) -> bytes:
        """What an append-only file held: its own head, or a copy, as the ledger knows it, else as the run found it."""
        run = self.run
        opened = run.context.live.get(os.path.relpath(path, run.layout.state))
        found = _told(run.layout, path, data, [row, opened], [run.paths])
        if found is not None:
            return found
        _lost(path, self.yielded)
        return salvaged(run.layout, data) if path == run.layout.books else data

    def raw(self, data: bytes) -> bytes:
        """What raw.md held: its own head as the run found it, else the copy."""
        size, digest = self.run.context.raw
        if files.digest(data[:size]) == digest:
            return data[:size]
        return files.read(copy_of(self.run.paths, self.run.layout.raw)) or b""


def books(layout: Layout, dead: list[str], yielded: list[str] | None) -> bytes:
    """The books as they were before the runs that died, or as the ledger knows them. Raises BrokenFile where nothing is
    left of them, unless `yielded` may name them: then what can still be told."""
    data, name = files.read(layout.books) or b"", os.path.basename(layout.books)
    held = [run_id for run_id in dead if runs.held_context(layout, run_id)]
    known = ledger(layout, held[0]) if held else _ledger(layout)
    if not known:
        return salvaged(layout, data)
    found = _told(layout, layout.books, data, [known.get(name)], [layout.run(run_id) for run_id in dead])
    if found is not None:
        return found
    _lost(layout.books, yielded)
    return salvaged(layout, data)


def _told(
    layout: Layout, path: str, data: bytes, rows: Iterable[list[object] | None], folders: list[RunLayout]
) -> bytes | None:
    """The first head among what is left of the file that a row knows, newest row first; b"" where it was not there."""
    known = [row for row in rows if row]
    for row in known:
        for candidate in _left(layout, path, data, folders):
            head = _head(candidate, row)
            if head is not None:
                return head
    return None if known else b""


def _left(layout: Layout, path: str, data: bytes, folders: list[RunLayout]) -> Iterator[bytes]:
    yield data
    for folder in folders:
        yield files.read(copy_of(folder, path)) or b""
    if path == layout.books:
        yield _rebuilt(layout)


def _head(data: bytes, row: list[object]) -> bytes | None:
    """The beginning of `data` that a row of the ledger knows; None where it does not."""
    head = data[: int(str(row[1]))]
    return head if files.digest(head) == row[0] else None


def _lost(path: str, yielded: list[str] | None) -> None:
    """What cannot be put back stops everybody, until a person says that it stands as it is."""
    if yielded is None:
        fault = "it is not as the harness left it, and no copy of that is left"
        remedy = f"Put it back from a copy of the mission, or go on with what is there: {command('doctor --fix')}"
        raise BrokenFile(path, fault, remedy=remedy)
    yielded.append(os.path.basename(path))


def _rebuilt(layout: Layout) -> bytes:
    """The books as the results of finished runs make them."""
    return _in_order(layout, [files.read(layout.run(name).result) or b"" for name in files.names(layout.runs)])


def salvaged(layout: Layout, data: bytes) -> bytes:
    """What can still be told of the books: the whole lines among `data`, and the finished runs that these lack."""
    return _in_order(layout, [*data.splitlines(keepends=True), *_rebuilt(layout).splitlines(keepends=True)])


def _in_order(layout: Layout, lines: list[bytes]) -> bytes:
    """Those lines that are finished runs, each once, by their running totals."""
    places: dict[bytes, tuple[int, int]] = {}
    for line in lines:
        found, _ = runs.parse(line)
        if found is not None:
            places.setdefault(line.rstrip(b"\n") + b"\n", (found.total().runs, len(places)))
    return b"".join(line for _, line in sorted((place, line) for line, place in places.items()))
