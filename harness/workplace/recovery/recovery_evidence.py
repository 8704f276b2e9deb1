"""Evidence about a dead run: its context, whether it had closed, and the state that the ledger records.
The run log can be rebuilt from the results of finished runs.
"""

from __future__ import annotations

import os

from harness.base.errors import BrokenFile, UsageFault
from harness.base.record import Json
from harness.mission import mission, runs
from harness.mission.runs import RunContext
from harness.state import committed_copy, journal, names
from harness.state.layout import Layout, command
from harness.state.state import State
from harness.workplace import workplace

Ledger = dict[str, list[Json]]


def context(layout: Layout, run_id: str) -> RunContext | None:
    """The run's context; None if absent or unreadable. A tree that was carried to this machine counts where it is."""
    try:
        found = runs.context(layout, run_id)
    except (BrokenFile, UsageFault):
        return None
    if found.folder and not os.path.isdir(found.folder):
        found.folder = workplace.folder_of(mission.read(layout).id, os.path.basename(found.folder))
    return found if found.run == run_id else None


def began(layout: Layout, run_id: str) -> bool:
    """Whether a run without a context had begun: its folder is gone, or contains more than a crash leaves there."""
    folder = f"{names.RUNS}/{run_id}"
    left = [name for name in State(layout).list(folder) if not name.endswith(".tmp")]
    return bool(left) or not os.path.isdir(layout.run(run_id).folder)


def closed(layout: Layout, run_id: str) -> bool:
    """Whether an unsettled run had closed: its line is among those that the ledger covers (others may have closed since), and its
    files match its run digest."""
    state, row = State(layout), ledger(layout).get(names.RUN_LOG)
    length = int(row[1]) if row else 0
    known = (state.data(names.RUN_LOG) or b"")[:length]
    line = state.data(names.of_run(run_id, names.RESULT)) or b""
    if len(known) < length or line.find(b"\n") != len(line) - 1 or b"\n" + line not in b"\n" + known:
        return False
    found, _ = runs.parse(line)
    return found is not None and found.run == run_id and found.seal == runs.seal(layout.run(run_id))


def ledger(layout: Layout) -> Ledger:
    """The ledger; {} if it does not parse."""
    try:
        return dict(journal.read_ledger(layout))
    except BrokenFile:
        return {}


def books(layout: Layout, yielded: list[str] | None) -> bytes:
    """The run log as the harness left it. If that is lost, raises BrokenFile, or adds its name to `yielded` and returns
    the salvageable part."""
    data, row = State(layout).data(names.RUN_LOG) or b"", ledger(layout).get(names.RUN_LOG)
    if row is None:
        return salvaged(layout, data)
    length = int(row[1])
    for one in (data, committed_copy.read(layout, names.RUN_LOG) or b"", _rebuilt(layout)):
        if len(one) >= length and _is_whole(one[:length]):
            return one[:length]
    _lost(layout.path(names.RUN_LOG), yielded)
    return salvaged(layout, data)


def _is_whole(data: bytes) -> bool:
    """Whether these are whole lines of finished runs."""
    return data[-1:] in (b"", b"\n") and all(runs.parse(line)[0] for line in data.split(b"\n")[:-1])


def _lost(path: str, yielded: list[str] | None) -> None:
    """Stop the mission for an unrestorable file, until a person restores it or accepts it as it is."""
    if yielded is None:
        remedy = f"Put it back from a copy of the mission, or go on with what is there: {command('doctor --fix')}"
        raise BrokenFile(path, "it is not as the harness left it, and no copy of that is left", remedy=remedy)
    yielded.append(os.path.basename(path))


def _rebuilt(layout: Layout) -> bytes:
    """The run log, rebuilt from the results of finished runs."""
    state = State(layout)
    return _in_order([state.data(names.of_run(name, names.RESULT)) or b"" for name in state.list(names.RUNS)])


def salvaged(layout: Layout, data: bytes) -> bytes:
    """The salvageable run log: the valid lines in `data`, and the finished runs that these lack."""
    return _in_order([*data.splitlines(keepends=True), *_rebuilt(layout).splitlines(keepends=True)])


def _in_order(lines: list[bytes]) -> bytes:
    """The lines that are finished runs, each once, ordered by their running totals."""
    places: dict[bytes, tuple[int, int]] = {}
    for line in lines:
        found, _ = runs.parse(line)
        if found is not None:
            places.setdefault(line.rstrip(b"\n") + b"\n", (found.total().runs, len(places)))
    return b"".join(line for _, line in sorted((place, line) for line, place in places.items()))
