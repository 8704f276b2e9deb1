"""Carrying out what `recovery_plan` plans: finished journals, state put back, dead runs settled. Idempotent, killed anywhere
and done again; the caller holds the mission lock."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from harness.agents import registry
from harness.base import clock
from harness.base.errors import BrokenFile, UsageFault
from harness.base.record import Record
from harness.git import dotgit, repository
from harness.integrity import misplaced, mission_lock, reconcile, recovery_evidence, recovery_plan, unsettled
from harness.integrity.recovery_evidence import Evidence
from harness.integrity.recovery_plan import Died, Step
from harness.model import config, features, mission, runs
from harness.model.config import Config
from harness.model.open_run import Begun, Outcome
from harness.model.runs import Context
from harness.model.usage import Usage
from harness.process import supervise, temporary
from harness.run import closing, transcript
from harness.settle import worker
from harness.store import files, journal, migrations, objects
from harness.store.layout import Layout

UNKNOWN = "unknown"


class Restored(Record):
    """A run that died, once the state is put back: how long it took, and in `said` what was done besides."""

    run: Begun
    outcome: Outcome
    settings: Config
    seconds: float
    said: str


def recover_dead(layout: Layout) -> list[str]:
    """As `recover`, where somebody died or the books are short, and nobody else is at work; takes the mission lock for it."""
    if not unsettled.needs_recovery(layout):
        return []
    lock = mission_lock.MissionLock(layout)
    if not lock.take():
        return []
    try:
        return recover(layout)
    finally:
        lock.release()


def recover(layout: Layout, *, yielding: bool = False) -> list[str]:
    """Settle everything that died; gives one line for each thing done. With `yielding` what cannot be put back stays as it
    is, else it raises BrokenFile."""
    suspects, older = unsettled.unsettled(layout), migrations.is_due(layout)
    moved = {run_id: misplaced.clear_way(layout, layout.run(run_id)) for run_id in _with_lock(layout, suspects)}
    done = _finish_journal(layout, moved)
    yielded: list[str] | None = [] if yielding else None
    dead = suspects
    if suspects or unsettled.books_short(layout):
        opened = [run_id for run_id in moved if not recovery_evidence.closed(layout, run_id)]
        books = recovery_evidence.books(layout, opened, yielded)
        dead = unsettled.unsettled(layout, books)
        done += [] if dead else _mend_books(layout, books)
    died = [recovery_plan.look(layout, run_id) for run_id in dead]
    restored = {one.run: _restore(layout, one, moved.get(one.run, []), yielded) for one in died if one.open}
    migrations.migrate(layout)  # on bytes that are put back, and before any of them is parsed
    for step in recovery_plan.plan(died, _queue(layout, dead)):
        done.append(_carry_out(layout, step, restored, moved.get(step.run, [])))
    done += [f"took {name} as it stands" for name in dict.fromkeys(yielded or [])]
    done += [f"migrated the mission to format {migrations.FORMAT}"] if older else []
    return done + _close_torn(layout)


def _queue(layout: Layout, dead: list[str]) -> list[features.Feature]:
    """The features, where recovery may have to move one."""
    data = files.read(layout.features) or b""
    return features.load(layout) if dead or b'"status":"in_progress"' in data else []


def _carry_out(layout: Layout, step: Step, restored: dict[str, Restored], moved: list[str]) -> str:
    """One step of the plan; gives its line."""
    if step.do == recovery_plan.RELEASE:
        return _release(layout, step)
    run, line = layout.run(step.run), f"{step.run} {step.do}"
    if step.do == recovery_plan.TIDY:
        _put_live(layout, moved)
        line += _aside(moved)
    elif step.do == recovery_plan.FORGET:
        _remove_empty(run.folder)
    else:
        dead = restored[step.run]
        _settle(step, dead)
        closing.close(dead.run, dead.outcome, dead.settings, dead.seconds)
        line = f"{step.run} was {dead.outcome.ended}{dead.said}{_aside(moved)}"
    files.remove(run.lock)
    return line


def _with_lock(layout: Layout, suspects: list[str]) -> list[str]:
    """Those that certainly died; the last where all have lost their lock, or where the books make it seem so."""
    return [run_id for run_id in suspects if os.path.lexists(layout.run(run_id).lock)] or suspects[-1:]


def _finish_journal(layout: Layout, moved: dict[str, list[str]]) -> list[str]:
    """Carry out a journal that a crash left. One that is not ours was left by who died, and is moved to what is refused."""
    files.make_folder(layout.locks)
    with files.Lock(layout.state_lock):
        try:
            return ["finished a journal that a crash had left behind"] if journal.finish_journal(layout) else []
        except BrokenFile as fault:
            if not moved:
                raise
            run_id, name = list(moved)[-1], misplaced.name_of(layout, fault.path)
            misplaced.move(layout.run(run_id), name, fault.path)
            moved[run_id].append(name)
            return []


def _mend_books(layout: Layout, books: bytes) -> list[str]:
    """Where nobody died and lines of the books are missing all the same."""
    with files.Lock(layout.state_lock):
        files.replace(layout.books, books)
        journal.adopt(layout)
    return [f"made {layout.relative(layout.books)} again from the results of finished runs"]


def _release(layout: Layout, step: Step) -> str:
    """Nobody runs, so nobody is working on the feature, whatever became of the run that was."""
    found = features.load(layout)
    features.move(features.find(found, step.feature), step.move)
    changes = journal.Journal(layout)
    changes.replace(layout.features, features.render(found))
    changes.commit()
    return f"{step.feature} {step.do}"


def _close_torn(layout: Layout) -> list[str]:
    """A line of raw.md that the power cut short becomes a line of its own, before anything else counts lines."""
    size = files.length(layout.raw)
    if not size or files.read_from(layout.raw, size - 1, 1) == b"\n":
        return []
    with files.Lock(layout.state_lock):
        files.add_line(layout.raw, b"")
    return ["closed the torn last line of memory/raw.md"]


def _restore(layout: Layout, died: Died, moved: list[str], yielded: list[str] | None) -> Restored:
    """Put the state back, on bytes, and only then parse it."""
    said = _config_stands(layout, died.run)
    run = Begun(layout=layout, context=died.context or _unknown(layout, died.run))
    outcome = Outcome(journal=journal.Journal(layout), tree=run.context.tree, refused=list(moved))
    before = Evidence(run=run, yielded=yielded)
    _context_back(run, outcome)
    reconcile.state(run, outcome, before, [])
    tag = f"{mission.read(layout).id}/{run.id}"
    if killed := supervise.sweep(tag):
        reconcile.state(run, outcome, before, [])
        said = f"; ended {len(killed)} processes it left{said}"
    temporary.clear_of(tag)
    settings = config.load(layout)
    heard = transcript.heard(run.paths.stream)
    # the transcript may be gone; where somebody was asked, not counted is not free
    outcome.usages = heard.usages or [Usage(agent=name) for name in _asked(run, settings)[:1]]
    since = time.time() - os.stat(run.paths.context).st_mtime
    seconds = round(max(0.0, min(heard.seconds, since)), 3)  # the transcript is the agent's to write
    return Restored(run=run, outcome=outcome, settings=settings, seconds=seconds, said=said)


def _put_live(layout: Layout, names: list[str]) -> None:
    """Put live files whose place was taken back as the ledger knows them."""
    ledger = journal.read_ledger(layout)
    for name in names:
        path = os.path.join(layout.state, name)
        if name in ledger and path in layout.live():
            files.replace(path, objects.get(layout, str(ledger[name][0])))


def _aside(moved: list[str]) -> str:
    return f"; moved away what stood in the place of {', '.join(moved)}" if moved else ""


def _remove_empty(folder: str) -> None:
    """The folder of a run that never began, with what was being written there."""
    for name in files.names(folder):
        files.remove(os.path.join(folder, name))
    if os.path.isdir(folder):
        os.rmdir(folder)


def _context_back(run: Begun, outcome: Outcome) -> None:
    """context.json as the run's lock has it, or as far as we know, where it is gone or does not parse."""
    path, lock = run.paths.context, run.paths.lock
    with suppress(BrokenFile, UsageFault):
        if runs.context(run.layout, run.id) == run.context:
            return
    name = misplaced.name_of(run.layout, path)
    if os.path.lexists(path):
        misplaced.move(run.paths, name, path)
    outcome.refused += [name] if name not in outcome.refused else []
    files.replace(path, files.dump_json(run.context.asdict()), files.PRIVATE)
    if os.path.exists(lock):  # when the run began tells what git's locks are its own, and how long it took
        began = os.stat(lock).st_mtime
        os.utime(path, (began, began))


