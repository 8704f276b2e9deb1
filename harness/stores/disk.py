"""A store on disk: every key is a plain file, which people may read and edit.

A write replaces the file atomically and durably. The lock of a compare-and-set is that of the folder itself, so no file beside
the values is needed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from harness.base.errors import VersionConflict
from harness.state import files
from harness.stores import store
from harness.stores.store import ABSENT, Key, Value

BLOCK_BYTES = 1 << 20  # of one read of a value that grows


class DiskStore:
    """See Store, and log.Appending. `root`: the folder, made by the first write; `mode`: of the files."""

    def __init__(self, root: str, mode: int = files.PRIVATE) -> None:
        self.root, self.mode = os.path.abspath(root), mode

    def path(self, key: Key) -> str:
        """The file of a key."""
        return f"{self.root}/{store.encoded(key)}"

    def describe(self, key: Key) -> str:
        """See Store; of no key the folder."""
        return self.path(key) if key else self.root

    def get(self, key: Key) -> Value | None:
        """See Store."""
        try:
            descriptor = files.open_regular(self.path(key), os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            return None
        with open(descriptor, "rb", buffering=0) as file:
            version = _version(
                os.fstat(descriptor)
            )  # before the bytes: an edit in between makes the version an old one
            return Value(file.read(), version)

    def put(self, key: Key, data: bytes, expect: str) -> str:
        """See Store."""
        with self._locked(key, make=True) as path:
            self._check(path, expect)
            files.replace(path, data, self.mode)
            return _version(os.stat(path))

    def delete(self, key: Key, expect: str) -> None:
        """See Store."""
        with self._locked(key, make=False) as path:
            self._check(path, expect)
            files.remove(path)

    @contextlib.contextmanager
    def _locked(self, key: Key, *, make: bool) -> Iterator[str]:
        """The path of a key, with its folder locked; an absent folder needs no lock unless it is made."""
        path = self.path(key)
        folder = os.path.dirname(path)
        if make:
            files.make_folder(folder)
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            yield path
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield path
        finally:
            os.close(descriptor)

    def _check(self, path: str, expect: str) -> None:
        try:
            version = _version(os.stat(path, follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            version = ABSENT
        if not store.matches(expect, version):
            raise VersionConflict(path)

    def list(self, prefix: Key, after: Key = (), limit: int = 0) -> list[Key]:
        """See Store. Temporary files of a write are no keys."""
        start = store.encoded(after) if after else ""
        found: list[Key] = []
        for name in self._names(store.encoded(prefix) + "/" if prefix else "", start):
            found.append(store.decoded(name))
            if len(found) == limit:
                break
        return found

    def _names(self, begins: str, start: str) -> Iterator[str]:
        """The encoded keys below a folder that are behind `start`, in order."""
        try:
            with os.scandir(f"{self.root}/{begins}") as scanned:
                entries = [(one.name, one.is_dir(follow_symlinks=False)) for one in scanned]
        except (FileNotFoundError, NotADirectoryError):
            return
        for name, is_folder in sorted((f"{name}/", True) if folder else (name, False) for name, folder in entries):
            whole = begins + name
            if is_folder and (whole > start or start.startswith(whole)):
                yield from self._names(whole, start)
            elif not is_folder and whole > start and not name.endswith(".tmp"):
                yield whole

    # ---- values that grow, see log.Appending

    def append(self, key: Key, data: bytes, at: int) -> int:
        """See log.Appending."""
        path = self.path(key)
        new = not os.path.exists(path)
        files.make_folder(os.path.dirname(path))
        descriptor = files.open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, self.mode)
        with open(descriptor, "rb+", buffering=0):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            size = os.fstat(descriptor).st_size
            if size != at:
                if size < at or b"\n" in os.pread(descriptor, size - at, at):
                    raise VersionConflict(path)
                files.cut(path, at)  # a torn line of a writer that was killed
            files.add_lines(descriptor, data)
            os.fsync(descriptor)
        if new:
            files.sync_folder(os.path.dirname(path))
        return at + len(data)

    def tail(self, key: Key, start: int) -> bytes:
        """See log.Appending."""
        return b"".join(files.blocks(self.path(key), start, BLOCK_BYTES))

    def size(self, key: Key) -> int:
        """See log.Appending."""
        return files.length(self.path(key))


def _version(found: os.stat_result) -> str:
    """A version of a file: a replaced one is another inode, an edited one has another time."""
    return f"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_ctime_ns:x}-{found.st_size:x}"
