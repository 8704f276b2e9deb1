"""Which version of a workspace file counts: the one that a person made or accepted last, whatever runs made of it since.

`workspace.jsonl` has a line for each change of a run that landed (`changed`, with the bytes that counted before as an object),
and for each that a person accepted. A file whose newest line is such a change, and that is still as the run made it, waits: the
bytes of before count. Whoever commits the file anew, or accepts it, ends that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from harness.base import clock, encoding, schema
from harness.base.errors import UsageFault
from harness.base.record import Record
from harness.git import contents
from harness.state import json_lines, names, objects
from harness.state.layout import Layout
from harness.state.state import State
from harness.workspace import places

if TYPE_CHECKING:  # a type here, at run time the kind of a field
    Verb = str
else:
    Verb = schema.one_of(("changed", "accepted", "back"), told=True)

CHANGED, ACCEPTED, BACK = "changed", "accepted", "back"
RESTORE = "Take that line out, or restore the file from the newest snapshot."


class AcceptanceRow(Record):
    """A line of the log. `blob`: the id of what the path has in `commit`, "" for none; `was`: the object with the bytes that
    count while it waits, "" for none. `by`: a run, or a person's name."""

    at: str
    by: str
    verb: Verb
    path: str
    blob: str
    was: str = ""
    commit: str = ""


class AcceptedFile(Record):
    """The version of a file that counts: a blob of git, or an object of the mission."""

    path: str
    mode: str
    blob: str = ""
    object: str = ""
    size: int = 0


class WaitingChange(Record):
    """A change of a run that waits for a person: `what` became of the file (`new`, `changed` or `deleted`), and by which run."""

    path: str
    what: str
    run: str


class AcceptedFiles:
    """The files below some paths as they count at a commit: `files` by their path in git, `waiting` what does not count."""

    def __init__(self, layout: Layout, commit: str) -> None:
        self.layout, self.commit = layout, commit
        self.files: dict[str, AcceptedFile] = {}
        self.waiting: list[WaitingChange] = []

    def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        """{path: bytes} of those of the paths that are there. 1 git call at most."""
        wanted = [self.files[path] for path in paths if path in self.files]
        of_git = contents.blobs(self.layout.top, (one.blob for one in wanted if one.blob))
        return {one.path: of_git[one.blob] if one.blob else objects.get(self.layout, one.object) for one in wanted}


def lines(layout: Layout) -> list[AcceptanceRow]:
    """The lines of the log, oldest first; raises BrokenFile with the line of one that is none."""

    def made(row: Any) -> AcceptanceRow:
        return schema.record(AcceptanceRow, row, "a change of the workspace has")

    data = State(layout).data(names.WORKSPACE_LOG)
    return json_lines.parse(data, layout.workspace_log, made, "the line is not a workspace change", RESTORE)


def newest(layout: Layout) -> dict[str, AcceptanceRow]:
    """{path: its newest line} of the log."""
    return {row.path: row for row in lines(layout)}


def at(
    layout: Layout, commit: str, paths: Collection[str], known: dict[str, AcceptanceRow] | None = None
) -> AcceptedFiles:
    """What counts at a commit below these paths (of git). 1 git call; more only where both a run and a person changed a file."""
    made = AcceptedFiles(layout, commit)
    found = contents.entries(layout.top, commit, paths)
    made.files = {
        path: AcceptedFile(path=path, mode=one.mode, blob=one.blob, size=one.size) for path, one in found.items()
    }
    below = tuple(f"{path}/" for path in paths)
    for path, row in (newest(layout) if known is None else known).items():
        if row.verb == CHANGED and (path in paths or path.startswith(below)):
            _hold_back(made, path, row)
    return made


def _hold_back(made: AcceptedFiles, path: str, row: AcceptanceRow) -> None:
    """Put the version of before in the place of a run's, where that is what the commit has."""
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
    """The version that counts in the place of the commit's; None where the commit's own is a person's."""
    layout = made.layout
    if blob == row.blob:
        return AcceptedFile(path=path, mode="100644", object=row.was, size=_size(layout, row.was))
    change = contents.last_change(layout.top, made.commit, path)
    if change is None or not (change.by_run or change.merge_of_ours):
        return None
    if change.by_run:  # of another mission, or of a run that left no line
        return AcceptedFile(path=path, mode="100644", object=row.was, size=_size(layout, row.was))
    theirs = contents.entries(layout.top, change.parents[1], [path]).get(path)  # git joined both sides
    return (
        AcceptedFile(path=path, mode=theirs.mode, blob=theirs.blob, size=theirs.size)
        if theirs
        else AcceptedFile(path=path, mode="")
    )


def _size(layout: Layout, name: str) -> int:
    return len(objects.get(layout, name)) if name else 0


def changed(layout: Layout, run: str, commit: str, parent: str, paths: Sequence[str], when: str) -> list[AcceptanceRow]:
    """The lines for what a run changed of a workspace between two commits; what counted before is an object from now on."""
    paths = _anchored(layout, commit, parent, paths)
    known, now = newest(layout), contents.entries(layout.top, commit, paths)
    before = at(layout, parent, paths, known)
    old = before.read(before.files)
    new = contents.blobs(layout.top, (one.blob for one in now.values()))
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
    """Without files of folders that are no skill, and no knowledge, of a workspace: they lack the file that makes them one."""
    anchors = {path: places.anchor(path, layout.prefix) for path in paths}
    wanted = sorted({anchor for anchor in anchors.values() if anchor})
    there = {path for one in (commit, parent) for path in contents.entries(layout.top, one, wanted)}
    return [path for path in paths if not anchors[path] or anchors[path] in there]


def rendered(found: Iterable[AcceptanceRow]) -> bytes:
    """The lines of the log for these."""
    return b"".join(encoding.dump_json(row.asdict()) for row in found)


def accepting(
    layout: Layout, commit: str, waiting: Sequence[WaitingChange], wanted: Sequence[str], by: str
) -> list[AcceptanceRow]:
    """The lines with which a person accepts what waits at a commit: all, or these paths and what lies below them. Raises
    UsageFault for one of which nothing waits."""
    found = [one for one in waiting if not wanted or any(_covers(path, one.path) for path in wanted)]
    idle = [path for path in wanted if not any(_covers(path, one.path) for one in waiting)]
    if idle:
        there = ", ".join(one.path for one in waiting) or "nothing"
        raise UsageFault(f"No change of {idle[0]} waits. What waits: {there}.")
    now = contents.entries(layout.top, commit, [one.path for one in found])
    same = {"at": clock.stamp(clock.now()), "by": by, "verb": ACCEPTED, "commit": commit}
    return [AcceptanceRow(**same, path=one.path, blob=now[one.path].blob if one.path in now else "") for one in found]


def append(layout: Layout, found: Sequence[AcceptanceRow]) -> None:
    """Add these lines to the log, durably."""
    State(layout).append(names.WORKSPACE_LOG, rendered(found))


def _covers(wanted: str, path: str) -> bool:
    return path == wanted or path.startswith(wanted.rstrip("/") + "/")
