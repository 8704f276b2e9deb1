"""The only module that reads and writes state: read, replace, append, lock, digest.

*replace* writes a temporary file beside the target, fsyncs it, renames it, fsyncs the folder. *add_lines* closes a torn
last line, writes once and takes a short write back. What must hold over several files is `journal.py`, made of these.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat

from harness.base.errors import BrokenFile, Busy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PRIVATE = 0o600
SHARED = 0o644
UNHELD = os.O_NONBLOCK | os.O_NOCTTY  # a pipe that somebody put in a file's place must hold up nobody
NO_FILES = {
    errno.EISDIR: "it is a folder, where a file belongs",
    errno.ENXIO: "it is a pipe, a socket or a device, where a file belongs",
    errno.ELOOP: "it is a link that leads to no file, where a file belongs",
}
COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def digest(data: bytes) -> str:
    """SHA-256 of `data`, 64 hex digits."""
    import hashlib  # here, because loading OpenSSL costs 3 ms and `harness next` needs no digest

    return hashlib.sha256(data).hexdigest()


def read(path: str) -> bytes | None:
    """The whole file, or None where there is none; BrokenFile where something else stands in its place."""
    descriptor = _look(path)
    if descriptor is None:
        return None
    with open(descriptor, "rb") as file:
        return file.read()


def _look(path: str) -> int | None:
    try:
        return open_regular(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None


def open_regular(path: str, how: int, mode: int = SHARED) -> int:
    """A descriptor of a regular file, without waiting for anybody; BrokenFile where something else stands in its place."""
    try:
        descriptor = os.open(path, how | UNHELD, mode)
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
    """The whole file as UTF-8, or None where there is none; raises BrokenFile naming the line of a bad byte."""
    data = read(path)
    return None if data is None else decode(data, path)


def decode(data: bytes, path: str) -> str:
    """`data` as UTF-8 text; raises BrokenFile with the line of the first bad byte."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        raise BrokenFile(path, "not UTF-8 text", line=line, remedy="Save the file as UTF-8.") from None


def read_from(path: str, offset: int, size: int) -> bytes:
    """Up to `size` bytes from `offset`; empty where the file ends before, or is absent. BrokenFile as `read`."""
    descriptor = _look(path)
    if descriptor is None:
        return b""
    try:
        return os.pread(descriptor, size, offset)
    finally:
        os.close(descriptor)


def length(path: str) -> int:
    """Bytes in the file; 0 where there is none. BrokenFile as `read`."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as fault:
        if fault.errno != errno.ELOOP:
            raise
        raise _no_file(path, errno.ELOOP) from None
    if not stat.S_ISREG(found.st_mode):
        raise _no_file(path, errno.EISDIR if stat.S_ISDIR(found.st_mode) else errno.ENXIO)
    return found.st_size


def parse_json(data: bytes, path: str) -> Any:
    """`data` as JSON; raises BrokenFile with the line."""
    try:
        return json.loads(decode(data, path))
    except json.JSONDecodeError as fault:
        raise BrokenFile(path, f"not JSON ({fault.msg})", line=fault.lineno, remedy="Mend that line.") from None
    except (ValueError, RecursionError) as fault:
        raise BrokenFile(path, f"not JSON that can be read ({fault})", line=1, remedy="Mend it.") from None


def read_json(path: str) -> Any | None:
    """The file as JSON, None where it is absent; raises BrokenFile where it does not parse."""
    data = read(path)
    return None if data is None else parse_json(data, path)


def dump_json(value: object) -> bytes:
    """Compact JSON on one line, with its newline."""
    try:
        return COMPACT.encode(value).encode() + b"\n"
    except UnicodeEncodeError:  # a file name that is not UTF-8: escaped, it comes back as it was
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def make_folder(path: str) -> None:
    """The folder and its parents; the parent is fsynced when it is new."""
    if not os.path.isdir(path):
        make_folder(os.path.dirname(path))
        try:
            os.mkdir(path)
        except FileExistsError:
            return
        sync_folder(os.path.dirname(path))


def claim_folder(path: str) -> bool:
    """Make the folder exclusively; False where the name is taken already."""
    try:
        os.mkdir(path)
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
    """Write everything, in one call where the kernel takes it."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def stage(path: str, data: bytes, mode: int = SHARED, *, quickly: bool = False) -> None:
    """A new file with this content, durable but for its name; an earlier left-over is overwritten, `quickly` not durable."""
    how = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    try:
        descriptor = open_regular(path, how, mode)
    except BrokenFile:  # nobody but us makes a file of this name
        os.rename(path, next(name for number in range(1, 1000) if not os.path.lexists(name := f"{path}.{number}")))
        descriptor = open_regular(path, how, mode)
    try:
        write_all(descriptor, data)
        if not quickly:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace(path: str, data: bytes, mode: int = SHARED) -> None:
    """The file has this content, wholly or not at all, and keeps it when the power goes."""
    _swap(path, data, mode)
    sync_folder(os.path.dirname(path))


