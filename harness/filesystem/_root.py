"""Resolves and opens paths beneath one folder, never outside it, even under concurrent renames and links.

A path without links is opened by one system call that the kernel confines to the folder (openat2, Linux 5.6). A path with a
link or `..`, and any path if that call is missing, is walked name by name: each folder is opened from its parent without
following links, and a link's target is walked the same way. So a link may lead anywhere beneath the folder, never out of it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Iterable, Sequence

MAX_LINKS = 40  # as the kernel's
OPENAT2 = 437  # the same on every architecture
NO_LINKS_BENEATH = 0x04 | 0x08  # RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH, linux/openat2.h
FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
TRIES = 100  # a folder may be swapped between two checks, but not 100 times in a row by chance

_calls: list[Callable[[int, bytes], int]] = []  # openat2, looked up once


class RootedPath:
    """A resolved path: an open descriptor of its `folder`, and its `names` from the root, without links.
    `name` is the last of them, or `.` for the root itself. As a context manager it closes the descriptor.
    """

    def __init__(self, folder: int, names: Sequence[str]) -> None:
        self.folder, self.names = folder, list(names)
        self.name = self.names[-1] if self.names else "."

    def open(self, how: int = READ) -> int:
        """A descriptor of the entry; raises OSError, ELOOP if it became a link meanwhile."""
        return os.open(self.name, how | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.folder)

    def stat(self) -> os.stat_result:
        """The stat of the entry, without following a link; raises FileNotFoundError."""
        return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)

    def found(self) -> os.stat_result | None:
        """The stat of the entry, or None."""
        return stat_of(self.folder, self.name)

    def __enter__(self) -> RootedPath:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.folder)


class Root:
    """A root folder. Methods raise OSError: EXDEV if a path leads out, ELOOP for circular links."""

    def __init__(self, folder: str, *, by_kernel: bool = True) -> None:
        self.folder = os.path.realpath(folder)
        self.by_kernel = by_kernel

    def root(self) -> int:
        """A descriptor of the folder itself; raises OSError (ELOOP) if its path contains a link by now."""
        top = os.open("/", FOLDER)
        try:
            root = _beneath(top, self.folder[1:] or ".") if self.by_kernel else -1
        finally:
            os.close(top)
        if root < 0 and os.path.realpath(self.folder) != self.folder:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return root if root >= 0 else os.open(self.folder, FOLDER | os.O_NOFOLLOW)

    def place(self, names: Sequence[str], *, follow: bool = True) -> RootedPath:
        """Resolve these names; the last need not exist. `follow`: also follow a link as the last."""
        root = self.root()
        try:
            found = None if ".." in names else self._straight(root, names, follow)
        except BaseException:
            os.close(root)
            raise
        return found or _Walk(root, self.folder).to(names, follow)

    def _straight(self, root: int, names: Sequence[str], follow: bool) -> RootedPath | None:
        """Resolve a path without links; None if it has one, or the kernel cannot tell. Takes ownership of `root`."""
        if len(names) < 2:
            folder = root
        elif not self.by_kernel:
            return None
        else:
            folder = _beneath(root, "/".join(names[:-1]))
            if folder < 0:
                return None
        place = RootedPath(folder, names)
        try:
            links = bool(names) and follow and _link(place) is not None
        except BaseException:
            if folder != root:
                os.close(folder)
            raise
        if links:
            if folder != root:
                os.close(folder)
            return None
        if folder != root:
            os.close(root)
        return place

    def listed(self, names: Sequence[str]) -> tuple[int, list[str]]:
        """(a descriptor that can list the folder, its names from the root without links)."""
        return self._opened(names, LISTED)

    def opened(self, names: Sequence[str], how: int = READ) -> int:
        """A descriptor of the file or folder, all links followed."""
        return self._opened(names, how)[0]

    def _opened(self, names: Sequence[str], how: int) -> tuple[int, list[str]]:
        """(a descriptor of the file or folder, all links followed; its names from the root without links)."""
        for _ in range(TRIES):
            with self.place(names) as place:
                try:
                    return place.open(how), place.names
                except OSError as fault:
                    if not _became_link(fault, place):
                        raise
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def real(self, names: Sequence[str]) -> list[str]:
        """Resolve links in these names as far as they exist; a path that leads out stays as it is."""
        for count in range(len(names), 0, -1):
            try:
                with self.place(names[:count]) as place:
                    return [*place.names, *names[count:]]
            except OSError as fault:
                if fault.errno not in (errno.ENOENT, errno.ENOTDIR):
                    break
        return list(names)

    def make_folders(self, names: Sequence[str]) -> None:
        """Create the missing parents of the last name; raises FileNotFoundError for one before a `..`."""
        there = len(names) - names[::-1].index("..") if ".." in names else 0
        with self.place(names[:there]):
            pass
        for count in range(there + 1, len(names)):
            with self.place(names[:count]) as place:
                try:  # noqa: SIM105 - contextlib costs a launch 5 ms
                    os.mkdir(place.name, dir_fd=place.folder)
                except FileExistsError:
                    pass


def stat_of(folder: int, name: str) -> os.stat_result | None:
    """The stat of an entry of an open folder, without following a link; None if there is none."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _became_link(fault: OSError, place: RootedPath) -> bool:
    """Whether the entry became a link since it was resolved."""
    return fault.errno in (errno.ELOOP, errno.ENOTDIR) and _link(place) is not None


