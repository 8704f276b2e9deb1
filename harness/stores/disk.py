"""A store on disk: every key is a plain file that people may read and edit.

A write replaces the file atomically and durably. A compare-and-set locks the folder itself, so no lock file is beside the values;
where a file system cannot lock a folder (NFS), a file in it is locked.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import stat
import time
from collections.abc import Callable, Iterator

from harness.base.errors import BrokenFile, LockBusy, VersionConflict
from harness.state import files
from harness.state.folder_lock import UNLOCKABLE
from harness.stores import store
from harness.stores.store import ABSENT, Key, StoreKey, Value

BLOCK_BYTES = 1 << 20  # of one read of a value that grows
LOCK_SECONDS = 10.0  # limit of the wait for another writer, which may be stopped or hang in a broken disk
PAUSE_SECONDS = 0.002  # between two attempts, at most
LOCK_FILE = ".folder.lock"


class DiskStore:
    """See Store, and log.Appending. `root`: the folder, created by the first write, which calls `begin`; `mode`: of the files.

    Writers wait for each other for `busy_seconds`, then raise LockBusy. Links to folders are followed, but not by `list`; a
    value that is a link is read, and replaced by a file."""

    begin: Callable[[], None] | None = None

    def __init__(self, root: str, mode: int = files.PRIVATE, busy_seconds: float = LOCK_SECONDS) -> None:
        self.root, self.mode, self.busy_seconds = os.path.abspath(root), mode, busy_seconds

    def path(self, key: Key) -> str:
        """The file of a key."""
        return f"{self.root}/{store.encoded(key)}"

    def describe(self, key: Key) -> str:
        """See Store; the folder for an empty key."""
        return self.path(key) if key else self.root

    def get(self, key: Key) -> Value | None:
        try:
            descriptor = files.open_regular(self.path(key), os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            return None
        with open(descriptor, "rb", buffering=0) as file:
            # before the bytes: if somebody edits the file in between, the version is an old one
            version = _version(os.fstat(descriptor))
            return Value(file.read(), version)

    def put(self, key: Key, data: bytes, expect: str) -> str:
        with self._locked(key, make=True) as path:
            known = _check(path, expect)
            # the clock of file systems is coarse, and inodes are used again: each write gets a later time than the one before
            stamp = max(time.time_ns(), known.st_mtime_ns + 1 if known else 0)
            return _version(files.replace(path, data, self.mode, beside=f"{os.path.dirname(path)}/", stamp=stamp))

    def delete(self, key: Key, expect: str) -> None:
        with self._locked(key, make=False) as path:
            if _check(path, expect):
                files.remove(path)
                files.sync_folder(os.path.dirname(path))

    def clear(self, prefix: Key = ()) -> None:
        """Remove temporary files that killed writers left in a folder."""
        folder = self.describe(prefix)
        if files.abandoned(folder):
            with _folder_lock(folder, self.busy_seconds):
                for path in files.abandoned(folder):
                    files.remove(path)

    @contextlib.contextmanager
    def _locked(self, key: Key, *, make: bool) -> Iterator[str]:
        """The path of a key, with its folder locked. Without `make`, a missing folder is not locked."""
        path = self.path(key)
        folder = os.path.dirname(path)
        with contextlib.ExitStack() as held:
            try:
                if make and self.begin and not os.path.isdir(self.root):
                    self.begin()
                if make:
                    files.make_folder(folder)
                held.enter_context(_folder_lock(folder, self.busy_seconds))
            except (FileNotFoundError, NotADirectoryError) as fault:
                if make:
                    broken = isinstance(fault, NotADirectoryError)
                    why = "it is a file, where a folder belongs" if broken else "it was removed during a write"
                    raise BrokenFile(folder, why, remedy="Move it away." if broken else "Try again.") from None
            yield path

    def list(self, prefix: Key, after: Key = (), limit: int = 0) -> list[Key]:
        """See Store. Files without a key, such as temporary ones, are skipped."""
        start = store.encoded(after) if after else ""
        found: list[Key] = []
        for name in self._names(store.encoded(prefix) + "/" if prefix else "", start):
            found.append(store.decoded(name))
            if len(found) == limit:
                break
        return found

    def _names(self, begins: str, start: str) -> Iterator[str]:
        """The encoded keys below a folder that sort after `start`, in order."""
        try:
            with os.scandir(f"{self.root}/{begins}") as scanned:
                entries = [
                    (one.name, one.is_dir(follow_symlinks=False))
                    for one in scanned
                    if store.encoded(store.decoded(one.name)) == one.name
                ]
        except (FileNotFoundError, NotADirectoryError):
            return
        for name, is_folder in sorted((f"{name}/", True) if folder else (name, False) for name, folder in entries):
            whole = begins + name
            if is_folder and (whole > start or start.startswith(whole)):
                yield from self._names(whole, start)
            elif not is_folder and whole > start:
                yield whole

    # ---- values that grow, see log.Appending

    def append(self, key: Key, data: bytes, at: int) -> int:
        with self._locked(key, make=True) as path:
            descriptor = files.open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, self.mode)
            with open(descriptor, "rb+", buffering=0):
                size = os.fstat(descriptor).st_size
                if size != at:
                    if size < at or any(b"\n" in block for block in files.blocks(path, at)):
                        raise VersionConflict(path)
                    files.cut(path, at)  # a torn row of a writer that was killed
                if not at:
                    files.sync_folder(os.path.dirname(path))  # before any row: readers of rows rely on the name
                files.add_lines(descriptor, data)
                os.fsync(descriptor)
        return at + len(data)

    def tail(self, key: Key, start: int) -> bytes:
        return b"".join(files.blocks(self.path(key), start, BLOCK_BYTES))

    def size(self, key: Key) -> int:
        return files.length(self.path(key))


@contextlib.contextmanager
def _folder_lock(folder: str, seconds: float) -> Iterator[None]:
    """Hold the lock of a folder. Raises LockBusy after these seconds."""
    until = time.monotonic() + seconds
    while True:
        with contextlib.ExitStack() as held:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            held.callback(os.close, descriptor)
            try:
                while not files.take_descriptor(descriptor):
                    if time.monotonic() > until:
                        raise LockBusy(_busy(folder, seconds))
                    time.sleep(random.uniform(0, PAUSE_SECONDS))
                held.callback(fcntl.flock, descriptor, fcntl.LOCK_UN)  # a child that another thread forked has it too
            except OSError as fault:
                if fault.errno not in UNLOCKABLE:
                    raise
                held.enter_context(_lock_file(folder, seconds))
            if _is_at(descriptor, folder):  # otherwise somebody replaced the folder meanwhile
                yield
                return


def folder_of(at: StoreKey) -> str:
    """The folder of the keys with this prefix; "" if the store is not on this disk."""
    return at.store.describe(at.key) if isinstance(at.store, DiskStore) else ""


def _lock_file(folder: str, seconds: float) -> contextlib.AbstractContextManager[object]:
    from filelock import FileLock, Timeout  # 40 ms: only where a folder cannot be locked

    try:
        return FileLock(f"{folder}/{LOCK_FILE}", timeout=seconds, poll_interval=PAUSE_SECONDS).acquire()
    except Timeout:
        raise LockBusy(_busy(folder, seconds)) from None


def _busy(folder: str, seconds: float) -> str:
    return f"{folder}: another process has held its lock for {seconds:.0f} s. Try again later."


def _is_at(descriptor: int, folder: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(folder))
    except FileNotFoundError:
        return False


def _check(path: str, expect: str) -> os.stat_result | None:
    """The file's stat, None if absent. Raises VersionConflict if its version is not expected, BrokenFile for a folder."""
    try:
        known = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        known = None
    if known and stat.S_ISDIR(known.st_mode):
        raise BrokenFile(path, "it is a folder, where a file belongs", remedy="Move it away.")
    if not store.matches(expect, _version(known) if known else ABSENT):
        raise VersionConflict(path)
    return known


def _version(found: os.stat_result) -> str:
    """The version of a file: each write of a store and each edit changes its time; a replaced file has another inode."""
    return f"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}"
