"""Disk operations of the store: read, replace, append, lock. Other packages reach state through `state.py` only.

*replace* writes a temporary file beside the target, fsyncs it, renames it, fsyncs the folder. *add_lines* ends a torn
last line, writes once and undoes a short write. `journal.py` uses them to change several files at once.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import threading
from collections.abc import Iterable, Iterator
from io import FileIO
from typing import Any

from harness.base.encoding import decode, digest, dump_json, parse_json
from harness.base.errors import BrokenFile, LockBusy
from harness.state.layout import state_home

__all__ = ("decode", "digest", "dump_json", "parse_json")
Content = bytes | Iterable[bytes]
MAX_PID_DIGITS = 10  # digits of a process id
PRIVATE = 0o600
MAX_SIGNATURE_BYTES = 4096  # bytes of a lock file
SHARED = 0o644
READ_ONLY = 0o444
FIRST = threading.get_ident()  # the thread that imports this module
NO_WAIT = os.O_NONBLOCK | os.O_NOCTTY  # a pipe in place of a file must not block the caller
NO_FILES = {
    errno.EISDIR: "it is a folder, where a file belongs",
    errno.ENXIO: "it is a pipe, a socket or a device, where a file belongs",
    errno.ELOOP: "it is a link, where a file belongs",
}


def read(path: str) -> bytes | None:
    """The whole file, or None if it is absent; raises BrokenFile if the path is not a regular file."""
    if (file := _open(path)) is None:
        return None
    with file:
        return file.read()


def _open(path: str) -> FileIO | None:
    try:
        return open(open_regular(path, os.O_RDONLY), "rb", buffering=0)
    except (FileNotFoundError, NotADirectoryError):
        return None


def open_regular(path: str, how: int, mode: int = SHARED) -> int:
    """A descriptor of a regular file, opened without blocking. Raises BrokenFile if the path is not a regular file, or
    if it is a link and opened for writing: the target may lie outside the state."""
    try:
        descriptor = os.open(path, how | NO_WAIT | (os.O_NOFOLLOW if how & (os.O_WRONLY | os.O_RDWR) else 0), mode)
    except OSError as fault:
        if fault.errno not in NO_FILES:
            raise
        raise _no_file(path, fault.errno) from None
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind):
        os.close(descriptor)
        raise _no_file(path, errno.EISDIR if stat.S_ISDIR(kind) else errno.ENXIO)
    return descriptor


def _no_file(path: str, why: int) -> BrokenFile:
    return BrokenFile(path, NO_FILES[why], remedy="Move it away.")


def read_text(path: str) -> str | None:
    """The whole file as UTF-8, or None if it is absent; raises BrokenFile with the line of a bad byte."""
    data = read(path)
    return None if data is None else decode(data, path)


def read_from(path: str, offset: int, size: int) -> bytes:
    """Up to `size` bytes from `offset`; empty if the file is shorter or absent. Raises BrokenFile as `read` does."""
    if (file := _open(path)) is None:
        return b""
    with file:
        return os.pread(file.fileno(), size, offset)


def blocks(path: str, start: int = 0, size: int = 65536) -> Iterator[bytes]:
    """The bytes from `start` on, block by block; empty if the file is shorter or absent. Raises BrokenFile as `read` does."""
    file = _open(path)
    if file is None:
        return
    with file:
        while block := os.pread(file.fileno(), size, start):
            yield block
            start += len(block)


def length(path: str) -> int:
    """Bytes in the file; 0 if it is absent. Raises BrokenFile as `read` does."""
    if (file := _open(path)) is None:
        return 0
    with file:
        return os.fstat(file.fileno()).st_size


def read_json(path: str) -> Any | None:
    """The file as JSON, None if it is absent; raises BrokenFile if it does not parse."""
    data = read(path)
    return None if data is None else parse_json(data, path)


def make_folder(path: str) -> None:
    """Make the folder and its parents; fsync the parent of each new one."""
    if not os.path.isdir(path):
        make_folder(os.path.dirname(path))
        claim_folder(path)


def claim_folder(path: str) -> bool:
    """Create the folder exclusively; False if the name exists. No other user enters that of all missions."""
    try:
        os.mkdir(path, 0o700 if path == state_home() else 0o777)
    except FileExistsError:
        return False
    sync_folder(os.path.dirname(path))
    return True


def sync_folder(path: str) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything, in one call if the kernel allows it."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def stage(path: str, data: Content, mode: int = SHARED, *, quickly: bool = False, stamp: int = 0) -> os.stat_result:
    """Write a new file with this content, or these blocks, durable except for its name (`quickly`: not durable); it
    overwrites a leftover file. `stamp`: its modification time in nanoseconds, unless 0."""
    try:
        descriptor = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    except BrokenFile:  # only the harness uses this name, so anything there can move aside
        os.rename(path, next(name for number in range(1, 1000) if not os.path.lexists(name := f"{path}.{number}")))
        descriptor = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with open(descriptor, "wb", buffering=0):
        for block in (data,) if isinstance(data, bytes) else data:
            write_all(descriptor, block)
        if stamp:
            os.utime(descriptor, ns=(stamp, stamp))
        if not quickly:
            os.fsync(descriptor)
        return os.fstat(descriptor)


def replace(
    path: str, data: Content, mode: int = SHARED, *, quickly: bool = False, beside: str = "", stamp: int = 0
) -> os.stat_result:
    """Replace the file atomically, also by blocks; durable unless `quickly`. `beside`: the path of the temporary file;
    `stamp`: see `stage`. Returns the new file as it was before anybody else could open it."""
    make_folder(os.path.dirname(path))
    temporary = _temporary(beside or path)
    if mode == READ_ONLY:
        remove(temporary)  # a leftover of a crash could not be opened
    try:
        staged = stage(temporary, data, mode, quickly=quickly, stamp=stamp)
        os.replace(temporary, path)
    except OSError as fault:
        fault.filename = fault.filename or path  # so that the message names the full disk
        remove(temporary)
        raise
    if not quickly:
        sync_folder(os.path.dirname(path))
    return staged


def _temporary(path: str) -> str:
    """The temporary name of this thread beside a path; its last number is the process id, which `abandoned` reads."""
    thread = "" if (own := threading.get_ident()) == FIRST else f".{own:x}"
    return f"{path}{thread}.{os.getpid()}.tmp"


def replace_quickly(path: str, data: bytes) -> None:
    """Replace the file atomically; a power cut may lose the content. For data that can be derived again."""
    replace(path, data, quickly=True)


def cut(path: str, length: int) -> None:
    """Shorten the file to its first `length` bytes, durably."""
    with open(open_regular(path, os.O_WRONLY), "wb", buffering=0) as file:
        os.ftruncate(file.fileno(), length)
        os.fsync(file.fileno())


def abandoned(folder: str) -> list[str]:
    """The temporary files in a folder whose writer is gone; names that `replace` does not use are skipped."""
    found = [os.path.join(folder, name) for name in names(folder) if name.endswith(".tmp") and _is_abandoned(name)]
    return [path for path in found if not os.path.isdir(path)]


def _is_abandoned(temporary: str) -> bool:
    pid = temporary.split(".")[-2]
    if not (pid.isascii() and pid.isdigit() and len(pid) < MAX_PID_DIGITS):
        return False
    try:
        os.kill(int(pid), 0)
    except OSError as fault:
        return isinstance(fault, ProcessLookupError)  # else it is a process of another user
    return False


def remove(path: str) -> None:
    """Remove the file, if it exists."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def link(path: str, target: str) -> None:
    """Make `path` a symbolic link to `target`, atomically; it replaces a file or link."""
    temporary = _temporary(path)
    remove(temporary)
    os.symlink(target, temporary)
    os.replace(temporary, path)