def replace_quickly(path: str, data: bytes) -> None:
    """The file has this content, wholly or not at all; a power cut may lose it. For what can be made again."""
    _swap(path, data, SHARED, quickly=True)


def _swap(path: str, data: bytes, mode: int, *, quickly: bool = False) -> None:
    make_folder(os.path.dirname(path))
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        stage(temporary, data, mode, quickly=quickly)
        os.replace(temporary, path)
    except OSError:
        remove(temporary)
        raise


def remove(path: str) -> None:
    """The file is gone; no fault where it was absent."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def move(path: str, target: str) -> None:
    """Move a file or folder to `target`, whose folder is made."""
    make_folder(os.path.dirname(target))
    os.rename(path, target)
    sync_folder(os.path.dirname(target))


def names(folder: str) -> list[str]:
    """Sorted names in a folder; none where it is absent."""
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


class Lock:
    """An flock on a side file that is never replaced; freed by the kernel when its last holder dies.

    The descriptor may be handed to a guardian, which then holds the lock too. flock, never lockf: a POSIX lock is
    dropped when any descriptor of the file is closed. The `filelock` package takes the same lock on the same path.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.descriptor = -1
        self.signed: dict[str, object] = {}

    def take(self, *, wait: bool = False) -> bool:
        """Take the lock; with `wait` until it is free. False where somebody else has it."""
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
        """Write who holds the lock into its file: information for people, never judged by."""
        self.signed = holder
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, dump_json(holder), 0)

    def holder(self) -> dict[str, Any]:
        """What the holder wrote; empty where nothing can be read."""
        try:
            return dict(json.loads(read(self.path) or b"{}"))
        except (ValueError, TypeError, BrokenFile):
            return {}

    def release(self) -> None:
        """Give our descriptor back; the lock is free once the guardian's is closed too."""
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
    """Lock an open file whose descriptor somebody else keeps (and thereby the lock); False where it is taken."""
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_free(path: str) -> bool:
    """Whether nobody holds the lock at `path` right now; an absent lock file is free. It is only looked at: no file is
    made, and those who look are not in each other's way."""
    try:
        descriptor = _look(path)
    except BrokenFile:
        descriptor = None  # nobody holds what is no file
    if descriptor is None:
        return True
    with open(descriptor, "rb"):
        return take_descriptor(descriptor, fcntl.LOCK_SH)


def take_or_busy(lock: Lock, what: str) -> None:
    """Take the lock at once; raises Busy with who holds it and since when."""
    if lock.take():
        return
    who = ", ".join(f"{key} {value}" for key, value in lock.holder().items()) or "holder unknown"
    raise Busy(f"{what} is busy: {who}. Wait for it to end, or stop it, then try again.")


def add_lines(descriptor: int, data: bytes) -> int:
    """One write of whole lines at the end of an open file; returns their offset. The caller holds a lock and fsyncs.

    A torn last line is closed first (it stays, as a line of its own); NUL bytes that a power cut left are cut off; a
    short write (full disk) is taken back before the fault is raised.
    """
    size = healed_length(descriptor)
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        data = b"\n" + data
    if os.fstat(descriptor).st_size != size:
        os.ftruncate(descriptor, size)
    try:
        if os.write(descriptor, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        os.ftruncate(descriptor, size)
        raise
    return size + (data[:1] == b"\n")


def healed_length(descriptor: int) -> int:
    """The file's length without the NUL bytes that a power cut may leave at its end."""
    size = os.fstat(descriptor).st_size
    while size:
        block = os.pread(descriptor, min(size, 4096), max(0, size - 4096))
        kept = block.rstrip(b"\0")
        size -= len(block) - len(kept)
        if kept:
            break
    return size


def add_line(path: str, data: bytes) -> None:
    """Whole lines at the end of a file that has one writer; durable on return, a torn last line is closed first."""
    descriptor = open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    try:
        add_lines(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Transcript:
    """An append-only file of one run, written while it grows and made durable when it is closed."""

    def __init__(self, path: str) -> None:
        self.descriptor = open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, PRIVATE)

    def write(self, data: bytes) -> None:
        """Add bytes at the end."""
        write_all(self.descriptor, data)

    def sync(self) -> None:
        """Make what was written so far durable."""
        os.fsync(self.descriptor)

    def close(self) -> None:
        """Make what was written durable, and end."""
        self.sync()
        os.close(self.descriptor)
