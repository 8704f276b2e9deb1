"""The workspace of a run's agents; a mission without one costs only a few stat calls."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from harness.agents import registry
from harness.base import console, encoding
from harness.git import contents, dotgit, repository
from harness.mission import config
from harness.mission.config import Config
from harness.mission.open_run import Outcome, StartedRun
from harness.state import names
from harness.state.layout import Layout, command
from harness.state.state import State
from harness.workplace import workplace
from harness.workspace import acceptance, grants, places, snapshot
from harness.workspace.disk_reader import reader_of
from harness.workspace.snapshot import WorkspaceSnapshot


def is_there(layout: Layout, settings: Config, folder: str) -> bool:
    """Whether the checkout or an outer layer has workspace files, or a run ever changed some."""
    more = settings.workspace.get("additional_context", ())
    return places.is_there(layout, folder, config.user_of(settings), more, layout.path(names.WORKSPACE_LOG))


def look(
    layout: Layout, settings: Config, head: str, folder: str, reads: Collection[str], agents: Sequence[str]
) -> WorkspaceSnapshot | None:
    """The workspace snapshot of a run's agents at the commit `head` in the checkout `folder`, or None. Prints which
    agents read unaccepted changes by themselves. Raises BrokenFile for a malformed workspace file."""
    folder = folder or layout.folders.top
    pages = "memory" in reads and State(layout).exists(names.MEMORY)
    if not (pages or is_there(layout, settings, folder) or reader_of(layout, head, "", (), {}).paths):
        return None

    own = {name: registry.own_reading(name, settings.agents.get(name, {})) for name in agents}
    readings = [snapshot.CliReading(files=one[0], skills=one[1], instead=one[3]) for one in own.values()]
    found = snapshot.gather(layout, head, settings, reads, readings, folder)
    waiting = {one.path.removeprefix(layout.folders.prefix) for one in found.waiting}
    for name, (files, _, silenced, _) in own.items():
        if known := sorted(waiting.intersection(() if silenced and found.told else files)):
            console.print_line(f"  {name} reads {', '.join(known)} by itself, as a run left it")
    return found


def commit_of(layout: Layout) -> str:
    """The commit of the effective workspace: the mission's, else the checked-out one; "" without one (the disk counts).
    A mission committed in the repository is ignored until it is accepted."""
    if os.path.exists(layout.path(names.FORMAT)) and grants.of_state(layout).is_accepted(layout):
        return str(workplace.position(layout).head)
    return dotgit.commit(layout.folders.top) if os.path.lexists(f"{layout.folders.top}/.git") else ""


def committed(layout: Layout, commit: str, path: str) -> dict[str, str]:
    """{path in the project: blob} of the files of a commit that are, or lie below, this path in the project."""
    found = contents.entries(layout.folders.top, commit, [layout.folders.prefix + path])
    return {name[len(layout.folders.prefix) :]: entry.blob for name, entry in found.items()}


def committed_bytes(layout: Layout, commit: str, path: str) -> bytes | None:
    """One file of a commit; None if it has none at this path in the project."""
    blob = committed(layout, commit, path).get(path)
    return contents.blobs(layout.folders.top, [blob])[blob] if blob else None


def check_state(layout: Layout) -> None:
    """Raise Unavailable if the repository has a `.harness`, with hooks and roles, that no person has accepted."""
    grants.check_state(layout)


def keep(run: StartedRun, found: WorkspaceSnapshot | None) -> None:
    """Store the run's snapshot outside its prompt."""
    if found is not None:
        snapshot.keep(run.layout, run.id, found)


def kept_of(where: Layout, run: str) -> WorkspaceSnapshot | None:
    """The stored snapshot of a past run, or None."""
    if not State(where).exists(names.of_run(run, names.WORKSPACE)):
        return None

    return snapshot.kept(where, run)


def again(where: Layout, run: str, target: Layout) -> WorkspaceSnapshot | None:
    """Copy the snapshot of a past run for a replay in `target`."""
    if not State(where).exists(names.of_run(run, names.WORKSPACE)):
        return None

    return snapshot.copied(where, run, target)


def note_changes(run: StartedRun, outcome: Outcome, settings: Config) -> None:
    """Record workspace changes of the run's commit; until a person accepts them, the previous versions stay effective."""
    layout = run.layout
    if not outcome.landing.commit or outcome.work.changed == []:
        return
    parent = outcome.landing.commit + "^"
    changed = outcome.work.changed
    if changed is None:  # recovery found only the commit
        changed = [path for _, path in repository.changed(layout.folders.top, parent, outcome.landing.commit)]
    more = [*settings.workspace.get("additional_context", ())]
    given = State(layout).exists(names.of_run(run.id, names.WORKSPACE))
    if given or layout.folders.prefix + places.IMPORTING in changed:
        more += [path for one in (parent, outcome.landing.commit) for path in snapshot.imported(layout, one)]
    paths = places.watched(layout, changed, more, registry.READ_BY_CLIS)
    if not paths:
        return

    rows = acceptance.changed(layout, run.id, outcome.landing.commit, parent, paths, outcome.at)
    outcome.changes.append(names.WORKSPACE_LOG, acceptance.rendered(rows))
    outcome.landing.unaccepted = [row.path for row in rows if row.verb == acceptance.CHANGED]


def playbooks(layout: Layout, head: str) -> dict[str, bytes | None]:
    """{path in the project: effective bytes, None for no file} of playbooks whose changes by runs wait for a person at
    this commit. 0 git calls without any."""
    rows = acceptance.newest(layout) if State(layout).length(names.WORKSPACE_LOG) else {}
    known = {
        path: row
        for path, row in rows.items()
        if places.kind_of(path[len(layout.folders.prefix) :], ()) == places.PLAYBOOKS
    }
    if not known:
        return {}
    found = acceptance.at(layout, head, [*known], known)
    texts = found.read(one.path for one in found.waiting)
    return {one.path[len(layout.folders.prefix) :]: texts.get(one.path) for one in found.waiting}


def words(waits: Sequence[str]) -> list[str]:
    """The message for a person about waiting workspace files."""
    return (
        [f"runs changed {encoding.few(waits)}; what counted before counts until: {command('workspace accept')}"]
        if waits
        else []
    )


def waiting(layout: Layout) -> list[str]:
    """The workspace paths that wait for a person at the mission's position. 0 git calls if no run changed any."""
    if not State(layout).length(names.WORKSPACE_LOG):
        return []

    known = acceptance.newest(layout)
    return [one.path for one in acceptance.at(layout, workplace.position(layout).head, [*known], known).waiting]
