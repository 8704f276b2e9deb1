"""Exports runs into a folder or a tar that replays on another machine: their files and objects, and the commits as a bundle.

The output is the state of a mission, `.harness`, as `replay`, `search` and `runs` read it, and `repository.bundle`.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator

from harness.base.errors import UsageFault
from harness.base.record import Record
from harness.git import refs, repository
from harness.mission import mission, run_lookup, runs
from harness.process import temporary
from harness.replay import rebuild
from harness.state import files, json_lines, names, objects
from harness.state.layout import Layout
from harness.state.state import State
from harness.workplace import mission_lock, run_detection, workplace

BUNDLE = "repository.bundle"
TARS = {".tar": "w", ".tar.gz": "w:gz", ".tgz": "w:gz"}
# Left out of an export: rebuilt, or specific to this machine.
LEFT = (names.ORIGIN, names.CACHE, names.LOCKS, "journal", "git-config", ".git", "replays", "bin")
LIVE = ("inbox", "index")  # of an open run
REFS = "refs/harness/export"  # exist while a bundle is created, under the lock `export`


class ExportResult(Record):
    """The result of an export: `path` is the folder or the tar."""

    path: str
    runs: int
    bytes: int


def one(layout: Layout, where: Layout, run_id: str, target: str) -> ExportResult:
    """Export one finished run of the mission `where`, and verify that its prompt rebuilds from the exported files."""
    run_detection.refuse(layout, "export")
    if runs.result(where, run_id) is None:
        raise UsageFault(f"The run {run_id} has not ended, so it cannot be exported yet.")
    rebuild.text_of(where, run_id)  # raises its fault before anything is written
    with _Target(target) as made:
        state, out = State(where), Layout(made.folder)
        for name in (names.FORMAT, names.MISSION):
            files.replace(f"{out.state}/{name}", state.data(name) or b"")
        lines = [line for line in _lines(where) if f'"run":"{run_id}"'.encode() in line]
        files.replace(out.path(names.RUN_LOG), b"".join(line + b"\n" for line in lines[:1]))
        _copy(where.run(run_id).folder, out.run(run_id).folder, LIVE)
        for row in rebuild.rows_of(where, run_id) or []:
            if "object" in row:
                objects.put(out, objects.get(where, row["object"]))
        _bundle(layout, made.folder, _commits(where, run_id))
        rebuild.text_of(out, run_id)
        return made.done(1)


def every(layout: Layout, target: str) -> ExportResult:
    """Export the mission with its archive, without state that can be rebuilt. Raises LockBusy while a run opens or settles."""
    run_detection.refuse(layout, "export")
    made_of = mission.load(layout)
    with mission_lock.take(layout), _Target(target) as made:
        _copy(layout.state, Layout(made.folder).state, LEFT)
        workplace.use(layout)
        tips = refs.positions(layout.folders.project, "refs/harness", f"refs/heads/{made_of.branch}")
        _bundle(layout, made.folder, {name: at.head for name, at in tips.items()})
        return made.done(sum(len(State(one).list(names.RUNS)) for one in run_lookup.missions(layout)))


class _Target:
    """The folder that is filled, and packed at the end if a tar was requested; removed after a fault."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.how = next((how for end, how in TARS.items() if path.endswith(end)), "")
        if os.path.lexists(self.path):
            raise UsageFault(f"{self.path} already exists. Choose another: --to PATH")
        self.folder = temporary.create("export") if self.how else self.path
        self.whole = False

    def __enter__(self) -> _Target:
        files.make_folder(self.folder)
        return self

    def done(self, count: int) -> ExportResult:
        """Pack the folder if needed; returns the result."""
        if self.how:
            with tarfile.open(self.path, self.how) as tar:  # type: ignore[call-overload]  # one of TARS
                for name in files.names(self.folder):
                    tar.add(os.path.join(self.folder, name), name)
        self.whole = True
        size = os.stat(self.path).st_size if self.how else files.size_below(self.folder)
        return ExportResult(path=self.path, runs=count, bytes=size)

    def __exit__(self, *_: object) -> None:
        if self.how or not self.whole:
            temporary.remove(self.folder)
        if self.how and not self.whole:
            files.remove(self.path)


def _lines(layout: Layout) -> Iterator[bytes]:
    return (line for _, line in json_lines.backwards(layout.path(names.RUN_LOG)))


def _commits(layout: Layout, run_id: str) -> dict[str, str]:
    """{ref: commit} of a run: its start and its own commit."""
    result = runs.result(layout, run_id)
    found = {"opened": runs.context(layout, run_id).head, "made": result.commit if result else ""}
    return {f"{REFS}/{run_id}/{name}": commit for name, commit in found.items() if commit}


def _bundle(layout: Layout, folder: str, wanted: dict[str, str]) -> None:
    """Write the commits with their history; missing refs exist for that moment."""
    workplace.use(layout)
    with State(layout).lock("export"):
        _remove_refs(layout)
        there = refs.positions(layout.folders.project, *wanted)
        wanted = {name: commit for name, commit in wanted.items() if name in there or name.startswith(REFS)}
        for name in wanted.keys() - there.keys():
            refs.set_one(layout.folders.project, name, wanted[name])
        try:
            if wanted:
                repository.run(
                    layout.folders.project, "bundle", "create", "-q", os.path.join(folder, BUNDLE), *sorted(wanted)
                )
        finally:
            _remove_refs(layout)


def remove_refs(layout: Layout) -> None:
    """Remove the refs of a killed export, unless an export is running."""
    lock = State(layout).lock("export")
    if lock.take():
        with lock:
            _remove_refs(layout)


def _remove_refs(layout: Layout) -> None:
    for name in refs.positions(layout.folders.project, REFS):
        repository.delete_ref(layout.folders.project, name)


def _copy(source: str, target: str, left: tuple[str, ...]) -> None:
    """Copy the regular files below a folder, except the top-level names in `left`."""
    for name in files.names(source):
        path, copy = os.path.join(source, name), os.path.join(target, name)
        if name in left or os.path.islink(path):
            continue
        if os.path.isdir(path):
            _copy(path, copy, ())
        elif os.path.isfile(path):
            files.replace(copy, files.blocks(path), os.stat(path).st_mode & 0o777)
