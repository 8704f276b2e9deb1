"""Deletes runs for good: their files, and unreferenced objects. A tombstone in forgotten.jsonl names each run.

Their lines in the run log and the equal result.json stay, because totals are computed from them. The tombstone is written
first, so after a kill the same call, or `gc`, continues.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterable

from harness.base import clock, encoding
from harness.base.errors import LockBusy, UsageFault
from harness.base.record import Record
from harness.mission import features, mission, receipts, run_lookup, runs
from harness.mission.runs import Tombstone
from harness.process import temporary
from harness.proof import index
from harness.state import files, journal, names, objects
from harness.state.layout import Layout
from harness.state.state import State
from harness.workplace import mission_lock, run_detection

HEX = frozenset("0123456789abcdef")
POINTS = (names.MANIFEST, names.CONTEXT)  # the files of a run that reference objects


class DeletionResult(Record):
    """The result of a deletion: the runs, with their tombstones, and the bytes freed."""

    runs: list[Tombstone]
    bytes: int = 0
    objects: int = 0


def forget(layout: Layout, wanted: list[str]) -> DeletionResult:
    """Delete these runs from the mission or its archive, and finish an interrupted deletion. Deletes none and raises UsageFault
    if a run does not exist or its receipts prove a passed feature, LockBusy if one is alive."""
    run_detection.refuse(layout, "forget")
    mission.check_format(layout)
    with mission_lock.take(layout):
        found = [run_lookup.find(layout, name, forgotten=True) for name in dict.fromkeys(wanted)]
        for where, run_id in found:
            _require(where, run_id)
        made = DeletionResult(runs=[])
        for where in {one.state: one for one, _ in found}.values():
            mine = [run_id for one, run_id in found if one.state == where.state]
            made.runs += _bury(where, mine)
            _remove(where, mine, made)
    return made


def complete(layout: Layout) -> int:
    """Finish interrupted deletions; returns the bytes freed. The caller holds the mission lock."""
    made = DeletionResult(runs=[])
    left = [run_id for run_id in runs.forgotten(layout) if remains(layout, run_id)]
    if left:
        _remove(layout, left, made)
    return made.bytes


def remains(layout: Layout, run_id: str) -> list[str]:
    """The files of a run that remain besides its result."""
    folder = layout.run(run_id).folder
    return [os.path.join(folder, name) for name in files.names(folder) if name != names.RESULT]


def _require(layout: Layout, run_id: str) -> None:
    """Raise a fault if the run must stay."""
    if run_id in runs.forgotten(layout):
        return
    result = runs.result(layout, run_id)
    if result is None:
        if run_id in runs.open_runs(layout) and not runs.is_dead(layout, run_id):
            raise LockBusy(f"The run {run_id} is under way. Stop it, or wait for it to end.")
        raise UsageFault(f"The run {run_id} is not settled yet. The next start of run.sh settles it.")
    if not (result.verdict or result.accepted):
        return  # such receipts prove nothing
    claims = {one.claim for one in receipts.of_run(layout, run_id)}
    needed = [one.id for one in features.load(layout) if one.status == "passed" and claims.intersection(one.claims)]
    if needed:
        raise UsageFault(
            f"The receipts of {run_id} prove features that have passed: {', '.join(needed)}. Nothing is removed."
        )


def _bury(layout: Layout, wanted: list[str]) -> list[Tombstone]:
    """Add the missing tombstones in one commit; returns all."""
    files.make_folder(layout.path(names.LOCKS))
    with State(layout).lock("state"):
        journal.finish_journal(layout)  # of a killed call
    known = runs.forgotten(layout)
    at, by = clock.stamp(clock.now()), who()
    results = {run_id: runs.result(layout, run_id) for run_id in wanted if run_id not in known}
    made = {name: Tombstone(run=name, at=at, by=by, seal=one.seal) for name, one in results.items() if one}
    if made:
        State(layout).append(names.FORGOTTEN, b"".join(encoding.dump_json(one.asdict()) for one in made.values()))
    return [made.get(run_id) or known[run_id] for run_id in wanted]


def who() -> str:
    """The name of the person at this machine."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return f"uid {os.getuid()}"


def _remove(layout: Layout, wanted: list[str], made: DeletionResult) -> None:
    """Remove objects first, and last the files that reference them, so that a kill loses no reference."""
    state = State(layout)
    named = {name for run_id in wanted for name in _named(state, [names.of_run(run_id, one) for one in POINTS])}
    for name in _unused(layout, named, set(wanted)) if named else ():
        path = objects.path_of(layout, name)
        made.bytes += files.length(path)
        made.objects += 1
        files.remove(path)
    state.remove(f"{names.CACHE}/{index.NAME}.json")  # rebuilt without their receipts
    for run_id in wanted:
        for path in sorted(remains(layout, run_id), key=lambda path: os.path.basename(path) in POINTS):
            made.bytes += files.size_below(path)
            if os.path.isdir(path) and not os.path.islink(path):
                temporary.remove(path)
            else:
                files.remove(path)


def _named(state: State, wanted: Iterable[str]) -> set[str]:
    """The digests in these files."""
    found: set[str] = set()
    for name in wanted:
        words = (state.data(name) or b"").decode("utf-8", "replace").split('"')
        found |= {word for word in words if len(word) == 64 and HEX.issuperset(word)}
    return found


def _unused(layout: Layout, named: set[str], gone: set[str]) -> set[str]:
    """The objects that no other run, snapshot or present file references; references in broken files also count."""
    state, left = State(layout), set(named)
    places = [f"{names.SNAPSHOTS}/{one}" for one in state.list(names.SNAPSHOTS)]
    places += [names.of_run(one, name) for one in state.list(names.RUNS) if one not in gone for name in POINTS]
    for place in (names.LEDGER, *places):
        if left:
            left -= _named(state, [place])
    return {name for name in left if os.path.exists(objects.path_of(layout, name))}
