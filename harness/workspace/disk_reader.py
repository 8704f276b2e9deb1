"""A workspace in a folder without git: the files on disk count, since their authors are unknown."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from harness.git import contents
from harness.state import files
from harness.state.layout import Layout
from harness.workspace import places
from harness.workspace._reader import WorkspaceReader
from harness.workspace.acceptance import AcceptanceRow, AcceptedFile, AcceptedFiles

MAX_FILES, MAX_FOLDERS = 5000, 1000


class _OnDisk(AcceptedFiles):
    """AcceptedFiles for the files below some paths of a folder."""

    def __init__(self, layout: Layout, paths: Iterable[str]) -> None:
        super().__init__(layout, "")
        top = os.path.realpath(layout.folders.project)
        inside = (
            name for name in paths if f"{os.path.realpath(os.path.dirname(f'{top}/{name}'))}/".startswith(f"{top}/")
        )
        found = islice((path for name in inside for path in leaves(top, name, hidden=False)), MAX_FILES)
        for path in found:
            if not is_folder(at := f"{top}/{path}"):
                mode = contents.LINK if os.path.islink(at) else "100644"
                self.files[path] = AcceptedFile(path=path, mode=mode, size=os.lstat(at).st_size)

    def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        return {path: self._data(path) for path in paths if path in self.files}

    def _data(self, path: str) -> bytes:
        whole = os.path.join(self.layout.folders.project, path)
        return os.fsencode(os.readlink(whole)) if os.path.islink(whole) else files.read(whole) or b""


def leaves(folder: str, name: str, follow: int = 0, *, hidden: bool = True) -> Iterator[str]:
    """The files, links and empty folders at or below a path. Links to folders are followed so many levels down."""
    whole = os.path.join(folder, name)
    is_open = is_folder(whole) or (follow > 0 and os.path.isdir(whole))
    below = [one for one in files.names(whole) if hidden or one[0] != "."] if is_open else []
    for one in below:
        yield from leaves(folder, f"{name}/{one}", follow - 1, hidden=hidden)
    if not below and os.path.lexists(whole):
        yield name


def is_folder(path: str) -> bool:
    """Whether it is a folder, and no link to one."""
    return os.path.isdir(path) and not os.path.islink(path)


class DiskReader(WorkspaceReader):
    """A WorkspaceReader without git, and so without waiting changes."""

    def _nested(self) -> Iterable[str]:
        return nested(self.layout.folders.project)

    def _at(self, paths: Collection[str]) -> AcceptedFiles:
        return _OnDisk(self.layout, paths)

    def _target(self, name: str, target: str) -> str:
        """What a link leads to in the end."""
        top = self.layout.folders.project
        return os.path.relpath(os.path.realpath(os.path.join(top, name)), os.path.realpath(top))


def nested(folder: str) -> Iterator[str]:
    """Each AGENTS.md and CLAUDE.md, in any case, of a folder below, those near the top first; hidden and linked folders, and
    those of dependencies, are left out."""
    left, wanted = [folder], (places.INSTRUCTIONS.casefold(), places.IMPORTING.casefold())
    for at in left:
        with os.scandir(at) as found:
            there = sorted((one.name, one.is_dir(follow_symlinks=False)) for one in found)
        below = [name for name, is_folder in there if is_folder and name[0] != "." and name not in places.PACKAGES]
        left += [os.path.join(at, name) for name in below][: max(0, MAX_FOLDERS - len(left))]
        if at != folder:
            yield from (os.path.relpath(f"{at}/{name}", folder) for name, _ in there if name.casefold() in wanted)


def reader_of(
    layout: Layout, commit: str, user: str, more: Collection[str], known: dict[str, AcceptanceRow] | None
) -> WorkspaceReader:
    """The reader of a workspace at a commit, or of the disk for ""."""
    return WorkspaceReader(layout, commit, user, more, known) if commit else DiskReader(layout, "", user, more, {})


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
