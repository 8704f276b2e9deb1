"""Archives a mission: moves its whole state to `.harness/archive/<id>`, so that the next one can begin in its folder.

Its commits and refs stay in the repository; config.toml and roles also stay for the next mission. The file `archiving` is
written before the first move and removed after the last: while it exists, every start continues the idempotent moves.
"""

from __future__ import annotations

import os

from harness.base import clock, encoding, schema
from harness.base.errors import RESTORE, BrokenFile, LockBusy, NeedsPerson, UsageFault
from harness.decision import overview
from harness.git import dotgit, refs
from harness.mission import lease, mission
from harness.mission.mission import Mission
from harness.process import temporary
from harness.run import recover
from harness.state import files, names
from harness.state.layout import Layout, command
from harness.workplace import mission_lock, workplace

STAYS = (
    *(".git", "bin", "git-config", "journal", "schedule"),
    *(names.IGNORE, names.ARCHIVED, names.ARCHIVING, names.LOCKS, names.SESSIONS, names.SANDBOXES, names.ORIGIN),
)
PEOPLES = (names.STOP, names.PAUSE)
COPIED = (names.CONFIG, "roles", "hooks")


def archive(layout: Layout, *, abandon: bool) -> list[str]:
    """Archive the mission of this folder; returns messages. Raises LockBusy while a run is open, and UsageFault if the
    mission is not done, unless `abandon`."""
    with mission_lock.without_loops(layout), mission_lock.take(layout) as lock:
        workplace.use(layout)
        recover.recover(layout)
        made = mission.load(layout)
        if live := [one.run for one in lease.alive(layout)]:
            raise LockBusy(f"A run of {made.id} is under way: {', '.join(live)}. Stop it, or wait for it to end.")
        if not abandon and (why := overview.unfinished(layout)):
            away = f"or put it away as it is: {command('init --new --abandon')}"
            raise UsageFault(f"The mission {made.id} is not DONE: {why}. Go on with it: {command()}   {away}")
        _require_movable(layout, made.id)
        lines = _said(layout, made)
        workplace.remove_trees(layout, made.id)
        lock.sign({"pid": os.getpid(), "since": clock.stamp(clock.now())})  # none of its runs is the newest any more
        files.replace(layout.path(names.ARCHIVING), encoding.dump_json({"id": made.id}))
        _move(layout, made.id)
    return lines


def go_on(layout: Layout) -> str:
    """Finish an interrupted archiving; returns a message."""
    with mission_lock.take(layout):
        row = files.read_json(layout.path(names.ARCHIVING))
        if row is None:
            return ""  # another start was faster
        name = row.get("id") if isinstance(row, dict) else None
        if not isinstance(name, str) or not schema.is_name(name):
            raise BrokenFile(layout.path(names.ARCHIVING), "it does not name a mission", line=1, remedy=RESTORE)
        _move(layout, name)
    return f"finished putting the mission {name} away, which a crash had cut short"


def _require_movable(layout: Layout, name: str) -> None:
    """Raise NeedsPerson if the mission's id is not a valid folder name, or the folder exists."""
    if not schema.is_name(name):
        raise NeedsPerson(f"{layout.path(names.MISSION)}: '{name}' is not a mission id. {RESTORE}")
    if os.path.lexists(layout.archive_of(name)):
        raise NeedsPerson(f"{layout.archive_of(name)} exists already. Move it out of the way, then try again.")


def _said(layout: Layout, made: Mission) -> list[str]:
    """Messages about the new location of the mission and its work."""
    tip, here = workplace.tip_commit(layout, made), dotgit.commit(layout.folders.top)
    lines = [
        f"The mission {made.id} is in {layout.folders.relative(layout.archive_of(made.id))}, its work on {made.branch}."
    ]
    if tip and here and not refs.is_ancestor(layout.folders.top, tip, here):
        lines.append(f"note: what is checked out has not all of its work; to have it: git merge {tip[:12]}")
    if encoding.plain(mission.asked_spec(layout) or b"") == encoding.plain(files.read(layout.path(names.SPEC)) or b""):
        lines.append(f"note: SPEC.md is still that of {made.id}")
    return lines


def _move(layout: Layout, name: str) -> None:
    """Move or copy everything that is not archived yet; the caller holds the mission lock."""
    target = layout.archive_of(name)
    files.make_folder(target)
    for path in files.abandoned(target):
        files.remove(path)
    for one in COPIED:
        _copy(os.path.join(layout.state, one), os.path.join(target, one))
    temporary.remove(layout.cache)
    temporary.remove(layout.committed)
    stays = {*STAYS, *PEOPLES, *COPIED}
    found = [one for one in files.names(layout.state) if one not in stays and not one.endswith(".tmp")]
    for one in sorted(found, key=lambda one: one != names.FORMAT):  # first: from then on there is no mission
        files.move(os.path.join(layout.state, one), os.path.join(target, one))
    files.sync_folder(layout.state)
    files.remove(layout.path(names.ARCHIVING))
    files.sync_folder(layout.state)


def _copy(source: str, target: str) -> None:
    """Copy the file, or all files below the folder, to `target`; ignores an absent one."""
    if os.path.isdir(source):
        temporary.remove(target)
        for one in files.names(source):
            _copy(os.path.join(source, one), os.path.join(target, one))
    elif os.path.isfile(source):
        files.replace(target, files.read(source) or b"", os.stat(source).st_mode & 0o777)
