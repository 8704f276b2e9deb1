"""The folder of a thread on one machine: what is out of the reach of the agent, which sees the workspace.

That is `manifest.json` of what was hydrated, the content of then by digest in `base/`, the rows of each finalize, and what was
`refused/` or put into `quarantine/`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from harness.state import files
from harness.team._manifest import Manifest, read_manifest

MANIFEST = "manifest.json"
FOLDER = 0o755  # the rights of a folder from which the agent took its own
IRREGULAR = -1  # in the place of a size: a link, a pipe, a folder that cannot be read


class RuntimeFolder:
    """`folder`: of one thread on this machine, made when something is written; `workspace`: on the same disk, or in there."""

    def __init__(self, folder: str, workspace: str = "") -> None:
        self.folder = os.path.abspath(folder)
        self.workspace, self.bases = workspace or f"{self.folder}/workspace", f"{self.folder}/base"
        self.merges = f"{self.folder}/merge"

    def manifest(self) -> Manifest | None:
        """What the workspace was hydrated from; None if a hydration is not complete."""
        data = files.read(f"{self.folder}/{MANIFEST}")
        return read_manifest(data, f"{self.folder}/{MANIFEST}") if data else None

    @property
    def has_workspace(self) -> bool:
        """Whether the workspace is there, and no link to another folder."""
        return os.path.isdir(self.workspace) and not os.path.islink(self.workspace)

    def begin(self) -> None:
        """Remove the manifest: no finalize may take the workspace until `end`."""
        if os.path.lexists(self.workspace) and not self.has_workspace:
            files.move(self.workspace, f"{self.folder}/refused/obstacles/workspace.{os.urandom(4).hex()}")
        for folder in (self.workspace, self.bases):
            files.make_folder(folder)
        for path in files.abandoned(self.bases):
            files.remove(path)
        files.remove(f"{self.folder}/{MANIFEST}")
        files.sync_folder(self.folder)

    def end(self, manifest: Manifest) -> None:
        """Put the manifest of a complete workspace there, and forget all content that it does not name."""
        files.replace(f"{self.folder}/{MANIFEST}", manifest.to_bytes())
        known = {one.digest for one in manifest.entries.values()}
        for folder, kept in ((self.bases, known), (self.merges, set[str]())):
            for name in {*files.names(folder)} - kept:
                files.remove(f"{folder}/{name}")

    def sizes(self) -> dict[str, int]:
        """{path: size in bytes, or IRREGULAR} of all that is in the workspace, but folders."""
        return dict(_below(self.workspace, ""))

    def content(self, path: str) -> bytes:
        """The content of a file of the workspace. Raises OSError and BrokenFile."""
        return files.read(f"{self.workspace}/{path}") or b""

    def base(self, digest: str) -> bytes | None:
        """The content with this digest that was kept; None if it is not there as it was."""
        return _content(self.bases, digest)

    def intended(self, digest: str) -> bytes | None:
        """The content with this digest that a finalize was about to write since the newest hydration."""
        return _content(self.merges, digest)

    def keep(self, data: bytes) -> None:
        """Keep content by its digest until a manifest does not name it."""
        files.replace_quickly(f"{self.bases}/{files.digest(data)}", data)

    def intend(self, data: bytes) -> None:
        """Keep what a finalize is about to write. Not as a base: what is like that is no change of a turn."""
        files.replace_quickly(f"{self.merges}/{files.digest(data)}", data)

    def make(self, prefix: str) -> None:
        """Make an empty folder of the workspace, which a source without files has too."""
        files.make_folder(f"{self.workspace}/{prefix.rstrip('/')}")

    def write(self, path: str, data: bytes, *, writable: bool) -> None:
        """Put a file into the workspace. What is in its way is set aside, and no link is followed."""
        names = path.split("/")
        for part in ("/".join(names[:count]) for count in range(1, len(names) + 1)):
            self._clear(part, for_folder=part != path)
        rights = files.SHARED if writable else files.READ_ONLY
        files.replace(f"{self.workspace}/{path}", data, rights, quickly=True, beside=f"{self.bases}/new")

    def _clear(self, path: str, *, for_folder: bool) -> None:
        whole = f"{self.workspace}/{path}"
        if os.path.lexists(whole):  # first: other threads make folders meanwhile
            is_folder = os.path.isdir(whole) and not os.path.islink(whole)
            if is_folder != for_folder and (for_folder or (is_folder and not _removed(whole))):
                self.set_aside("refused", "obstacles", path)

    def set_aside(self, kind: str, reason: str, path: str) -> None:
        """Move what is at a path out of the workspace, to a place of its own below `kind`, with its folder if the path is too
        long; nothing is lost."""
        target = f"{self.folder}/{kind}/{reason}/{path}"
        if os.path.lexists(target):
            target += f".{os.urandom(4).hex()}"
        try:
            os.lstat(f"{self.workspace}/{path}")
            files.move(f"{self.workspace}/{path}", target)
        except (FileNotFoundError, NotADirectoryError):
            return  # it is gone
        except OSError:
            if not (folder := os.path.dirname(path)):
                raise
            self.set_aside(kind, reason, folder)

    def remove(self, path: str) -> None:
        """Remove a file of the workspace, and the folders that are empty then."""
        files.remove(f"{self.workspace}/{path}")
        while (path := os.path.dirname(path)) and _removed(f"{self.workspace}/{path}"):
            pass


def _content(folder: str, digest: str) -> bytes | None:
    data = files.read(f"{folder}/{digest}")
    return data if data is not None and files.digest(data) == digest else None


def _below(folder: str, path: str) -> Iterator[tuple[str, int]]:
    try:
        if os.lstat(folder).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(folder, FOLDER)
        with os.scandir(folder) as scanned:
            entries = list(scanned)
    except OSError:
        yield path.rstrip("/"), IRREGULAR
        return
    for one in entries:
        if one.is_dir(follow_symlinks=False):
            yield from _below(one.path, f"{path}{one.name}/")
        else:
            yield path + one.name, _size(one)


def _size(entry: os.DirEntry[str]) -> int:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:  # its path is too long, or it is gone
        return IRREGULAR
    return found.st_size if stat.S_ISREG(found.st_mode) else IRREGULAR


def _removed(folder: str) -> bool:
    """Whether the folder was empty, and is gone."""
    try:
        os.rmdir(folder)
    except OSError:
        return False
    return True
