"""Executes the recovery plan: finishes journals, restores state, settles dead runs. Idempotent: a kill at any point is
safe. The caller holds the mission lock."""

from __future__ import annotations

import os
import time

from harness.agents import registry
from harness.base import clock, encoding
from harness.base.record import Record
from harness.git import landing, refs
from harness.git.checkouts import worktrees
from harness.memory import identity
from harness.mission import config, features, lease, mission, transcript
from harness.mission.config import Config
from harness.mission.open_run import Outcome, StartedRun
from harness.mission.runs import RunContext
from harness.mission.usage import Usage
from harness.process import supervise, temporary
from harness.run import closing, reconcile
from harness.run.settle import worker
from harness.state import committed_copy, files, journal, manifests, names
from harness.state.layout import Layout, identity_folder
from harness.state.state import State
from harness.workplace import confine, inbox, mission_lock, workplace
from harness.workplace.recovery import recovery_evidence, recovery_plan, unsettled_runs
from harness.workplace.recovery.recovery_plan import DeadRun, RecoveryStep

UNKNOWN = "unknown"
DIED = "the run died before it closed"


class RestoredRun(Record):
    """A dead run after the state is restored. `said`: further actions, in words."""

    run: StartedRun
    outcome: Outcome
    settings: Config
    seconds: float
    said: str


def recover_dead(layout: Layout) -> list[str]:
    """`recover` under the mission lock, if needed. After a mere interrupted write, only its leftovers are removed."""
    needed = unsettled_runs.needs_recovery(layout)
    if not needed and not unsettled_runs.cut_short(layout):
        return []
    with mission_lock.take(layout):
        if needed:
            return recover(layout)
        done = _finish_journal(layout)
        _remove_abandoned(layout, [], set())
        return done


def recover(layout: Layout, *, yielding: bool = False) -> list[str]:
    """Settle all dead runs without touching claims of live ones; returns one line per action. An unrestorable file
    raises BrokenFile, or is accepted with `yielding`. The caller holds the mission lock."""
    suspects = unsettled_runs.unsettled(layout)
    done = _finish_journal(layout) + _finish_restore(layout)
    done += restore_objects(layout) if unsettled_runs.objects_lost(layout) else []
    yielded: list[str] | None = [] if yielding else None
    dead, books = suspects, b""
    if suspects or unsettled_runs.books_short(layout):
        books = recovery_evidence.books(layout, yielded)
        dead = unsettled_runs.unsettled(layout, books)
        done += [] if dead else _replace_run_log(layout, books)
    died = [recovery_plan.look(layout, run_id) for run_id in dead]
    pids = {str(lease.terms_of(layout, run_id).pid) for run_id in dead}
    if died and not recovery_evidence.ledger(layout) and not any(one.context for one in died):
        files.replace(layout.path(names.RUN_LOG), books)  # no other record has its content
    restored = {one.run: _restore(layout, one) for one in died if one.open}
    alone = lease.is_alone(layout)
    if (alone or dead) and mission.exists(layout):  # also without a dead run: a power cut can restore a lock
        # Locks go before a commit of a dead run lands on the mission's position.
        workplace.clear_ref_locks(layout, dead, alone=alone)
    if mission.exists(layout):
        mission.check_format(layout)  # of restored bytes, before any of them is parsed
    in_progress = b'"status":"in_progress"' in (State(layout).data(names.FEATURES) or b"")
    done += workplace.finish_landing(layout) if landing.unfinished(layout.folders.top) else []
    busy = [one.feature for one in lease.alive(layout)]
    died = [recovery_plan.locate(layout, one) for one in died]
    for step in recovery_plan.plan(died, features.load(layout) if dead or in_progress else [], busy):
        done.append(_carry_out(layout, step, restored))
    done += [f"took {name} as it stands" for name in dict.fromkeys(yielded or [])]
    _remove_abandoned(layout, dead, pids)
    return done + _close_torn(layout)


