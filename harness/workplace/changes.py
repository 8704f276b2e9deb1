"""What the mission, a feature or a run changed, as diffs between commits. Nothing is written, and no configured program
runs."""

from __future__ import annotations

from harness.base.errors import UsageFault
from harness.base.record import Record
from harness.git import dotgit, refs, repository
from harness.mission import features, mission, run_lookup, runs
from harness.mission.runs import RunResult
from harness.state.layout import Layout, command
from harness.workplace import workplace


class Change(Record):
    """A diff from the commit `old` to `new`, with a title for people."""

    title: str
    old: str
    new: str


def find(layout: Layout, name: str = "") -> list[Change]:
    """The changes of a feature or a run, oldest first; without a name, those of the mission since its start. A feature's
    commits in a row are one change. Raises UsageFault for an unknown name, and for a run that has not ended."""
    made = mission.load(layout)
    if not name:
        head = workplace.tip_commit(layout, made) or workplace.position(layout).head  # which raises
        return [Change(title=f"{made.id}: since its start", old=made.base_commit, new=head)]
    done = [one for one in runs.finished(layout) if one.feature == name][::-1]
    if done or any(one.id == name for one in features.load(layout)):
        return _of_runs(layout, name, done)
    where, run_id = run_lookup.find(layout, name)
    if (found := runs.result(where, run_id)) is None:
        raise UsageFault(f"{run_id} has not ended. What it does: {command('log')} {run_id}")
    return _of_runs(layout, found.feature or found.role, [found])


def text(layout: Layout, change: Change, *, stat: bool = False) -> bytes:
    """The unified diff of a change, or its files with counts. 1 git call."""
    return repository.diff(layout.folders.top, change.old, change.new, "--stat=100" if stat else "--patch")


def _of_runs(layout: Layout, name: str, done: list[RunResult]) -> list[Change]:
    """The changes of these runs: what landed, and what could not land since then."""
    landed = [(one.run, one.commit) for one in done if one.commit]
    after = [one.run for one in done][max((at + 1 for at, one in enumerate(done) if one.commit), default=0) :]
    kept = [(run, dotgit.commit_of(layout.folders.top, refs.PARTIAL + run)) for run in after]
    rows = [*landed, *((f"{run}, not landed", commit) for run, commit in kept if commit)]
    found: list[Change] = []
    for (title, commit), parent in zip(
        rows, repository.parents(layout.folders.top, [one for _, one in rows]), strict=True
    ):
        if found and found[-1].new == parent:
            found[-1] = Change(title=f"{found[-1].title}, {title}", old=found[-1].old, new=commit)
        else:
            found.append(Change(title=f"{name}: {title}", old=parent, new=commit))
    return found
