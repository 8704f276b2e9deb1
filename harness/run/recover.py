"""What died before: finished journals, dead runs settled as killed or rolled forward. Idempotent; the caller holds the
mission lock."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from harness.agents import registry
from harness.base import clock
from harness.base.errors import BrokenFile, UsageFault
from harness.git import dotgit, repository
from harness.integrity import misplaced, mission_lock, reconcile, recovery_evidence, unsettled
from harness.model import config, features, mission, roles, runs, usage
from harness.model.config import Config
from harness.model.mission import Mission
from harness.model.open_run import Run
from harness.model.runs import Context
from harness.process import supervise, temporary
from harness.run import closing
from harness.settle import worker
from harness.store import files, journal, migrations, objects
from harness.store.layout import Layout

UNKNOWN = "unknown"
NOBODYS = Mission(id="", created="", host="", branch="", base_commit="")  # until the state is back, and may be parsed


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
    """Settle everything that died; gives one line for each thing done. With `yielding` what cannot be put back stands as it
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
    for run_id in dead:
        done.append(_bury(layout, run_id, moved.get(run_id, []), yielded))
        files.remove(layout.run(run_id).lock)
    done += [f"took {name} as it stands" for name in dict.fromkeys(yielded or [])]
    migrations.migrate(layout)
    done += [f"migrated the mission to format {migrations.FORMAT}"] if older else []
    return done + _unstick(layout) + _close_torn(layout)


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


def _unstick(layout: Layout) -> list[str]:
    """Nobody runs, so nobody is working on a feature, whatever became of the run that was."""
    data = files.read(layout.features) or b""
    if b'"status":"in_progress"' not in data:
        return []
    found = features.parse(data, layout.features)
    stuck = [feature for feature in found if feature.status == "in_progress"]
    for feature in stuck:
        features.move(feature, "back to failing" if feature.attempts else "back to todo")
    changes = journal.Journal(layout)
    changes.replace(layout.features, features.render(found))
    changes.commit()
    return [f"{feature.id} was left in progress by nobody" for feature in stuck]


def _close_torn(layout: Layout) -> list[str]:
    """A line of raw.md that the power cut short becomes a line of its own, before anything else counts lines."""
    size = files.length(layout.raw)
    if not size or files.read_from(layout.raw, size - 1, 1) == b"\n":
        return []
    with files.Lock(layout.state_lock):
        files.add_line(layout.raw, b"")
    return ["closed the torn last line of memory/raw.md"]


def _bury(layout: Layout, run_id: str, moved: list[str], yielded: list[str] | None) -> str:
    if recovery_evidence.closed(layout, run_id):
        _put_live(layout, moved)
        return f"{run_id} had closed{_aside(moved)}"
    context = recovery_evidence.context(layout, run_id)
    if context is None and not recovery_evidence.began(layout, run_id):
        _remove_empty(layout.run(run_id).folder)
        return f"{run_id} died before it began"
    stands = _config_stands(layout, run_id)
    run = Run(layout, NOBODYS, Config(), _role(context), context or _unknown(layout, run_id), [])
    run.refused, run.yielded = list(moved), yielded
    killed = _restore(run)
    temporary.clear_of(run.tag)
    _hear(run)
    _settle(run)
    closing.close(run)
    ended = f"; ended {len(killed)} processes it left" if killed else ""
    return f"{run_id} was {run.outcome}{ended}{stands}{_aside(moved)}"


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


def _restore(run: Run) -> list[int]:
    """Put the state back, on bytes, and only then parse it; gives the processes that had to be ended for that to last."""
    _context_back(run)
    reconcile.state(run)
    run.mission = mission.read(run.layout)
    killed = supervise.sweep(run.tag)
    if killed:
        reconcile.state(run)
    migrations.migrate(run.layout)
    mission.check_format(run.layout)
    run.settings = config.load(run.layout)
    return killed