def restore_objects(layout: Layout) -> list[str]:
    """Restore lost objects from prompts; returns a line each for restored and unrestorable ones."""
    count, gone = manifests.restore(layout)
    done = [f"restored {count} objects from the prompts that hold them"] if count else []
    return done + ([f"could not restore {len(gone)} objects: no prompt holds them"] if gone else [])


def _remove_abandoned(layout: Layout, dead: list[str], pids: set[str]) -> None:
    """Remove the temporary files of dead writers, also in folders of dead runs. While another run is open, only those
    that name one of `pids`, the processes of dead runs."""
    alone = lease.is_alone(layout)
    if not (alone or dead):
        return
    folders = [*(layout.run(name).folder for name in dead), *([layout.path(names.SNAPSHOTS)] if dead else [])]
    found = [*unsettled_runs.abandoned(layout), *(path for folder in folders for path in files.abandoned(folder))]
    for path in [*found, *(workplace.abandoned(layout) if mission.exists(layout) else [])]:
        if alone or path.split(".")[-2] in pids:
            files.remove(path)
    if alone:
        identity.clear(identity_folder())


def _carry_out(layout: Layout, step: RecoveryStep, restored: dict[str, RestoredRun]) -> str:
    """Execute one step of the plan; returns its line."""
    if step.do == recovery_plan.RELEASE:
        return _release(layout, step)
    run, line = layout.run(step.run), f"{step.run} {step.do}"
    inbox.remove(run.inbox)
    if step.do == recovery_plan.FORGET:
        _remove_flat(run.folder)
    elif step.do == recovery_plan.TIDY:
        closing.snapshot(layout, step.run)
    else:
        dead = restored[step.run]
        _settle(step, dead)
        dead.outcome.work.refused += confine.disarm(dead.run.context.folder) if dead.run.context.folder else []
        closing.close(dead.run, dead.outcome, dead.settings, dead.seconds)
        line = f"{step.run} was {dead.outcome.ended}{dead.said}"
    files.remove(run.lock)
    return line


def _remove_flat(folder: str) -> None:
    """Remove a folder of regular files, if it exists."""
    for name in files.names(folder):
        files.remove(os.path.join(folder, name))
    if os.path.isdir(folder):
        os.rmdir(folder)


def _finish_journal(layout: Layout) -> list[str]:
    """Finish a journal that a crash left; raises BrokenFile for a foreign one."""
    files.make_folder(layout.path(names.LOCKS))
    with State(layout).lock("state"):
        if not journal.finish_journal(layout):
            return []
        committed_copy.catch_up(layout)
        return ["finished a journal that a crash had left behind"]


def _finish_restore(layout: Layout) -> list[str]:
    """Move the mission's position to the commit of its restored state."""
    row = State(layout).json(names.RESTORING)
    if row is None:
        return []
    made = mission.load(layout)
    workplace.clear_ref_locks(layout, [])
    workplace.move_to(layout, made, str(row["commit"]))
    State(layout).remove(names.RESTORING)
    return [f"moved the mission to {made.branch}"]


def _replace_run_log(layout: Layout, books: bytes) -> list[str]:
    """Restore missing lines of the run log without a dead run."""
    with State(layout).lock("state"):
        files.replace(layout.path(names.RUN_LOG), books)
        journal.adopt(layout)
    return [f"made {layout.shown(names.RUN_LOG)} again from the results of finished runs"]


def _release(layout: Layout, step: RecoveryStep) -> str:
    """Release a feature that is in progress without a run."""
    found = features.load(layout)
    features.move(features.find(found, step.feature), step.move)
    State(layout).put(names.FEATURES, features.render(found))
    return f"{step.feature} {step.do}"


def _close_torn(layout: Layout) -> list[str]:
    """End a torn last line of raw.md, before lines are counted."""
    state = State(layout)
    size = state.length(names.RAW)
    if not size or state.part(names.RAW, size - 1, 1) == b"\n":
        return []
    with state.lock("state"):
        state.add(names.RAW, b"")
    return ["closed the torn last line of memory/raw.md"]


