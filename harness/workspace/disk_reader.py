"""A workspace in a folder without git: the files on disk count, since their authors are unknown."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator

from harness.base import encoding
from harness.base.errors import BrokenFile
from harness.git import contents
from harness.state import files
from harness.state.layout import Layout
from harness.workspace import places
from harness.workspace._reader import WorkspaceReader
from harness.workspace.acceptance import AcceptanceRow, AcceptedFile, AcceptedFiles

MAX_FILES, MAX_FOLDERS = 5000, 1000
PACKAGES = ("node_modules", "site-packages")  # of others


class _OnDisk(AcceptedFiles):
    """AcceptedFiles for the files below some paths of a folder."""

    def __init__(self, layout: Layout, paths: Iterable[str]) -> None:
        super().__init__(layout, "")
        found = (path for name in paths for path in _below(layout.folders.project, name))
        self.files = {
            path: _file(layout.folders.project, path) for path, _ in zip(found, range(MAX_FILES), strict=False)
        }

    def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        wanted = [path for path in paths if path in self.files]
        return {path: self._data(path) for path in wanted}

    def _data(self, path: str) -> bytes:
        whole = os.path.join(self.layout.folders.project, path)
        return os.fsencode(os.readlink(whole)) if os.path.islink(whole) else files.read(whole) or b""


def _below(folder: str, name: str) -> Iterator[str]:
    """The files at or below a path, without linked and hidden folders."""
    whole = os.path.join(folder, name)
    if os.path.isdir(whole) and not os.path.islink(whole):
        for one in files.names(whole):
            if not one.startswith("."):
                yield from _below(folder, f"{name}/{one}")
    elif os.path.lexists(whole):
        yield name


def _file(folder: str, path: str) -> AcceptedFile:
    found = os.lstat(os.path.join(folder, path))
    link = os.path.islink(os.path.join(folder, path))
    return AcceptedFile(path=path, mode=contents.LINK if link else "100644", size=found.st_size)


class DiskReader(WorkspaceReader):
    """A WorkspaceReader without git, and so without waiting changes."""

    def __init__(self, layout: Layout, user: str, more: Collection[str]) -> None:
        self.layout, self.commit, self.prefix = layout, "", ""
        self.of_user = places.folder_of_user(user)
        self.more = [os.path.normpath(name) for name in more]
        self.known: dict[str, AcceptanceRow] = {}
        below = _nested(layout.folders.project)
        self.accepted = _OnDisk(layout, dict.fromkeys([*watched(self.of_user, self.more), *below]))
        self.paths, self.faults, self.left_out = list(self.accepted.files), [], []
        self._read: dict[str, bytes] = {}

    def add(self, names: Iterable[str]) -> None:
        """See WorkspaceReader; a path that a link leads out of the folder is left out."""
        top = os.path.realpath(self.layout.folders.project)
        inside = [name for name in names if os.path.realpath(os.path.join(top, name)).startswith(top + "/")]
        self.accepted.files |= _OnDisk(self.layout, inside).files

    def _linked(self, name: str, target: str) -> str:
        """The target of a link, in the folder."""
        top = os.path.realpath(self.layout.folders.project) + "/"
        path = os.path.realpath(os.path.join(self.layout.folders.project, name))
        data = files.read(path) if path.startswith(top) else None
        if data is None:
            raise BrokenFile(
                name, f"the link leads to {target}, which is not a file of the folder", remedy="Correct it."
            )
        return encoding.decode(data, path)


def _nested(folder: str) -> Iterator[str]:
    """Each AGENTS.md of a folder below, those near the top first; hidden and linked folders are left out."""
    left = [folder]
    for at in left:
        with os.scandir(at) as found:
            below = [one.name for one in found if one.is_dir(follow_symlinks=False) and one.name[0] != "."]
        left += [os.path.join(at, name) for name in sorted(below) if len(left) < MAX_FOLDERS and name not in PACKAGES]
        if at != folder and os.path.lexists(path := os.path.join(at, places.INSTRUCTIONS)):
            yield os.path.relpath(path, folder)


def watched(of_user: str, more: Iterable[str]) -> list[str]:
    """The paths of a folder that can belong to a workspace."""
    return [*places.ROOTS, *more, *([f"{of_user}/{name}" for name in places.OF_USERS] if of_user else [])]


def reader_of(
    layout: Layout, commit: str, user: str, more: Collection[str], known: dict[str, AcceptanceRow] | None
) -> WorkspaceReader:
    """The reader of a workspace at a commit, or of the disk for ""."""
    return WorkspaceReader(layout, commit, user, more, known) if commit else DiskReader(layout, user, more)


def stamp(folders: Iterable[str]) -> list[tuple[str, int, int, int]]:
    """A stamp to detect changes: (path, inode, size, time) of these files and folders, and of everything below."""
    found: list[tuple[str, int, int, int]] = []
    left = list(folders)
    while left and len(found) < MAX_FILES:
        path = left.pop()
        try:
            one = os.stat(path)
        except OSError:
            continue
        found.append((path, one.st_ino, one.st_size, one.st_mtime_ns))
        if os.path.isdir(path) and not os.path.islink(path):
            left += [os.path.join(path, name) for name in files.names(path) if not name.startswith(".")]
    return sorted(found)