def move(path: str, target: str) -> None:
    """Move a file or folder to `target`; creates the folder of the target."""
    make_folder(os.path.dirname(target))
    os.rename(path, target)
    sync_folder(os.path.dirname(target))


def names(folder: str) -> list[str]:
    """Sorted names in a folder; [] if it is absent."""
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def size_below(path: str) -> int:
    """Size in bytes of a file, or of all files below a folder; 0 if absent. Links are not followed."""
    if os.path.isdir(path) and not os.path.islink(path):
        return sum(size_below(os.path.join(path, name)) for name in names(path))
    return os.lstat(path).st_size if os.path.lexists(path) else 0


class Lock:
    """An flock on a side file that is never replaced; the kernel frees it when the last holder dies.

    A guardian that inherits the descriptor holds the lock too. flock, not lockf: closing any descriptor of the file
    drops a POSIX lock. The `filelock` package takes the same lock on the same path.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.descriptor = -1
        self.signed: dict[str, object] = {}

    def take(self, *, wait: bool = False) -> bool:
        """Take the lock; `wait` blocks until it is free. False if another process has it."""
        make_folder(os.path.dirname(self.path))
        self.descriptor = open_regular(self.path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as fault:
            self.release()
            if fault.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        return True

    def sign(self, holder: dict[str, object]) -> None:
        """Write a description of the holder into the lock file: information for people, not for decisions."""
        self.signed = holder
        size = os.fstat(self.descriptor).st_size
        if size > MAX_SIGNATURE_BYTES:  # foreign bytes; such a descriptor may also append, regardless of the offset
            os.ftruncate(self.descriptor, 0)
            size = 0
        # The record never gets shorter, so a reader never sees half of it.
        os.pwrite(self.descriptor, dump_json(holder)[:-1].ljust(size - 1) + b"\n", 0)

    def holder(self) -> dict[str, Any]:
        """The description that the holder wrote; {} if it is unreadable."""
        try:
            return dict(json.loads(read(self.path) or b"{}"))
        except (ValueError, TypeError, BrokenFile):
            return {}

    def release(self) -> None:
        """Close this process's descriptor; the lock is free once the guardian's is closed too."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> Lock:
        if self.descriptor < 0:
            self.take(wait=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def take_descriptor(descriptor: int, how: int = fcntl.LOCK_EX) -> bool:
    """Lock an open file; the lock lives as long as the descriptor. False if another process has it."""
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_free(path: str) -> bool:
    """Whether no process holds the lock at `path` now; True if it is absent or not a file. Creates no file; a shared
    lock lets several readers check at once."""
    try:
        if (file := _open(path)) is None:
            return True
    except BrokenFile:
        return True
    with file:
        return take_descriptor(file.fileno(), fcntl.LOCK_SH)


def take_or_busy(lock: Lock, what: str) -> None:
    """Take the lock without waiting; raises LockBusy with its holder and since when."""
    if not lock.take():
        holder = ", ".join(f"{key} {value}" for key, value in lock.holder().items()) or "holder unknown"
        raise LockBusy(f"{what} is busy: {holder}. Wait for it to end, or stop it, then try again.")


def add_lines(descriptor: int, data: bytes) -> int:
    """Append whole lines to an open file in one write; returns their offset. The caller holds a lock and fsyncs.

    A torn last line gets a newline first and stays as a line; NUL bytes after a power cut are cut off; a short write (full
    disk) is undone before the error is raised.
    """
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        size = healed_length(descriptor)
        os.ftruncate(descriptor, size)
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            data = b"\n" + data
    try:
        if os.write(descriptor, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        os.ftruncate(descriptor, size)
        raise
    return size + (data[:1] == b"\n")


def healed_length(descriptor: int) -> int:
    """The file's length without the NUL bytes that a power cut may leave at its end."""
    size, step = os.fstat(descriptor).st_size, 4096
    while size:
        block = os.pread(descriptor, min(size, step), max(0, size - step))
        kept = block.rstrip(b"\0")
        size, step = size - len(block) + len(kept), 1 << 20
        if kept:
            break
    return size


def add_line(path: str, data: bytes) -> None:
    """Append whole lines to a file with one writer, as `add_lines`; durable on return."""
    with open(open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT), "rb+", buffering=0) as file:
        add_lines(file.fileno(), data)
        os.fsync(file.fileno())


class TranscriptFile:
    """An append-only file of one run, durable once it is closed."""

    def __init__(self, path: str) -> None:
        self.descriptor = open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, PRIVATE)

    def write(self, data: bytes) -> None:
        """Add bytes at the end."""
        write_all(self.descriptor, data)

    def sync(self) -> None:
        """Make the bytes so far durable."""
        os.fsync(self.descriptor)

    def close(self) -> None:
        """Make all bytes durable and close the file."""
        self.sync()
        os.close(self.descriptor)