def _restore(layout: Layout, died: DeadRun) -> RestoredRun:
    """Restore the state of an unconfined run as bytes, and only then parse it."""
    run = StartedRun(layout=layout, context=died.context or _unknown(layout, died.run))
    outcome, said = Outcome.begun(layout, run.context.tree), ""
    if not run.sealed:
        reconcile.state(run, outcome)
    tag = f"{mission.read(layout).id}/{run.id}"
    if killed := supervise.sweep(tag):
        said = f"; ended {len(killed)} processes it left"
        if not run.sealed:
            reconcile.state(run, outcome)
    where = run.context.temporary
    for begin in dict.fromkeys([temporary.begin(tag), temporary.begin(tag, where)]):
        worktrees.forget_below(layout.folders.top, begin, empty=lease.is_alone(layout))
    temporary.remove_tagged(tag, where)
    if died.context is None:
        row = encoding.dump_json(run.context.asdict())
        State(layout).put(names.of_run(run.id, names.CONTEXT), row, mode=files.PRIVATE)
    settings = config.load(layout)
    outcome.idle = died.context is not None and not any(map(os.path.lexists, (run.paths.stream, run.paths.receipts)))
    reported = transcript.reported(run.paths.stream)
    # without a transcript the cost of an agent is unknown, not zero
    outcome.answer.usages = reported.usages or [Usage(agent=name) for name in _asked(run, settings)[:1]]
    since = time.time() - os.stat(run.paths.context).st_mtime
    seconds = round(max(0.0, min(reported.seconds, since)), 3)  # an agent can write its own transcript
    return RestoredRun(run=run, outcome=outcome, settings=settings, seconds=seconds, said=said)


def _unknown(layout: Layout, run_id: str) -> RunContext:
    """A context for a run without one: the present state."""
    now, state = workplace.position(layout), State(layout)
    return RunContext(
        run=run_id,
        role=UNKNOWN,
        **{**now.asdict(), "feature": "", "trigger": "", "reason": "", "before": ""},
        at=clock.stamp(clock.now()),
        agent=[],
        attempt=1,
        untracked={},
        live=recovery_evidence.ledger(layout),
        raw=[state.length(names.RAW), str(state.generation())],
        process={},
    )


def _asked(run: StartedRun, settings: Config) -> list[str]:
    """The agents of the run, in turn; for a run without a context all configured ones, costly ones first."""
    if run.context.role != UNKNOWN:
        return run.context.agent
    return sorted(
        config.every_agent(settings), key=lambda name: not registry.costs(name, settings.agents.get(name, {}))
    )


def _settle(step: RecoveryStep, dead: RestoredRun) -> None:
    """Apply the step to the run's commit, its tree and its feature."""
    run, outcome = dead.run, dead.outcome
    outcome.begin_changes()
    outcome.take_queue(outcome.features, step.feature)
    outcome.landing.commit = step.commit
    if step.do == recovery_plan.KILL:
        outcome.ended, outcome.reason = "killed", DIED
        outcome.reason += ", and nothing tells how it had opened" if run.context.role == UNKNOWN else ""
        outcome.reason += "" if run.context.folder else "; it worked in the project folder, which is left as it is"
    if step.do == recovery_plan.PUT_AWAY and outcome.feature:
        outcome.ended, outcome.reason = "killed", "the run died while it was put away"
        refs.set_one(run.layout.folders.top, worker.partial(run), step.commit)
        outcome.feature.note(outcome.at, run.id, "cut", text=f"killed: {outcome.reason}", run=run.id)
    if step.takes_tree:
        reconcile.tree(run, outcome)
        worker.cut_short(run, outcome)
    elif step.move and outcome.feature:
        features.move(outcome.feature, step.move)
        outcome.save()
    if run.context.folder and outcome.landing.commit:
        outcome.landing.unlanded = workplace.land(run.layout, mission.load(run.layout), outcome.landing.commit)