def _link(place: RootedPath) -> str | None:
    """The target of the link at this place; None if it is not a link."""
    return _text(place.name, place.folder)


def _text(name: str, folder: int) -> str | None:
    try:
        return os.readlink(name, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as fault:
        if fault.errno == errno.EINVAL:
            return None
        raise


class _Walk:
    """One walk: the open folders from the root to the present one, and their names."""

    def __init__(self, root: int, folder: str) -> None:
        self.open, self.names, self.folder = [root], list[str](), folder

    def to(self, names: Sequence[str], follow: bool) -> RootedPath:
        try:
            todo, links = list(reversed(names)), 0
            while todo:
                name = todo.pop()
                target = None if name == ".." or not (todo or follow) else _text(name, self.open[-1])
                if target is not None:
                    links += 1
                    if links > MAX_LINKS:
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                    todo += reversed(self._inside(target))
                elif name == "..":
                    self._up()
                elif todo:
                    self._down(name)
                else:
                    return RootedPath(self.open.pop(), [*self.names, name])
            return self._here()
        finally:
            for fd in self.open:
                os.close(fd)

    def _here(self) -> RootedPath:
        """The folder in which the walk ended, by its last name if it has one."""
        if not self.names:
            return RootedPath(self.open.pop(), [])
        os.close(self.open.pop())
        return RootedPath(self.open.pop(), self.names)

    def _inside(self, target: str) -> list[str]:
        """The names of a link's target; an absolute one restarts at the root, or leads out."""
        if target.startswith("/"):
            if not (target + "/").startswith(self.folder.rstrip("/") + "/"):
                raise _out()
            while len(self.open) > 1:
                self._up()
            target = target[len(self.folder) :]
        return [name for name in target.split("/") if name not in ("", ".")]

    def _up(self) -> None:
        if not self.names:
            raise _out()
        self.names.pop()
        os.close(self.open.pop())

    def _down(self, name: str) -> None:
        self.open.append(os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=self.open[-1]))
        self.names.append(name)


def _out() -> OSError:
    return OSError(errno.EXDEV, "it leads out of the root")


def _beneath(root: int, path: str) -> int:
    """The descriptor of a folder beneath `root`; -1 if the path has a link, or the kernel cannot tell. Raises OSError."""
    if not _calls:
        _calls.append(_openat2())
    answer = _calls[0](root, os.fsencode(path))
    if answer >= 0:
        return answer
    if -answer in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ENAMETOOLONG, errno.EMFILE, errno.ENFILE):
        raise OSError(-answer, os.strerror(-answer))
    return -1  # ELOOP: a link; EXDEV; EAGAIN: concurrent rename; ENOSYS, EPERM: call not available


def _openat2() -> Callable[[int, bytes], int]:
    """openat2(2); the C library has no wrapper for it."""
    try:
        call = ctypes.CDLL(None, use_errno=True).syscall
    except (OSError, AttributeError):
        return lambda root, path: -errno.ENOSYS
    how = struct.pack("QQQ", FOLDER, 0, NO_LINKS_BENEATH)
    number, size = ctypes.c_long(OPENAT2), ctypes.c_size_t(len(how))

    def opened(root: int, path: bytes) -> int:
        answer: int = call(number, ctypes.c_int(root), path, how, size)
        return answer if answer >= 0 else -ctypes.get_errno()

    return opened if os.uname().sysname == "Linux" else lambda root, path: -errno.ENOSYS


def split(path: str, homes: Iterable[str] = ()) -> list[str] | None:
    """The names of a path as an agent writes it, or None. An absolute path below a folder of `homes` is relative to that."""
    if "\0" in path or not path:
        return None
    for home in homes:
        if path == home or path.startswith(home.rstrip("/") + "/"):
            path = path[len(home) :]
            break
    return [name for name in path.split("/") if name not in ("", ".")]
