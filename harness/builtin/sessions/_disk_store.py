"""A store of sessions as plain files below a folder. A place in a queue is a file that its process has locked."""

from __future__ import annotations

import fcntl
import json
import os

from harness.base import encoding
from harness.base.errors import LockBusy, VersionConflict
from harness.builtin.sessions.store import Item
from harness.state import files

LOCK = "lock"  # beside the places of a queue; it names the last one
DIGITS, LONGEST = 12, 200


class Lost(LockBusy):
    """The place of a call was taken away: somebody removed its file. Nothing more is written by it."""

    def __init__(self, where: str) -> None:
        super().__init__(f"The call lost its place in {where}, so it wrote nothing more. Ask again.")


class FileStore:
    """See store.Store. `root`: the folder; it is made when something is written."""

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)
        self._new: set[str] = set()  # files whose names are not durable yet

    def get(self, key: str) -> Item | None:
        """See store.Store."""
        data = files.read(self.where(key))
        return None if data is None else Item(data=data, version=encoding.digest(data))

    def put(self, key: str, data: bytes, expect: str) -> str:
        """See store.Store; the compare and the set are one step by a lock beside the file."""
        path = self.where(key)
        with files.Lock(f"{os.path.dirname(path)}/queue/{LOCK}"):
            known = self.get(key)
            if (known.version if known else "") != expect:
                raise VersionConflict(path)
            files.replace(path, data, files.PRIVATE)
        if not expect:
            self._keep_folders(os.path.dirname(path))
        return encoding.digest(data)

    def _keep_folders(self, folder: str) -> None:
        """Make the names of a folder and of those above it durable: a place in a queue was there before, and needed no such."""
        while folder.startswith(os.path.dirname(self.root)):
            folder = os.path.dirname(folder)
            files.sync_folder(folder)

    def append(self, key: str, data: bytes, at: int = -1) -> int:
        """See store.Store."""
        path = self.where(key)
        try:
            descriptor = files.open_regular(path, os.O_RDWR | os.O_APPEND)
        except FileNotFoundError:
            files.make_folder(os.path.dirname(path))
            descriptor = files.open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, files.PRIVATE)
            self._new.add(path)
        with open(descriptor, "rb+", buffering=0):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if at >= 0 and os.fstat(descriptor).st_size != at:
                _cut(path, descriptor, at)
            return files.add_lines(descriptor, data) + len(data)

    def sync(self, key: str) -> None:
        """See store.Store."""
        path = self.where(key)
        files.sync_folder(path)
        if path in self._new:
            files.sync_folder(os.path.dirname(path))
            self._new.discard(path)

    def length(self, key: str) -> int:
        """See store.Store."""
        try:
            return os.stat(self.where(key)).st_size
        except FileNotFoundError:
            return 0

    def tail(self, key: str, start: int = 0) -> bytes:
        """See store.Store."""
        return b"".join(files.blocks(self.where(key), start, 1 << 20))

    def names(self, key: str) -> list[str]:
        """See store.Store."""
        return files.names(self.where(key) if key else self.root)

    def enter(self, key: str) -> Ticket:
        """See store.Store."""
        folder = self.where(key)
        os.makedirs(folder, exist_ok=True)
        with files.Lock(f"{folder}/{LOCK}") as lock:
            before = _numbers(folder)
            number = max([_last(lock.descriptor), *before]) + 1
            ticket = Ticket(folder, number, alone=not before)
            lock.sign({"last": number})
        return ticket

    def queue(self, key: str) -> list[int]:
        """See store.Store."""
        folder = self.where(key)
        return [number for number in _numbers(folder) if not files.is_free(_path(folder, number))]

    def where(self, key: str) -> str:
        """See store.Store."""
        return f"{self.root}/{key}"


class Ticket:
    """See store.Place: a file named by its number, locked from before anybody can see it until it is gone. `alone`: nobody is
    before it."""

    def __init__(self, folder: str, number: int, *, alone: bool) -> None:
        self.folder, self.number, self.alone = folder, number, alone
        self.path = _path(folder, number)
        self.lock = files.Lock(self.path)
        while not self.lock.take():  # only for the moment in which somebody looks whether it is alive
            continue

    def first(self) -> bool:
        """See store.Place; the places of processes that died are cleared away."""
        before = [] if self.alone else [number for number in _numbers(self.folder) if number < self.number]
        for number in before:
            path = _path(self.folder, number)
            if os.path.exists(path) and not files.is_free(path):
                return False
            files.remove(path)
        self.alone = True
        return True

    def check(self) -> None:
        """See store.Place."""
        if self.lock.descriptor < 0 or os.fstat(self.lock.descriptor).st_nlink == 0:
            raise Lost(os.path.dirname(self.folder))

    def leave(self) -> None:
        """See store.Place."""
        if self.lock.descriptor >= 0:
            if os.fstat(self.lock.descriptor).st_nlink:
                files.remove(self.path)
            self.lock.release()


def _last(descriptor: int) -> int:
    """The number that was given last, as the lock has it; 0 for none."""
    try:
        return int(json.loads(os.pread(descriptor, LONGEST, 0) or b"{}").get("last", 0))
    except (ValueError, AttributeError):  # somebody else's bytes: the files themselves say it
        return 0


def _path(folder: str, number: int) -> str:
    return f"{folder}/{number:0{DIGITS}d}"


def _numbers(folder: str) -> list[int]:
    return [int(name) for name in files.names(folder) if name.isascii() and name.isdigit()]


def _cut(path: str, descriptor: int, at: int) -> None:
    """Cut a torn line off behind the last whole one; raises Changed where whole lines came, or went."""
    size = os.fstat(descriptor).st_size
    if size < at or b"\n" in os.pread(descriptor, size - at, at):
        raise VersionConflict(path)
    files.cut(path, at)
