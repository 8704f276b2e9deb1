"""Finds unsettled runs: those that died without being settled, and finished ones that the run log lacks.

The check precedes every start, every run and DONE, so it computes no digests.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from harness.base.errors import BrokenFile
from harness.mission import runs
from harness.mission.runs import RunResult
from harness.state import files, journal, names, objects
from harness.state.layout import Layout
from harness.state.state import State

LOGGED = rb'^\{\s*"run"\s*:\s*"([^"]+)".*\n'  # only complete lines
AS_WE_WRITE = b'{"run":"'


def unsettled(layout: Layout, run_log: bytes | None = None) -> list[str]:
    """Ids of dead, unsettled runs: their lease is free, and `run_log` (by default the one on disk, up to the length in
    the ledger) lacks them, or their lease file still exists."""
    opened, known = runs.open_runs(layout), _logged(layout) if run_log is None else _ids(run_log)
    dead = [name for name in opened if runs.is_dead(layout, name)]
    others = [name for name in State(layout).list(names.RUNS) if name not in known and name not in opened]
    begun = [name for name in others if os.path.lexists(layout.run(name).context) and runs.is_dead(layout, name)]
    last = {_last_begun(layout)} - {"", *known, *opened}
    return sorted({*dead, *begun, *(name for name in last if runs.is_dead(layout, name))})


def _last_begun(layout: Layout) -> str:
    """The run that began last, as recorded in the mission lock; dead if nothing else is left of it. "" without one."""
    name = files.Lock(layout.path(names.MISSION_LOCK)).holder().get("run")
    return name if isinstance(name, str) and runs.is_id(name) else ""


def _logged(layout: Layout) -> set[str]:
    """Ids of the runs in the run log, up to the length in the ledger; empty unless it is a regular file."""
    try:
        data = State(layout).data(names.RUN_LOG) or b""
    except BrokenFile:
        return set()
    return _ids(data[: _known_length(layout)])


def _ids(run_log: bytes) -> set[str]:
    lines = run_log.split(b"\n")[:-1]
    parts = [line[len(AS_WE_WRITE) :].partition(b'"') for line in lines if line.startswith(AS_WE_WRITE)]
    if len(parts) == len(lines) and all(name and quote for name, quote, _ in parts):
        names = [name for name, _, _ in parts]
    else:
        names = re.findall(LOGGED, run_log, re.M)
    return {name.decode("utf-8", "replace") for name in names}


def _known_length(layout: Layout) -> int | None:
    """The length of the run log in the ledger, or None."""
    try:
        row = journal.read_ledger(layout).get(names.RUN_LOG)
    except BrokenFile:  # the next writer reports it
        return None
    return int(row[1]) if row else None


def believed(layout: Layout) -> Iterator[RunResult]:
    """Finished runs, last first, without lines beyond the length in the ledger, which an unsettled run may have forged."""
    died = any(runs.is_dead(layout, name) for name in runs.open_runs(layout))
    return runs.finished(layout, _known_length(layout) if died else None)


def unbooked(layout: Layout) -> list[str]:
    """Ids of the runs with a result in their folder but no line in the run log."""
    known = _logged(layout)
    state = State(layout)
    finished = [name for name in state.list(names.RUNS) if state.exists(names.of_run(name, names.RESULT))]
    return [name for name in finished if name not in known]


def books_short(layout: Layout) -> bool:
    """Whether the run log is shorter than in the ledger (as after a repair by hand), and is empty or lacks a finished run."""
    known = _known_length(layout)
    if known is not None and State(layout).length(names.RUN_LOG) >= known:
        return False
    return bool(known and not _logged(layout)) or bool(unbooked(layout))


def needs_recovery(layout: Layout) -> bool:
    """Whether a dead run is unsettled, lines of the run log or all objects are missing, or a
    landing or restore was interrupted."""
    from harness.git import landing  # which `next` does not load

    settled = not unsettled(layout) and not books_short(layout) and not objects_lost(layout)
    cut = landing.unfinished(layout.folders.top) or State(layout).exists(names.RESTORING)
    return not settled or cut


def objects_lost(layout: Layout) -> bool:
    """Whether the folder of objects is gone although runs have finished, or its restoration was interrupted."""
    return not objects.is_whole(layout) and State(layout).length(names.RUN_LOG) > 0


def cut_short(layout: Layout) -> bool:
    """Whether an interrupted write left temporary or journal files, with or without a dead run."""
    return bool(abandoned(layout) or journal.staged(layout)) or os.path.exists(layout.path(names.JOURNAL) + "/record")


def abandoned(layout: Layout) -> list[str]:
    """The temporary files of dead writers, in the folders that are also written outside runs."""
    folders = (
        layout.state,
        os.path.dirname(layout.path(names.RAW)),
        os.path.dirname(layout.path(names.SHIM)),
        layout.cache,
        layout.path(names.OBJECTS),
    )
    ours = (
        *folders,
        layout.path(names.GIT),
        layout.path(names.GIT_PRIVATE),
        os.path.join(layout.path(names.GIT_PRIVATE), "info"),
    )
    return [path for folder in ours for path in files.abandoned(folder)]


def require_books(layout: Layout) -> None:
    """Raise BrokenFile if lines of the run log are missing, because the totals would be too low."""
    if books_short(layout):
        fault = "it is shorter than the harness left it, so what was spent is unknown"
        raise BrokenFile(
            layout.path(names.RUN_LOG), fault, remedy="Start run.sh: it makes the file again, or says what to do."
        )