def _unknown(layout: Layout, run_id: str) -> Context:
    """The context of a run whose own is nowhere: all stands as it is now, and whoever could have been asked was."""
    standing, raw = repository.standing(layout.project), files.read(layout.raw) or b""
    return Context(
        run=run_id,
        role=UNKNOWN,
        **{**standing.asdict(), "feature": "", "trigger": "", "reason": "", "before": ""},
        at=clock.stamp(clock.now()),
        agent=[],
        attempt=1,
        untracked={},
        live=recovery_evidence.ledger(layout, run_id),
        raw=[len(raw), files.digest(raw)],
        identity=reconcile.identity_copies(layout),
        process={},
    )


def _config_stands(layout: Layout, run_id: str) -> str:
    """Take config.toml into the ledger as it stands where it parses and was changed after the run's last sign of life: who
    mends the configuration of an agent that hung does that. Says so; "" where there was nothing to take."""
    run, data = layout.run(run_id), files.read(layout.config)
    ledger = recovery_evidence.ledger(layout, run_id)
    if data is None or not ledger or ledger.get("config.toml", [""])[0] == files.digest(data):
        return ""
    signs = [os.stat(path) for path in (run.stream, run.stderr, run.context, run.lock) if os.path.exists(path)]
    last = max((max(sign.st_mtime, sign.st_ctime) for sign in signs), default=time.time())
    changed = os.stat(layout.config)
    if min(changed.st_mtime, changed.st_ctime) <= last:  # no clock can be set back in both: it was the agent's own
        return ""
    try:
        config.parse(files.decode(data, layout.config), layout.config)
    except BrokenFile:
        return f"; config.toml does not parse and was put back, yours is in {layout.relative(run.refused)}"
    journal.note_in_ledger(layout, ledger, layout.config, data)
    files.replace(layout.ledger, files.dump_json(ledger))
    return "; config.toml was changed after it died, and stands"


