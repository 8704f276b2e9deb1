"""`remove`: deletes a mission for good; and finds what missions that are gone left on this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from glob import escape, iglob

from harness.base import clock, schema
from harness.base.errors import LockBusy, UsageFault
from harness.base.record import Record
from harness.git import landing, refs, repository
from harness.mission import lease, mission, run_lookup
from harness.process import temporary
from harness.run import starting
from harness.state import files, names
from harness.state.layout import Layout, command, repository_of, state_home
from harness.state.state import State
from harness.workplace import mission_lock, run_detection, workplace

DEEP = ("", "*/", "*/*/", "*/*/*/")  # where below its top a tree has the link to the state
LINKS = (f".harness/{names.SHIM}", ".harness")  # the second in trees that an older version made
QUIET_SECONDS = 86400


class Remains(Record):
    """What there is of a mission: `paths` with their `bytes`, and refs of the project `of`. `notes`: what gets lost, or stays."""

    mission: str
    of: str
    paths: dict[str, int]
    refs: list[str] = []
    notes: list[str] = []

    @property
    def words(self) -> str:
        """Their number and size."""
        return f"{len(self.paths)} folders, {sum(self.paths.values()) / 1e6:.1f} MB, {len(self.refs)} refs"


def find(layout: Layout, name: str) -> Remains:
    """What `remove` deletes. Raises UsageFault for an unknown mission and one of another folder, LockBusy if it runs."""
    run_detection.refuse(layout, "remove")
    where, rest = (
        run_lookup.within(layout, name) if mission.exists(layout) or _archived(layout, name) else (layout, name)
    )
    if rest or mission.read(where).id != name:
        found = _elsewhere(name)
        top = repository_of(found.of) if found.of else ""
        found.refs = [*refs.positions(top, f"refs/harness/{name}")] if top else []
        return found
    if not where.archived and (mission_lock.looping(layout) or lease.alive(layout)):
        raise LockBusy(f"{name} is under way. Stop it, or wait for it to end: {command('status')}")
    workplace.use(where)
    project, made = layout.folders.top, mission.read(where)
    of_runs = [kind + run for run in State(where).list(names.RUNS) for kind in (refs.KEEP, refs.PARTIAL)]
    found = Remains(
        mission=name, of=layout.folders.project, paths=_outside(name, where), notes=[f"{made.branch} stays"]
    )
    found.paths = {**found.paths, where.state: files.size_below(where.state)}
    if not where.archived:
        stays = [layout.path(one) for one in (names.ARCHIVED, names.SESSIONS, names.SANDBOXES)]
        found.paths[where.state] -= sum(map(files.size_below, stays))
        found.notes += [f"archive, sessions, config.toml and roles in {layout.shown('')} stay"]
    found.refs = [*refs.positions(project, f"refs/harness/{name}", *of_runs)]
    tip = workplace.tip_commit(where, made)
    if tip and not ((at := landing.tip(project, made.branch)) and refs.is_ancestor(project, tip, at)):
        found.notes += [
            f"{tip[:12]} is its newest commit, and not on {made.branch}. To keep it: git branch NAME {tip[:12]}"
        ]
    return found


def _archived(layout: Layout, name: str) -> bool:
    return schema.is_name(name) and mission.exists(Layout(layout.folders.project, layout.archive_of(name)))


def _elsewhere(name: str) -> Remains:
    """What is left of a mission that is not in this folder."""
    home, paths = (home_of(name), _outside(name)) if re.fullmatch(mission.ID, name) else ("", {})
    if home and _lives(home, name):
        raise UsageFault(f"{name} is in another folder: {command('remove')} {name} there, in {os.path.dirname(home)}")
    if not paths:
        raise UsageFault(f"There is no mission '{name}', and nothing is left of one. See: {command('doctor')}")
    return Remains(mission=name, of=os.path.dirname(home), paths=paths)


def _outside(name: str, where: Layout | None = None) -> dict[str, int]:
    """The mission's folders outside its project, with their sizes: trees, the committed copy, temporary folders."""
    home = where.state if where else home_of(name)
    copy = [Layout(os.path.dirname(home), home).committed] if home else []
    begin = temporary.begin(name)
    temporaries = [path for path in iglob(f"{escape(begin)}*") if os.lstat(path).st_uid == os.getuid()]
    found = [os.path.dirname(workplace.folder_of(name)), *copy, *temporaries]
    return {path: files.size_below(path) for path in found if os.path.lexists(path)}


def home_of(name: str) -> str:
    """The state folder of a mission, as its trees name it, whether it exists or not; "" if they do not."""
    trees = f"{escape(os.path.dirname(workplace.folder_of(name)))}/{workplace.TREES}[0-9]*/"
    links = (link for deep in DEEP for at in LINKS for link in iglob(f"{trees}{deep}{at}") if os.path.islink(link))
    return next((os.readlink(link).removesuffix("/" + names.SHIM) for link in links), "")


def _lives(home: str, name: str) -> bool:
    """Whether the mission is in this state folder."""
    return name.encode() in (State(Layout(os.path.dirname(home), home)).data(names.MISSION) or b"")


def leftovers() -> Iterator[Remains]:
    """What is left of missions whose folder is gone or has another mission; temporary folders after a day."""
    known = [name for name in files.names(state_home()) if re.fullmatch(mission.ID, name)]
    for name in known:
        if (home := home_of(name)) and not _lives(home, name):
            yield _elsewhere(name)
    begun = (re.match(rf"harness-({mission.ID})-", one) for one in files.names(temporary.base()))
    for name in sorted({one[1] for one in begun if one} - set(known)):
        paths = _outside(name)
        if paths and max(os.lstat(path).st_mtime for path in paths) < clock.now() - QUIET_SECONDS:
            yield Remains(mission=name, of="", paths=paths)


def remove(layout: Layout, found: Remains) -> None:
    """Delete all of it; the mission's own files last, so that it can be repeated after a kill."""
    where = Layout(found.of) if found.of else layout
    if mission.exists(layout) and mission.read(layout).id == found.mission:
        starting.put_away(layout, abandon=True, starts=False)
    for ref in found.refs:
        repository.delete_ref(where.folders.top, ref)
    if repository_of(where.folders.project):
        workplace.remove_trees(where, found.mission)
    for path in found.paths:
        if path != layout.state:
            temporary.remove(path)
    if found.of == layout.folders.project:
        temporary.remove(layout.archive_of(found.mission))
