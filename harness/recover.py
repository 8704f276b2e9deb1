"""What died before: finished journals, dead runs settled as killed or rolled forward. Idempotent; the caller holds the
mission lock."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from itertools import islice

from harness import (
    closing,
    config,
    features,
    files,
    git,
    journal,
    misplaced,
    mission,
    objects,
    process,
    reconcile,
    roles,
    runs,
    scratch,
    usage,
    work,
)
from harness.current import Run
from harness.errors import BrokenFile, UsageFault
from harness.layout import Layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NEWEST = 20  # a run that died is the newest, but for what a person asked for since


def recover(layout: Layout) -> list[str]:
    """Settle everything that died; gives one line for each thing done."""
    dead = [run_id for run_id in runs.open_runs(layout) if runs.is_dead(layout, run_id)]
    moved = {run_id: misplaced.clear_way(layout, layout.run(run_id)) for run_id in dead}
    done = []
    with files.Lock(layout.state_lock):
        if journal.finish_journal(layout):
            done.append("finished a journal that a crash had left behind")
        for run_id, names in moved.items():
            _put_live(layout, run_id, names)
    for run_id, names in moved.items():
        said = _bury(layout, run_id, names)
        done.append(said + (f"; moved away what stood in the place of {', '.join(names)}" if names else ""))
        files.remove(layout.run(run_id).lock)
    return done + _unstick(layout) + _close_torn(layout)


def recover_misplaced(layout: Layout) -> list[str]:
    """As `recover`, where a run that died left something in a file's place over which whoever comes next would stumble;
    takes the mission lock for it."""
    dead = [run_id for run_id in runs.open_runs(layout) if runs.is_dead(layout, run_id)]
    if not any(misplaced.found(layout, layout.run(run_id)) for run_id in dead):
        return []
    lock = files.take_or_busy(layout.mission_lock, "The mission")
    try:
        return recover(layout)
    finally:
        lock.release()


def _put_live(layout: Layout, run_id: str, names: list[str]) -> None:
    """Put live files whose place was taken back as the ledger knows them, else as the run found them: a run cannot be
    settled without. What cannot be put back is told by whoever reads it."""
    known: dict[str, list[Any]] = {}
    if names:
        with suppress(BrokenFile, UsageFault, TypeError):
            known |= runs.context(layout, run_id).live
        with suppress(BrokenFile):
            known |= journal.read_ledger(layout)
    for name in names:
        path = os.path.join(layout.state, name)
        digest = str(known[name][0]) if name in known and path in layout.live() else ""
        if digest and os.path.exists(objects.path_of(layout, digest)):
            files.replace(path, objects.get(layout, digest))


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


def _bury(layout: Layout, run_id: str, moved: list[str]) -> str:
    paths = layout.run(run_id)
    if not os.path.exists(paths.context):
        if moved:
            process.sweep(f"{mission.load(layout).id}/{run_id}")
        if os.path.isdir(paths.folder) and not files.names(paths.folder):
            os.rmdir(paths.folder)
        return f"{run_id} died before it began"
    if any(result.run == run_id for result in islice(runs.books(layout), NEWEST)):
        return f"{run_id} had closed"
    run = _again(layout, run_id)
    stands = _config_stands(run)
    run.refused += moved
    _hear(run)
    killed = process.sweep(run.tag)
    scratch.clear_of(run.tag)
    _settle(run)
    closing.close(run)
    ended = f"; ended {len(killed)} processes it left" if killed else ""
    return f"{run_id} was {run.outcome}{ended}{stands}"


def _config_stands(run: Run) -> str:
    """Take config.toml into the ledger as it stands where it was changed after the run's last sign of life: who mends the
    configuration of an agent that hung does that. Says so; "" where there was nothing to take."""
    layout = run.layout
    try:
        ledger, data = journal.read_ledger(layout), files.read(layout.config)
    except BrokenFile:  # reconcile has an answer to a ledger that does not parse
        return ""
    if data is None or ledger.get("config.toml", [""])[0] == files.digest(data):
        return ""
    signs = [os.stat(path) for path in (run.paths.stream, run.paths.stderr, run.paths.context) if os.path.exists(path)]
    last, changed = max(max(sign.st_mtime, sign.st_ctime) for sign in signs), os.stat(layout.config)
    if min(changed.st_mtime, changed.st_ctime) <= last:  # no clock can be set back in both: it was the agent's own
        return ""
    journal.note_in_ledger(layout, ledger, layout.config, data)
    files.replace(layout.ledger, files.dump_json(ledger))
    return "; config.toml was changed after it died, and stands"


def _again(layout: Layout, run_id: str) -> Run:
    context = runs.context(layout, run_id)
    made = mission.load(layout)
    return Run(layout, made, config.load(layout), _role(layout, context.role), context)


def _hear(run: Run) -> None:
    """What the run spent before it died counts: what its transcript tells of agents, usage and time."""
    heard = usage.heard(run.paths.stream)
    run.usages = heard.usages
    if (
        not heard.usages and run.context.agent
    ):  # the transcript is gone, and somebody was asked: not counted is not free
        run.usages = [usage.Usage(agent=run.context.agent[0])]
    run.agent = run.usages[-1].agent if run.usages else ""
    since = time.time() - os.stat(run.paths.context).st_mtime
    run.started -= max(0.0, min(heard.seconds, since))  # the transcript is the agent's to write


def _role(layout: Layout, name: str) -> roles.Role:
    """The run's role; one that is gone meanwhile counts as one that changes nothing."""
    try:
        return roles.load(layout, name)
    except UsageFault:
        return roles.Role(name=name, summary="", reads=[], words="", common="", path="", script="")


def _settle(run: Run) -> None:
    """Roll forward a commit that carries the run's trailer; else the run was killed, and its tree is kept where it may be."""
    reconcile.state(run)
    run.features = features.load(run.layout)
    run.feature = features.find(run.features, run.context.feature) if run.context.feature else None
    head = git.standing(run.layout.project).head
    rolled = git.find_trailer(run.layout.project, head, run.id) if head != run.context.head else None
    if rolled:
        _roll_forward(run, rolled)
        return
    run.outcome, run.reason = "killed", "the run died before it closed"
    in_work = run.feature is not None and run.feature.status == "in_progress"
    if closing.head_moved(run):
        run.reason += "; HEAD or the branch has moved since, so the working folder was left alone"
        if in_work:
            _put_back(run)
    elif in_work:
        reconcile.tree(run)
        work.cut_short(run)


def _roll_forward(run: Run, commit: str) -> None:
    """The commit is durable and says whose it is: take index and feature where the run would have taken them."""
    run.commit = commit
    here = git.standing(run.layout.project)
    if (here.head, here.branch) == (commit, run.context.branch):
        git.clear_locks(run.layout.project, os.stat(run.paths.context).st_mtime)
        git.restore_head(run.layout.project, here)
    if run.feature is None or run.feature.status != "in_progress":
        return
    message = git.messages_between(run.layout.project, run.context.head, commit)[-1]
    if message.startswith("wip("):
        run.outcome, run.reason = "killed", "the run died while it was put away"
        git.set_ref(run.layout.project, f"refs/harness/partial/{run.id}", commit)
        run.feature.note(run.at, run.id, "cut", f"killed: {run.reason}", [run.id])
        _put_back(run)
    else:
        features.move(run.feature, "implemented")
        run.save()


def _put_back(run: Run) -> None:
    assert run.feature is not None
    features.move(run.feature, "back to failing" if run.context.before == "failing" else "back to todo")
    run.save()
