"""Changes entries of one open folder, by name: files are replaced atomically, and of two creators one wins.

New content goes to a separate file first, unnamed if the system supports it, so that a kill leaves nothing; one call
then gives it the name. Existing files are never written: another hard link keeps the old content, and a reader sees the
old or the new. Writers of one file take a lock on the file itself (flock), as long as it has the name.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress

from harness.filesystem._root import LISTED, READ, stat_of

LOCK_SECONDS = 10.0
PAUSE_SECONDS = 0.0005
NOT_HERE = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.EPERM, errno.ENOSYS)
KEEP = 1  # RENAME_NOREPLACE, linux/fs.h
_calls: list[Callable[[int, str, int, str], int] | None] = []  # renameat2, looked up once


class FileBusy(Exception):
    """Another program has held a lock on the file for LOCK_SECONDS."""


class LockedFile:
    """An open and locked regular file that still has its name; no other writer of the harness replaces it until exit."""

    def __init__(self, folder: int, name: str) -> None:
        self.folder, self.name = folder, name
        self.fd, self.at_first = _locked(folder, name)

    def unchanged(self) -> bool:
        """Whether no other program has written to the file, or replaced it, since it was locked."""
        now = stat_of(self.folder, self.name)
        return now is not None and _identity(now) == _identity(self.at_first)

    def __enter__(self) -> LockedFile:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def _locked(folder: int, name: str) -> tuple[int, os.stat_result]:
    """A locked descriptor of the file that has the name once the lock is taken. Raises FileNotFoundError, OSError,
    FileBusy."""
    until = time.monotonic() + LOCK_SECONDS
    while True:
        fd = opened(folder, name)
        try:
            _lock(fd, until)
            found = os.fstat(fd)
            if found.st_nlink and (now := stat_of(folder, name)) and os.path.samestat(now, found):
                return fd, found
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def opened(folder: int, name: str) -> int:
    """A descriptor of a regular file that its user may write. Raises OSError: EISDIR or ENXIO if it is not a file,
    EROFS if its mode permits no writing."""
    kind = os.stat(name, dir_fd=folder, follow_symlinks=False)
    check(kind)
    fd = os.open(name, READ, dir_fd=folder)
    kind = os.fstat(fd)
    try:
        check(kind)
        if not kind.st_mode & 0o222:
            raise OSError(errno.EROFS, "its mode permits no writing")
        if not os.access(name, os.W_OK, dir_fd=folder):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    except BaseException:
        os.close(fd)
        raise
    return fd


def check(kind: os.stat_result) -> None:
    """Raise OSError unless it is a regular file."""
    if stat.S_ISDIR(kind.st_mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if stat.S_ISLNK(kind.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if not stat.S_ISREG(kind.st_mode):
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))


def _lock(fd: int, until: float) -> None:
    """Take the lock by polling, since a wait in the kernel could last forever."""
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise FileBusy from None
            time.sleep(PAUSE_SECONDS)
        except OSError as fault:
            if fault.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.EBADF):
                raise
            return None  # a network filesystem without locks: `unchanged` remains


def put(folder: int, name: str, data: bytes, like: os.stat_result | None = None) -> None:
    """Give the name a file with this content, durably. `like`: the stat of the file that it replaces, whose mode and
    owner it gets; None: a new file, FileExistsError if the name is taken."""
    fd, temporary = _nameless(folder) or _named(folder, name)
    try:
        _fill(fd, data, like)
        if like is None:
            temporary = _create(folder, fd, temporary, name)
        else:
            if not temporary:
                temporary = _unused(name)
                _link(fd, folder, temporary)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            temporary = ""
    finally:
        os.close(fd)
        if temporary:
            os.unlink(temporary, dir_fd=folder)
    _sync(folder)


def _unused(name: str) -> str:
    """A unique hidden name."""
    return f".{name[:80]}.{os.urandom(6).hex()}.tmp"


def _nameless(folder: int) -> tuple[int, str] | None:
    """A new unnamed file, if the system supports such files and can name them later; else None."""
    if not hasattr(os, "O_TMPFILE") or not os.path.exists("/proc/self/fd"):
        return None
    try:
        return os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666, dir_fd=folder), ""
    except OSError as fault:
        if fault.errno not in NOT_HERE:
            raise
        return None


def _named(folder: int, name: str) -> tuple[int, str]:
    """A new file with a temporary name, for systems without unnamed files."""
    temporary = _unused(name)
    return os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=folder), temporary


def _fill(fd: int, data: bytes, like: os.stat_result | None) -> None:
    """Write all data, copy owner and mode of the replaced file, and make it durable."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
    if like is not None:
        mine = os.fstat(fd)
        if (mine.st_uid, mine.st_gid) != (like.st_uid, like.st_gid):
            with suppress(PermissionError):  # keeps the owner as far as this user is permitted to
                os.fchown(fd, like.st_uid, like.st_gid)
        os.fchmod(fd, stat.S_IMODE(like.st_mode))
    os.fsync(fd)


