"""The recovery plan for dead runs. `plan` is pure: recovery executes it, and views show its result."""

from __future__ import annotations

from collections.abc import Sequence

from harness.base.record import Record
from harness.git import dotgit, refs
from harness.mission import features, lease
from harness.mission.features import Feature
from harness.mission.open_run import StartedRun
from harness.mission.runs import RunContext
from harness.state import committed_copy, journal, names
from harness.state.layout import Layout
from harness.state.state import State
from harness.workplace import workplace
from harness.workplace.recovery import recovery_evidence, unsettled_runs

TIDY, FORGET = "had closed", "died before it began"
COMPLETE, PUT_AWAY, KILL = "died after its commit", "died while it was put away", "died before it closed"
RELEASE = "was left in progress without a run"


class DeadRun(Record):
    """The remains of a dead run. `commit`: its commit; `cut`: its work is unfinished."""

    run: str
    closed: bool = False
    began: bool = True
    context: RunContext | None = None
    commit: str = ""
    cut: bool = False

    @property
    def open(self) -> bool:
        """Whether it began and did not close."""
        return not self.closed and (self.began or self.context is not None)


class RecoveryStep(Record):
    """One step for a run, or for a feature without a run; `do` names the reason. `move`: the feature's transition;
    `takes_tree`: the working folder is committed."""

    do: str
    run: str = ""
    feature: str = ""
    move: str = ""
    commit: str = ""
    takes_tree: bool = False


def plan(died: list[DeadRun], queue: list[Feature], busy: Sequence[str] = ()) -> list[RecoveryStep]:
    """The steps that settle these runs. `busy`: features claimed by live runs; others in progress are released."""
    waiting = {one.id: one for one in queue if one.status == "in_progress" and one.id not in busy}
    steps: list[RecoveryStep] = []
    for one in died:
        if not one.open:
            steps.append(RecoveryStep(do=TIDY if one.closed else FORGET, run=one.run))
            continue
        feature = waiting.pop(one.context.feature, None) if one.context else None
        steps.append(_settle(one, feature))
    return steps + [RecoveryStep(do=RELEASE, feature=one.id, move=back(one.attempts > 0)) for one in waiting.values()]


def _settle(one: DeadRun, feature: Feature | None) -> RecoveryStep:
    """Complete finished work that was committed; otherwise record the run as killed, and keep its tree where possible."""
    do = KILL if not one.commit else PUT_AWAY if one.cut and feature else COMPLETE
    step = RecoveryStep(do=do, run=one.run, commit=one.commit)
    if feature is None:
        return step
    has_tree = one.context is not None and one.context.folder != ""
    move = "implemented" if do == COMPLETE else back(one.context is not None and one.context.before == "failing")
    return step.replace(feature=feature.id, move=move, takes_tree=do == KILL and has_tree)


def back(failing: bool) -> str:
    """The transition that returns a feature to its status before the run."""
    return "back to failing" if failing else "back to todo"


def look(layout: Layout, run_id: str) -> DeadRun:
    """The remains of a dead run, without its commit; parses nothing that an agent may have changed, and writes nothing."""
    if recovery_evidence.closed(layout, run_id):
        return DeadRun(run=run_id, closed=True)
    context = recovery_evidence.context(layout, run_id)
    return DeadRun(run=run_id, context=context, began=context is not None or recovery_evidence.began(layout, run_id))


def locate(layout: Layout, one: DeadRun) -> DeadRun:
    """The same with its commit, after the state is restored."""
    if one.context is None:
        return one
    made, cut = (dotgit.commit_of(layout.folders.top, kind + one.run) for kind in (refs.KEEP, refs.PARTIAL))
    landed = made != "" and refs.is_ancestor(layout.folders.top, made, workplace.position(layout).head)
    return one.replace(commit=made if landed else "", cut=landed and cut == made)


def foreseen(layout: Layout) -> tuple[list[Feature], list[RecoveryStep]]:
    """The features before recovery's steps (journal finished, state restored), and the steps."""
    died = [locate(layout, look(layout, name)) for name in unsettled_runs.unsettled(layout)]
    data, state = journal.pending(layout, layout.path(names.FEATURES)), State(layout)
    if data is None:
        data, open_to = state.data(names.FEATURES), (one.context for one in died if one.context)
        exposed = any(not StartedRun(layout=layout, context=context).sealed for context in open_to)
        if exposed and committed_copy.is_kept(layout) and not state.is_ours(names.FEATURES, data):
            data = committed_copy.read(layout, names.FEATURES)
    queue = features.parse(data, layout.path(names.FEATURES))
    return queue, plan(died, queue, [one.feature for one in lease.alive(layout)])
