"""Prunes large files that no prompt needs: transcripts, output and refused files of old runs, and unneeded trees.

The prompt of a run, its context, result, reply, notes and receipts stay for good, and so does every object.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from harness.base import clock
from harness.base.record import Record
from harness.git import refs
from harness.git.checkouts import worktrees
from harness.mission import lease, mission, run_lookup, runs
from harness.process import temporary
from harness.replay.resends import replays
from harness.replay.upkeep import deletion, export
from harness.state import files, names
from harness.state.layout import Layout
from harness.state.state import State
from harness.workplace import mission_lock, run_detection, workplace
from harness.workplace.recovery import unsettled_runs

DAY = 86400
PRUNED = (names.STREAM, names.STDERR, names.TURNS, names.RESULTS, names.REFUSED)
OF_TASKS = (names.TURNS, names.RESULTS)  # of a run's subagents, whose other records stay


class PruneResult(Record):
    """What was freed, or would be: bytes, the number of runs, the trees (folders), the replays (ids)."""

    dry_run: bool
    days: int
    bytes: int = 0
    runs: int = 0
    trees: list[str] = []
    replays: list[str] = []


def prune(layout: Layout, days: int, *, dry_run: bool) -> PruneResult:
    """Remove the PRUNED files of runs that ended more than `days` days ago, also in archived missions, and all trees except the
    first that were last used before then. Continues after a kill. Raises UsageFault inside a run, LockBusy while one opens
    or settles."""
    run_detection.refuse(layout, "gc")
    mission.check_format(layout)
    done, before = PruneResult(dry_run=dry_run, days=days), clock.now() - days * DAY
    with mission_lock.take(layout):
        for where in run_lookup.missions(layout):
            done.bytes += 0 if dry_run else deletion.complete(where)
            for result in runs.finished(where):
                if result.ended < before:
                    _prune_run(where, result.run, done)
        workplace.use(layout)
        size, done.replays = replays.prune(layout, before, dry_run=dry_run)
        done.bytes += size
        if not dry_run:
            export.remove_refs(layout)
            temporary.remove_abandoned(f"{mission.load(layout).id}/replay")  # of a killed replay
        if not unsettled_runs.needs_recovery(layout):  # a dead run may have left work in a tree
            for folder in _unneeded(layout, before):
                done.trees.append(folder)
                for path in (folder, folder + ".home", folder + ".agent"):
                    done.bytes += files.size_below(path)
                    if not dry_run and path == folder:
                        worktrees.remove(layout.folders.project, folder)
                    elif not dry_run:
                        temporary.remove(path)
    return done


def _prune_run(layout: Layout, run_id: str, done: PruneResult) -> None:
    tasks = [f"{names.TASKS}/{task}" for task in files.names(layout.run(run_id).tasks)]
    known = [*PRUNED, *(f"{task}/{name}" for task in tasks for name in OF_TASKS)]
    found = [path for name in known if os.path.lexists(path := State(layout).path(names.of_run(run_id, name)))]
    done.runs += bool(found)
    for path in found:
        done.bytes += files.size_below(path)
        if done.dry_run:
            continue
        if os.path.isdir(path) and not os.path.islink(path):
            temporary.remove(path)
        else:
            files.remove(path)


def _unneeded(layout: Layout, before: int) -> Iterator[str]:
    """The unneeded trees of the mission besides the first: not in use, last used before then, without uncommitted changes, and at
    an ancestor of the mission's commit."""
    made = mission.load(layout)
    taken, tip = {one.tree for one in lease.alive(layout)}, workplace.tip_commit(layout, made)
    top = os.path.dirname(workplace.folder_of(made.id))
    for name in files.names(top):
        folder, number = os.path.join(top, name), name.removeprefix(workplace.TREES)
        if number.isdigit() and number != "1" and name not in taken and os.path.isdir(folder):
            index = worktrees.index(folder)
            if os.path.exists(index) and os.stat(index).st_mtime < before:
                at = worktrees.clean_at(layout.folders.project, folder)
                if at and tip and refs.is_ancestor(layout.folders.project, at, tip):
                    yield folder
