"""Restores the state to a snapshot, and the code in a new branch, after a snapshot of the present state. All or nothing.

Features, contract, spec, issues and memory are restored; the present snapshot keeps the truncated append-only files. The run
log, runs, objects, people's orders and answers, config.toml and the identities do not change.
"""

from __future__ import annotations

from itertools import count

from harness.base import clock, encoding
from harness.base.errors import BrokenFile, LockBusy, UsageFault
from harness.base.record import Record
from harness.git import dotgit, refs, repository
from harness.mission import contract, features, lease, mission
from harness.mission.order_log import OrderContext
from harness.replay import _past_state
from harness.replay._past_state import CUT_BACK, PUT_BACK, PastState
from harness.replay.upkeep import snapshots
from harness.run import closing, recover
from harness.run.requests import orders
from harness.state import files, journal, names, objects
from harness.state.layout import Layout, command
from harness.state.state import Changes, State
from harness.workplace import mission_lock, run_detection, workplace


class Restoration(Record):
    """The result of a restore: the snapshot, that of the state before, the branch and its commit; `lines` for a person."""

    to: str
    kept: str
    branch: str
    commit: str
    lines: list[str]


def restore(layout: Layout, snapshot_id: str) -> Restoration:
    """Restore the mission to a snapshot. Raises LockBusy while a run or run.sh is alive, UsageFault inside a run, and BrokenFile,
    with nothing changed, if a part of the snapshot is missing."""
    run_detection.refuse(layout, "snapshot restore")
    mission.check_format(layout)
    with mission_lock.without_loops(layout), mission_lock.take(layout):
        workplace.use(layout)
        recover.recover(layout)
        if live := [one.run for one in lease.alive(layout)]:
            raise LockBusy(f"A run is under way: {', '.join(live)}. Stop it, or wait for it to end.")
        found = snapshots.load(layout, snapshot_id)
        then = snapshots.then(layout, found, (names.FORMAT, *PUT_BACK, *CUT_BACK))
        _require(layout, found, then)
        made = _commit(layout, found, then)
        recover.recover(layout)
    return made


def _require(layout: Layout, found: snapshots.Snapshot, then: PastState) -> None:
    """Raise BrokenFile if a part is missing or does not parse, UsageFault for another format."""
    for name in (*PUT_BACK, *CUT_BACK):
        then.known(name)
    if then.known(names.FORMAT) != State(layout).data(names.FORMAT):
        raise UsageFault(f"The snapshot {found.run} has another format; this harness restores format {mission.FORMAT}.")
    queue = features.parse(then.known(names.FEATURES), layout.path(names.FEATURES))
    text = then.known(names.CONTRACT)
    if text is not None:
        contract.parse(encoding.decode(text, layout.path(names.CONTRACT)), layout.path(names.CONTRACT))
    elif queue:
        raise BrokenFile(snapshots.path_of(layout, found.run), "it has features without a contract")
    if found.commit and refs.position_of(layout.folders.top, found.commit) is None:
        gone = f"its commit {found.commit[:12]} is gone from {layout.folders.top}"
        raise BrokenFile(snapshots.path_of(layout, found.run), gone, remedy=f"See: {command('snapshot list')}")


def _commit(layout: Layout, found: snapshots.Snapshot, then: PastState) -> Restoration:
    """Commit the restore: the snapshot of the present state, the old files, the branch, and the commit for the new position."""
    state, made, at = State(layout), mission.load(layout), clock.stamp(clock.now())
    tip = workplace.position(layout).head
    kept = _free(layout, f"{clock.now()}-before-restore")
    branch = _branch(layout, made.branch.partition(mission.AT)[0] + mission.AT + found.run, found.commit)
    refs.set_one(layout.folders.top, refs.KEEP + kept, tip)
    with state.lock("state"):
        journal.finish_journal(layout)
        changes = Changes()
        changes.put(f"{names.SNAPSHOTS}/{kept}.json", _now(layout, kept, at, tip))
        for name in (*PUT_BACK, *CUT_BACK):
            data = then.known(name)
            if data is not None:
                changes.put(name, data)
            elif state.exists(name):
                changes.remove(name)
        changes.put(names.MISSION, encoding.dump_json(made.replace(branch=branch).asdict()))
        changes.put(names.RESTORING, encoding.dump_json({"commit": found.commit}))
        row = _past_state.RestoreRow(
            at=at,
            by="person",
            to=found.run,
            kept=kept,
            branch=branch,
            commit=found.commit,
            log=state.length(names.RUN_LOG),
        )
        changes.append(names.RESTORES, encoding.dump_json(row.asdict()))
        context = OrderContext(layout=layout, features=[], changes=changes, at=at, busy={})
        orders.answered(context, state.text(names.ESCALATION), f"The mission was put back to {found.run}.")
        state.commit(changes, locked=True)
    return Restoration(
        to=found.run, kept=kept, branch=branch, commit=found.commit, lines=_said(layout, made.branch, branch, then)
    )


def _free(layout: Layout, wish: str) -> str:
    """An id that neither a snapshot nor a run has."""
    state = State(layout)
    for number in count(1):
        name = wish if number == 1 else f"{wish}-{number}"
        if not any(state.exists(one) for one in (f"{names.SNAPSHOTS}/{name}.json", f"{names.RUNS}/{name}")):
            return name
    raise AssertionError


def _branch(layout: Layout, wish: str, commit: str) -> str:
    """Create a branch at the commit; reuses one that a killed restore left there."""
    for number in count(1):
        name = wish if number == 1 else f"{wish}-{number}"
        for lock in dotgit.ref_locks(layout.folders.top, repository.BRANCHES + name):  # left by a killed git process
            files.remove(lock)
        there = dotgit.commit_of(layout.folders.top, repository.BRANCHES + name)
        if there == commit and name != mission.read(layout).branch:
            return name
        if not there:
            refs.set_one(layout.folders.top, repository.BRANCHES + name, commit)
            return name
    raise AssertionError


def _now(layout: Layout, name: str, at: str, commit: str) -> bytes:
    """The snapshot of the present state, with the whole content of each file that the restore truncates."""
    value, state = closing.snapshot_of(layout, name, commit, at), State(layout)
    data = {one: state.data(one) for one in CUT_BACK}
    saved = {one: objects.put(layout, found) for one, found in data.items() if found is not None}
    return encoding.dump_json({**value, "saved": saved})


def _said(layout: Layout, before: str, branch: str, then: PastState) -> list[str]:
    """Messages for the person."""
    lines = [f"not exact: {line}" for line in snapshots.is_whole(layout, then)]
    there = encoding.shell_word(branch)
    lines.append(f"the mission continues there; the branch {before} and your folder are unchanged: git switch {there}")
    return lines
