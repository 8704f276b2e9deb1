"""What the mission, a feature or a run changed, as diffs of commits. Nothing is written, and no configured program runs."""

from __future__ import annotations

from harness.base.errors import UsageFault
from harness.git import dotgit, refs, repository
from harness.mission import features, mission, run_lookup, runs
from harness.mission.runs import RunResult
from harness.state.layout import Layout, command
from harness.workplace import workplace


def text(layout: Layout, name: str = "", *, stat: bool = False) -> bytes:
    """The diff of a feature or a run, by default of the mission since its start; with `stat` only the files. A line with #
    begins each part: a feature's commits in a row are one. Raises UsageFault for an unknown name, or a run at work."""
    form, top, made = "--stat=100" if stat else "--patch", layout.folders.top, mission.load(layout)
    if name:
        found = _of_runs(top, name, _runs(layout, name))
    else:
        head = workplace.tip_commit(layout, made) or workplace.position(layout).head  # which raises
        found = [(f"{made.id}: since its start", made.base_commit, head)]
    parts = [f"# {title}\n".encode() + repository.diff(top, old, new, form) for title, old, new in found]
    return b"".join(parts) or f"# {name} changed nothing\n".encode()


def _runs(layout: Layout, name: str) -> list[RunResult]:
    """The finished runs of a feature, oldest first, or the run of this name."""
    done = [one for one in runs.finished(layout) if one.feature == name][::-1]
    if done or any(one.id == name for one in features.load(layout)):
        return done
    where, run_id = run_lookup.find(layout, name)
    if found := runs.result(where, run_id):
        return [found]
    raise UsageFault(f"{run_id} has not ended. What it does: {command('log')} {run_id}")


def _of_runs(top: str, name: str, done: list[RunResult]) -> list[tuple[str, str, str]]:
    """(title, old, new) of what these runs landed, and of what could not land since then."""
    rows: list[tuple[str, str]] = []
    for one in done:
        rows = [row for row in rows if not (one.commit and row[0].endswith(", not landed"))]
        kept = "" if one.commit else dotgit.commit_of(top, refs.PARTIAL + one.run)
        rows += [(one.run, one.commit)] if one.commit else [(f"{one.run}, not landed", kept)] if kept else []
    found: list[tuple[str, str, str]] = []
    for title, commit in rows:
        parent = repository.commit_of(top, commit + "^")
        before, old, _ = found.pop() if found and found[-1][2] == parent else (f"{name}:", parent, parent)
        found.append((f"{before} {title}", old, commit))
    return found
