"""Determines the effective version of a workspace file: the last one that a person wrote or accepted.

`workspace.jsonl` has a line for each landed change of a run (`changed`, with the previous effective bytes as an
object), and for each acceptance. A file whose newest line is a run's change, and that is still in that version, waits:
the previous bytes stay effective until a person commits the file or accepts the change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.base import clock, encoding, schema
from harness.base.errors import UsageFault
from harness.base.record import Record
from harness.git import contents
from harness.state import json_lines, names, objects
from harness.state.layout import Layout
from harness.state.state import State
from harness.workspace import places

if TYPE_CHECKING:  # a type for checkers; at run time the kind of a field
    Verb = str
else:
    Verb = schema.one_of(("changed", "accepted", "back"), told=True)

CHANGED, ACCEPTED, BACK = "changed", "accepted", "back"
RESTORE = "Remove that line, or restore the file from the newest snapshot."


class AcceptanceRow(Record):
    """A line of the log. `blob`: the blob of the path in `commit`, or ""; `was`: the object with the effective bytes
    while it waits, or ""; `by`: a run, or a person's name."""

    at: str
    by: str
    verb: Verb
    path: str
    blob: str
    was: str = ""
    commit: str = ""


class AcceptedFile(Record):
    """The effective version of a file: a git blob, or an object of the mission."""

    path: str
    mode: str
    blob: str = ""
    object: str = ""
    size: int = 0


class WaitingChange(Record):
    """A run's change that waits for a person. `what`: `new`, `changed` or `deleted`."""

    path: str
    what: str
    run: str


class AcceptedFiles:
    """The effective files below some paths at a commit: `files` by git path; `waiting`: changes not in effect."""

    def __init__(self, layout: Layout, commit: str) -> None:
        self.layout, self.commit = layout, commit
        self.files: dict[str, AcceptedFile] = {}
        self.waiting: list[WaitingChange] = []

    def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        """{path: bytes} of the existing paths. At most 1 git call."""
        wanted = [self.files[path] for path in paths if path in self.files]
        of_git = contents.blobs(self.layout.folders.top, (one.blob for one in wanted if one.blob))
        return {one.path: of_git[one.blob] if one.blob else objects.get(self.layout, one.object) for one in wanted}


class OverlaidFiles(AcceptedFiles):
    """Effective files with others over them, by git path."""

    def __init__(self, below: AcceptedFiles, over: Mapping[str, bytes]) -> None:
        super().__init__(below.layout, below.commit)
        self.below, self.over, self.waiting = below, over, below.waiting
        self.files = below.files
        self.files |= {path: AcceptedFile(path=path, mode="100644", size=len(data)) for path, data in over.items()}

    def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        wanted = list(paths)
        found = self.below.read(path for path in wanted if path not in self.over)
        return found | {path: self.over[path] for path in wanted if path in self.over}


def lines(layout: Layout) -> list[AcceptanceRow]:
    """The lines of the log, oldest first; raises BrokenFile with an invalid line."""

    def made(row: Any) -> AcceptanceRow:
        return schema.record(AcceptanceRow, row, "a change of the workspace has")

    data = State(layout).data(names.WORKSPACE_LOG)
    return json_lines.parse(data, layout.path(names.WORKSPACE_LOG), made, "the line is not a workspace change", RESTORE)


def newest(layout: Layout) -> dict[str, AcceptanceRow]:
    """{path: its newest line} of the log."""
    return {row.path: row for row in lines(layout)}


def at(
    layout: Layout, commit: str, paths: Collection[str], known: dict[str, AcceptanceRow] | None = None
) -> AcceptedFiles:
    """The effective files at a commit below these git paths. 1 git call; more only if a run and a person changed the
    same file."""
    made = AcceptedFiles(layout, commit)
    found = contents.entries(layout.folders.top, commit, paths)
    made.files = {
        path: AcceptedFile(path=path, mode=one.mode, blob=one.blob, size=one.size) for path, one in found.items()
    }
    below = tuple(f"{path}/" for path in paths)
    for path, row in (newest(layout) if known is None else known).items():
        if row.verb == CHANGED and (path in paths or path.startswith(below)):
            _hold_back(made, path, row)
    return made


