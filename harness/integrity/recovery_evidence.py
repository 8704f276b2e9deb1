"""Recovery evidence: records of the state at open, for a run that died.

An agent can write the ledger, the run's context (in its folder, and again in its lock) and the copies. So each is compared
with the others, as bytes: nothing is parsed before it is restored.
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
STEADY = (  # written before a run opens or when it closes, never in between
    *("format", "mission.json", "spec.md", "features.json", "validation-contract.md"),
    *("contract-log.jsonl", "answers.jsonl", "runs.jsonl"),
)


def copy_of(run: RunLayout, path: str) -> str:
    """The path of an open run's copy of an append-only file."""
    return os.path.join(run.folder, COPIES, os.path.basename(path))


def context(layout: Layout, run_id: str) -> Context | None:
    """The run's context, from its folder, else from its lock; None where neither has it."""
    try:
        found: Context | None = runs.context(layout, run_id)
    except (BrokenFile, UsageFault):
        found = None
    if found is None or found.run != run_id:
        found = runs.held_context(layout, run_id)
    return found if found and found.run == run_id else None


def began(layout: Layout, run_id: str) -> bool:
    """Whether a run without a context had begun: its folder is gone, or contains more than a crash leaves there."""
    paths = layout.run(run_id)
    left = [name for name in files.names(paths.folder) if not name.endswith(".tmp")]
    return bool(left or files.length(paths.lock)) or not os.path.isdir(paths.folder)


def closed(layout: Layout, run_id: str) -> bool:
    """Whether an unsettled run had closed: its line is the last that the ledger covers, and its files match its run digest."""
    row = _ledger(layout).get(os.path.basename(layout.run_log))
    known = _head(files.read(layout.run_log) or b"", row) if row else None
    line = (known or b"").rstrip(b"\n").rpartition(b"\n")[2] + b"\n"
    found, _ = runs.parse(line)
    if found is None or found.run != run_id or files.read(layout.run(run_id).result) != line:
        return False
    return found.seal == runs.seal(layout.run(run_id))


def ledger(layout: Layout, run_id: str) -> Ledger:
    """The ledger while this run was open, with STEADY rows from its lock; else as the run found it; {} without evidence."""
    locked, found = runs.held_context(layout, run_id), _ledger(layout)
    if not found:
        opened = locked or context(layout, run_id)
        return dict(opened.live) if opened else {}
    if locked is None:
        return found
    steady = {name: locked.live[name] for name in STEADY if name in locked.live}
    return {name: row for name, row in found.items() if name not in STEADY} | steady


def _ledger(layout: Layout) -> Ledger:
    try:
        return dict(journal.read_ledger(layout))
    except BrokenFile:
        return {}


class Evidence(Record):
    """The state before a run that died. A file that cannot be restored raises BrokenFile, or is added to `yielded` and kept."""

    run: Begun
    yielded: list[str] | None = None

    def live(self, path: str, data: bytes | None, row: list[object] | None) -> bytes | None:
        """The content of a managed file, by its row in the ledger; None where there was no file."""
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
        """The content of an append-only file: its own head or a copy that matches the ledger, else the run's context."""
        run = self.run
        opened = run.context.live.get(os.path.relpath(path, run.layout.state))
        found = _matching(run.layout, path, data, [row, opened], [run.paths])
        if found is not None:
            return found
        _lost(path, self.yielded)
        return salvaged(run.layout, data) if path == run.layout.run_log else data

    def raw(self, data: bytes) -> bytes:
        """The content of raw.md: its own head where the run's context matches it, else the copy."""
        size, digest = self.run.context.raw
        if files.digest(data[:size]) == digest:
            return data[:size]
        return files.read(copy_of(self.run.paths, self.run.layout.raw)) or b""


def books(layout: Layout, dead: list[str], yielded: list[str] | None) -> bytes:
    """The run log before the runs that died, or as the ledger records it. Where neither is left, raises BrokenFile, or adds
    its name to `yielded` and returns what can be salvaged."""
    data, name = files.read(layout.run_log) or b"", os.path.basename(layout.run_log)
    locked = [run_id for run_id in dead if runs.held_context(layout, run_id)]
    known = ledger(layout, locked[0]) if locked else _ledger(layout)
    if known:
        found = _matching(layout, layout.run_log, data, [known.get(name)], [layout.run(run_id) for run_id in dead])
        if found is not None:
            return found
        _lost(layout.run_log, yielded)
    return salvaged(layout, data)


def _matching(
    layout: Layout, path: str, data: bytes, rows: Iterable[list[object] | None], folders: list[RunLayout]
) -> bytes | None:
    """The first head among `_candidates` that matches a row, newest row first; b"" without any row."""
    known = [row for row in rows if row]
    heads = (_head(candidate, row) for row in known for candidate in _candidates(layout, path, data, folders))
    return next((head for head in heads if head is not None), None if known else b"")


def _candidates(layout: Layout, path: str, data: bytes, folders: list[RunLayout]) -> Iterator[bytes]:
    """The file itself, its copies and, for the run log, its reconstruction."""
    yield data
    for folder in folders:
        yield files.read(copy_of(folder, path)) or b""
    if path == layout.run_log:
        yield _rebuilt(layout)


def _head(data: bytes, row: list[object]) -> bytes | None:
    """The beginning of `data` that matches a row of the ledger; None where it does not."""
    head = data[: int(str(row[1]))]
    return head if files.digest(head) == row[0] else None


def _lost(path: str, yielded: list[str] | None) -> None:
    """A file that cannot be restored stops the mission until a person accepts it as it is."""
    if yielded is None:
        fault = "it is not as the harness left it, and no copy of that is left"
        remedy = f"Put it back from a copy of the mission, or go on with what is there: {command('doctor --fix')}"
        raise BrokenFile(path, fault, remedy=remedy)
    yielded.append(os.path.basename(path))


def _rebuilt(layout: Layout) -> bytes:
    """The run log, made from the results of finished runs."""
    return _in_order(layout, [files.read(layout.run(name).result) or b"" for name in files.names(layout.runs)])


def salvaged(layout: Layout, data: bytes) -> bytes:
    """What is left of the run log: the valid lines in `data`, and the finished runs that these lack."""
    return _in_order(layout, [*data.splitlines(keepends=True), *_rebuilt(layout).splitlines(keepends=True)])


def _in_order(layout: Layout, lines: list[bytes]) -> bytes:
    """The lines that are finished runs, each once, ordered by their running totals."""
    places: dict[bytes, tuple[int, int]] = {}
    for line in lines:
        found, _ = runs.parse(line)
        if found is not None:
            places.setdefault(line.rstrip(b"\n") + b"\n", (found.total().runs, len(places)))
    return b"".join(line for _, line in sorted((place, line) for line, place in places.items()))