def _asked(run: Begun, settings: Config) -> list[str]:
    """Whom the run could ask, in turn; of one that nothing is known of, those first that are not free."""
    if run.context.role != UNKNOWN:
        return run.context.agent
    own = [name for table in settings.roles.values() for name in config.names(table.get("agent"))]
    return sorted(
        dict.fromkeys([*settings.agent, *own]),
        key=lambda name: not registry.costs(name, settings.agents.get(name, {})),
    )


def _settle(step: Step, dead: Restored) -> None:
    """What the step does with the run's commit, its tree and its feature."""
    run, outcome = dead.run, dead.outcome
    outcome.take_queue(features.load(run.layout), step.feature)
    outcome.commit = step.commit
    if step.commit:
        _take_index(run, step.commit)
    if step.do == recovery_plan.KILL:
        outcome.ended, outcome.reason = "killed", "the run died before it closed"
        outcome.reason += ", and nothing tells how it had opened" if run.context.role == UNKNOWN else ""
        if step.moved:
            outcome.reason += "; HEAD or the branch has moved since, so the working folder was left alone"
    if step.do == recovery_plan.PUT_AWAY and outcome.feature:
        outcome.ended, outcome.reason = "killed", "the run died while it was put away"
        repository.set_ref(run.layout.project, f"refs/harness/partial/{run.id}", step.commit)
        outcome.feature.note(outcome.at, run.id, "cut", text=f"killed: {outcome.reason}", run=run.id)
    if step.takes_tree:
        reconcile.tree(run, outcome)
        worker.cut_short(run, outcome)
    elif step.move and outcome.feature:
        features.move(outcome.feature, step.move)
        outcome.save()


def _take_index(run: Begun, commit: str) -> None:
    """The commit is durable and says whose it is: take the index where the run would have taken it."""
    here = repository.standing(run.layout.project)
    if (here.head, here.branch) == (commit, run.context.branch):
        dotgit.clear_locks(run.layout.project, os.stat(run.paths.context).st_mtime)
        repository.restore_head(run.layout.project, here)