def _hold_back(made: AcceptedFiles, path: str, row: AcceptanceRow) -> None:
    """Replace a run's version by the previous one, if the commit has the run's."""
    now = made.files.get(path)
    blob = now.blob if now else ""
    before = _before(made, path, row, blob)
    if before is None:
        return
    there = before.blob or before.object
    if there:
        made.files[path] = before
    else:
        made.files.pop(path, None)
    what = "deleted" if not now else "changed" if there else "new"
    made.waiting.append(WaitingChange(path=path, what=what, run=row.by))


def _before(made: AcceptedFiles, path: str, row: AcceptanceRow, blob: str) -> AcceptedFile | None:
    """The effective version instead of the commit's; None if the commit's own is a person's."""
    layout = made.layout
    if blob == row.blob:
        return AcceptedFile(path=path, mode="100644", object=row.was, size=_size(layout, row.was))
    change = contents.last_change(layout.folders.top, made.commit, path)
    if change is None or not (change.by_run or change.merge_of_ours):
        return None
    if change.by_run:  # by another mission, or by a run without a line
        return AcceptedFile(path=path, mode="100644", object=row.was, size=_size(layout, row.was))
    theirs = contents.entries(layout.folders.top, change.parents[1], [path]).get(path)  # git merged both sides
    return (
        AcceptedFile(path=path, mode=theirs.mode, blob=theirs.blob, size=theirs.size)
        if theirs
        else AcceptedFile(path=path, mode="")
    )


def _size(layout: Layout, name: str) -> int:
    return len(objects.get(layout, name)) if name else 0


def changed(layout: Layout, run: str, commit: str, parent: str, paths: Sequence[str], when: str) -> list[AcceptanceRow]:
    """The lines for a run's workspace changes between two commits; stores the previous effective bytes as objects."""
    paths = _anchored(layout, commit, parent, paths)
    known, now = newest(layout), contents.entries(layout.folders.top, commit, paths)
    before = at(layout, parent, paths, known)
    old = before.read(before.files)
    new = contents.blobs(layout.folders.top, (one.blob for one in now.values()))
    made = []
    for path in paths:
        entry = now.get(path)
        data, was = (new[entry.blob] if entry else None), old.get(path)
        object_name = "" if was is None else objects.put(layout, was)
        made.append(
            AcceptanceRow(
                at=when,
                by=run,
                verb=BACK if data == was else CHANGED,
                path=path,
                blob=entry.blob if entry else "",
                was=object_name,
                commit=commit,
            )
        )
    return made


def _anchored(layout: Layout, commit: str, parent: str, paths: Sequence[str]) -> list[str]:
    """The paths without files in folders that lack SKILL.md or KNOWLEDGE.md, and so are not part of a workspace."""
    anchors = {path: places.anchor(path, layout.folders.prefix) for path in paths}
    wanted = sorted({anchor for anchor in anchors.values() if anchor})
    there = {path for one in (commit, parent) for path in contents.entries(layout.folders.top, one, wanted)}
    return [path for path in paths if not anchors[path] or anchors[path] in there]


def rendered(found: Iterable[AcceptanceRow]) -> bytes:
    """Render these rows as lines of the log."""
    return b"".join(encoding.dump_json(row.asdict()) for row in found)


def accepting(
    layout: Layout, commit: str, waiting: Sequence[WaitingChange], wanted: Sequence[str], by: str
) -> list[AcceptanceRow]:
    """The lines by which a person accepts waiting changes at a commit: all, or at and below these paths. Raises
    UsageFault for a path without waiting changes."""
    found = [one for one in waiting if not wanted or any(_covers(path, one.path) for path in wanted)]
    idle = [path for path in wanted if not any(_covers(path, one.path) for one in waiting)]
    if idle:
        there = ", ".join(one.path for one in waiting) or "nothing"
        raise UsageFault(f"No change of {idle[0]} waits. What waits: {there}.")
    now = contents.entries(layout.folders.top, commit, [one.path for one in found])
    same = {"at": clock.stamp(clock.now()), "by": by, "verb": ACCEPTED, "commit": commit}
    return [AcceptanceRow(**same, path=one.path, blob=now[one.path].blob if one.path in now else "") for one in found]


def append(layout: Layout, found: Sequence[AcceptanceRow]) -> None:
    """Add these lines to the log, durably."""
    State(layout).append(names.WORKSPACE_LOG, rendered(found))


def _covers(wanted: str, path: str) -> bool:
    return path == wanted or path.startswith(wanted.rstrip("/") + "/")