def _context_back(run: Run) -> None:
    """context.json as the run's lock has it, or as far as we know, where it is gone or does not parse."""
    path, lock = run.paths.context, run.paths.lock
    with suppress(BrokenFile, UsageFault):
        if runs.context(run.layout, run.id) == run.context:
            return
    name = misplaced.name_of(run.layout, path)
    if os.path.lexists(path):
        misplaced.move(run.paths, name, path)
    run.refused += [name] if name not in run.refused else []
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
        feature="",
        trigger="",
        reason="",
        at=clock.stamp(clock.now()),
        agent=[],
        attempt=1,
        before="",
        head=standing.head,
        branch=standing.branch,
        tree=standing.tree,
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


def _hear(run: Run) -> None:
    """What the run spent before it died counts: what its transcript tells of agents, usage and time."""
    heard = usage.heard(run.paths.stream)
    run.usages = heard.usages
    if not heard.usages:  # the transcript is gone; where somebody was asked, not counted is not free
        run.usages = [usage.Usage(agent=name) for name in _asked(run)[:1]]
    run.agent = run.usages[-1].agent if run.usages else ""
    since = time.time() - os.stat(run.paths.context).st_mtime
    run.started -= max(0.0, min(heard.seconds, since))  # the transcript is the agent's to write


def _asked(run: Run) -> list[str]:
    """Whom the run could ask, in turn; of one that nothing is known of, those first that are not free."""
    if run.role.name != UNKNOWN:
        return run.context.agent
    own = [name for table in run.settings.roles.values() for name in config.names(table.get("agent"))]
    return sorted(
        dict.fromkeys([*run.settings.agent, *own]),
        key=lambda name: not registry.costs(name, run.settings.agents.get(name, {})),
    )


def _role(context: Context | None) -> roles.Role:
    """The run's role, of which no more is needed than its name: its words are asked for no more, and may be gone."""
    name = context.role if context else UNKNOWN
    return roles.Role(name=name, summary="", reads=[], words="", common="", path="", script="")


def _settle(run: Run) -> None:
    """Roll forward a commit that carries the run's trailer; else the run was killed, and its tree is kept where it may be."""
    run.features = features.load(run.layout)
    run.feature = next((one for one in run.features if one.id == run.context.feature), None)
    head = repository.standing(run.layout.project).head
    rolled = repository.find_trailer(run.layout.project, head, run.id) if head != run.context.head else None
    if rolled:
        _roll_forward(run, *rolled)
        return
    run.outcome, run.reason = "killed", "the run died before it closed"
    if run.role.name == UNKNOWN:
        run.reason += ", and nothing tells how it had opened"
    in_work = run.feature is not None and run.feature.status == "in_progress"
    if closing.head_moved(run):
        run.reason += "; HEAD or the branch has moved since, so the working folder was left alone"
        if in_work:
            _put_back(run)
    elif in_work:
        reconcile.tree(run)
        worker.cut_short(run)


def _roll_forward(run: Run, commit: str, outcome: str) -> None:
    """The commit is durable and says whose it is: take index and feature where the run would have taken them."""
    run.commit = commit
    here = repository.standing(run.layout.project)
    if (here.head, here.branch) == (commit, run.context.branch):
        dotgit.clear_locks(run.layout.project, os.stat(run.paths.context).st_mtime)
        repository.restore_head(run.layout.project, here)
    if run.feature is None or run.feature.status != "in_progress":
        return
    if outcome in runs.UNFINISHED:
        run.outcome, run.reason = "killed", "the run died while it was put away"
        repository.set_ref(run.layout.project, f"refs/harness/partial/{run.id}", commit)
        run.feature.note(run.at, run.id, "cut", text=f"killed: {run.reason}", run=run.id)
        _put_back(run)
    else:
        features.move(run.feature, "implemented")
        run.save()


def _put_back(run: Run) -> None:
    assert run.feature is not None
    features.move(run.feature, "back to failing" if run.context.before == "failing" else "back to todo")
    run.save()