def _create(folder: int, fd: int, temporary: str, name: str) -> str:
    """Give the new file its name, unless it is taken; returns the temporary name that remains, or ""."""
    if not temporary:
        _link(fd, folder, name)
        return ""
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as fault:
        if fault.errno not in (errno.EPERM, errno.EOPNOTSUPP):
            raise
        move(folder, temporary, folder, name)  # a filesystem without hard links
        return ""
    return temporary


def _link(fd: int, folder: int, name: str) -> None:
    """Give an open unnamed file this name; raises FileExistsError if it is taken."""
    os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=folder, follow_symlinks=True)


def _sync(folder: int) -> None:
    """Make the names of a folder durable."""
    fd = os.open(".", LISTED, dir_fd=folder)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_folder(folder: int, name: str) -> None:
    """Create a folder durably, unless it exists; raises FileExistsError if something else has the name."""
    try:
        os.mkdir(name, dir_fd=folder)
    except FileExistsError:
        if not _is_folder(folder, name):
            raise
    _sync(folder)


def move(folder: int, name: str, target_folder: int, target: str) -> None:
    """Rename; raises FileExistsError if the target exists."""
    if not _calls:
        _calls.append(_renameat2())
    answer = _calls[0](folder, name, target_folder, target) if _calls[0] else errno.ENOSYS
    if answer in (errno.ENOSYS, errno.EINVAL):  # not supported by the system or filesystem: check, then rename
        answer = errno.EEXIST if stat_of(target_folder, target) else 0
        if not answer:
            os.rename(name, target, src_dir_fd=folder, dst_dir_fd=target_folder)
    if answer:
        raise OSError(answer, os.strerror(answer))
    _sync(target_folder)
    _sync(folder)


def _renameat2() -> Callable[[int, str, int, str], int] | None:
    """renameat2(2), if the C library has it: returns 0 or the errno."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None

    def renamed(folder: int, name: str, target_folder: int, target: str) -> int:
        os_error = call(folder, os.fsencode(name), target_folder, os.fsencode(target), KEEP)
        return ctypes.get_errno() if os_error else 0

    return renamed


def remove(folder: int, name: str) -> int:
    """Delete a file, or a folder with its content, durably; links are not followed. Returns the number of files."""
    try:
        os.unlink(name, dir_fd=folder)
        count = 1
    except OSError as fault:  # Linux reports EISDIR, others EPERM
        if fault.errno not in (errno.EISDIR, errno.EPERM) or not _is_folder(folder, name):
            raise
        count = _emptied(folder, name)
        os.rmdir(name, dir_fd=folder)
    _sync(folder)
    return count


def _is_folder(folder: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _emptied(folder: int, name: str) -> int:
    """Empty a folder, depth first; each folder is opened from its parent, so no link is followed."""
    fd = os.open(name, LISTED, dir_fd=folder)
    count, stack = 0, [(name, fd, *_unlinked(fd))]
    try:
        while True:
            done, fd, folders, files = stack[-1]
            if folders:
                below = folders.pop()
                inner = os.open(below, LISTED, dir_fd=fd)
                stack.append((below, inner, *_unlinked(inner)))
                continue
            count += files
            os.close(stack.pop()[1])
            if not stack:
                return count
            os.rmdir(done, dir_fd=stack[-1][1])
    finally:
        for _, fd, _, _ in stack:
            os.close(fd)


def _unlinked(fd: int) -> tuple[list[str], int]:
    """Delete the files of an open folder: (names of its folders, number of deleted files)."""
    with os.scandir(fd) as entries:
        found = [(one.name, one.is_dir(follow_symlinks=False)) for one in entries]
    for name in (names := [name for name, is_folder in found if not is_folder]):
        os.unlink(name, dir_fd=fd)
    return [name for name, is_folder in found if is_folder], len(names)
