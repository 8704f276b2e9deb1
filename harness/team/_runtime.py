"""The folder of a thread on one machine. The agent sees only the workspace.

Beside the workspace it has the manifest of the hydration in `manifest.json`, the hydrated content by digest in `base/`, the rows
of each finalize, and the files in `refused/` and `quarantine/`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from harness.state import files
from harness.team._manifest import Manifest, read_manifest

MANIFEST = "manifest.json"
FOLDER = 0o755  # the mode of a folder whose rights the agent removed
IRREGULAR = -1  # instead of a size: a link, a pipe, or a folder that cannot be read


class RuntimeFolder:
    """`folder`: of one thread on this machine, created by the first write; `workspace`: on the same disk, by default in it."""

    def __init__(self, folder: str, workspace: str = "") -> None:
        self.folder = os.path.abspath(folder)
        self.workspace, self.base_folder = workspace or f"{self.folder}/workspace", f"{self.folder}/base"
        self.merge_folder = f"{self.folder}/merge"

    def manifest(self) -> Manifest | None:
        """The manifest that the workspace was hydrated from; None without a complete hydration."""
        data = files.read(f"{self.folder}/{MANIFEST}")
        return read_manifest(data, f"{self.folder}/{MANIFEST}") if data else None

    @property
    def has_workspace(self) -> bool:
        """Whether the workspace exists and is not a link."""
        return os.path.isdir(self.workspace) and not os.path.islink(self.workspace)

    def begin_hydration(self) -> None:
        """Remove the manifest, so that no finalize uses the workspace until `end_hydration`."""
        if os.path.lexists(self.workspace) and not self.has_workspace:
            files.move(self.workspace, f"{self.folder}/refused/obstacles/workspace.{os.urandom(4).hex()}")
        for folder in (self.workspace, self.base_folder):
            files.make_folder(folder)
        for path in files.abandoned(self.base_folder):
            files.remove(path)
        files.remove(f"{self.folder}/{MANIFEST}")
        files.sync_folder(self.folder)

    def end_hydration(self, manifest: Manifest) -> None:
        """Write the manifest of the complete workspace, and remove all content that it does not name."""
        files.replace(f"{self.folder}/{MANIFEST}", manifest.to_bytes())
        known = {one.digest for one in manifest.entries.values()}
        for folder, kept in ((self.base_folder, known), (self.merge_folder, set[str]())):
            for name in {*files.names(folder)} - kept:
                files.remove(f"{folder}/{name}")

    def sizes(self) -> dict[str, int]:
        """{path: size in bytes, or IRREGULAR} of everything in the workspace except folders."""
        return dict(_sizes(self.workspace, ""))

    def content(self, path: str) -> bytes:
        """The content of a file of the workspace. Raises OSError and BrokenFile."""
        return files.read(f"{self.workspace}/{path}") or b""

    def base_content(self, digest: str) -> bytes | None:
        """The kept content with this digest; None if it is missing or changed."""
        return _content(self.base_folder, digest)

    def intended_content(self, digest: str) -> bytes | None:
        """The content with this digest that a finalize meant to write since the newest hydration; None as for `base_content`."""
        return _content(self.merge_folder, digest)

    def keep_base(self, data: bytes) -> None:
        """Keep content by its digest while a manifest names it."""
        files.replace_quickly(f"{self.base_folder}/{files.digest(data)}", data)

    def keep_intended(self, data: bytes) -> None:
        """Keep what a finalize is about to write, apart from the bases: a file that equals a base counts as unchanged."""
        files.replace_quickly(f"{self.merge_folder}/{files.digest(data)}", data)

    def make_folder(self, prefix: str) -> None:
        """Make a folder in the workspace for a source, even if the source has no files."""
        files.make_folder(f"{self.workspace}/{prefix.rstrip('/')}")

    def write(self, path: str, data: bytes, *, writable: bool) -> None:
        """Write a file to the workspace. What is in its way is set aside; links are not followed."""
        names = path.split("/")
        for part in ("/".join(names[:count]) for count in range(1, len(names) + 1)):
            self._make_room(part, for_folder=part != path)
        rights = files.SHARED if writable else files.READ_ONLY
        files.replace(f"{self.workspace}/{path}", data, rights, quickly=True, beside=f"{self.base_folder}/new")

    def _make_room(self, path: str, *, for_folder: bool) -> None:
        whole = f"{self.workspace}/{path}"
        if os.path.lexists(whole):  # asked first, because other threads make folders meanwhile
            is_folder = os.path.isdir(whole) and not os.path.islink(whole)
            if is_folder != for_folder and (for_folder or (is_folder and not _remove_empty(whole))):
                self.set_aside("refused", "obstacles", path)

    def set_aside(self, kind: str, reason: str, path: str) -> None:
        """Move what is at a path out of the workspace to a free path below `kind`; its folder instead if the path is too
        long."""
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
        """Remove a file of the workspace, and each folder that is empty afterwards."""
        files.remove(f"{self.workspace}/{path}")
        while (path := os.path.dirname(path)) and _remove_empty(f"{self.workspace}/{path}"):
            pass


def _content(folder: str, digest: str) -> bytes | None:
    data = files.read(f"{folder}/{digest}")
    return data if data is not None and files.digest(data) == digest else None


def _sizes(folder: str, path: str) -> Iterator[tuple[str, int]]:
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
            yield from _sizes(one.path, f"{path}{one.name}/")
        else:
            yield path + one.name, _size(one)


def _size(entry: os.DirEntry[str]) -> int:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:  # its path is too long, or it is gone
        return IRREGULAR
    return found.st_size if stat.S_ISREG(found.st_mode) else IRREGULAR


def _remove_empty(folder: str) -> bool:
    """Remove a folder if it is empty; returns whether it was."""
    try:
        os.rmdir(folder)
    except OSError:
        return False
    return True
