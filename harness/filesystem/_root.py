"""Finds what a path means beneath one folder, and opens it there and nowhere else, whatever is renamed or linked meanwhile.

A path without links is opened by one system call that the kernel keeps beneath the folder (openat2, Linux 5.6). A path with a
link or `..` in it, and any path where that call is missing, is walked name by name: each folder is opened from the one before
without following, and a link's text is walked the same way. So a link may lead anywhere beneath the folder, never out of it.
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
TRIES = 100  # a folder may be exchanged just between two looks; 100 times in a row nobody meets by chance

_calls: list[Callable[[int, bytes], int]] = []  # openat2, looked up once; empty: not yet


class RootedPath:
    """Where a path leads: the `folder` that it is in, an open descriptor, and its `names` from the root, without links.

    `name` is the last of them, or `.` for the root itself. As a context manager it closes the descriptor.
    """

    def __init__(self, folder: int, names: Sequence[str]) -> None:
        self.folder, self.names = folder, list(names)
        self.name = self.names[-1] if self.names else "."

    def open(self, how: int = READ) -> int:
        """A descriptor of what is there; raises OSError, with ELOOP where it became a link meanwhile."""
        return os.open(self.name, how | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.folder)

    def stat(self) -> os.stat_result:
        """What is there, a link unfollowed; raises FileNotFoundError."""
        return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)

    def found(self) -> os.stat_result | None:
        """What is there, or None."""
        try:
            return self.stat()
        except FileNotFoundError:
            return None

    def __enter__(self) -> RootedPath:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.folder)


class Root:
    """One folder, and what is beneath it. Raises OSError: EXDEV where a path leads out, ELOOP where links go in a circle."""

    def __init__(self, folder: str, *, by_kernel: bool = True) -> None:
        self.folder = os.path.realpath(folder)
        self.by_kernel = by_kernel

    def root(self) -> int:
        """A descriptor of the folder itself; raises OSError, with ELOOP, where a link is in its path by now."""
        top = os.open("/", FOLDER)
        try:
            root = _beneath(top, self.folder[1:] or ".") if self.by_kernel else -1
        finally:
            os.close(top)
        if root < 0 and os.path.realpath(self.folder) != self.folder:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return root if root >= 0 else os.open(self.folder, FOLDER | os.O_NOFOLLOW)

    def place(self, names: Sequence[str], *, follow: bool = True) -> RootedPath:
        """Where these names lead; the last one need not exist. `follow`: also through a link as the last."""
        root = self.root()
        try:
            found = None if ".." in names else self._straight(root, names, follow)
        except BaseException:
            os.close(root)
            raise
        return found or _Walk(root, self.folder).to(names, follow)

    def _straight(self, root: int, names: Sequence[str], follow: bool) -> RootedPath | None:
        """The place of a path without links; None where it has one, or nobody can say. It closes `root` or gives it away."""
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
        """(a descriptor that lists the folder, its names from the root without links)."""
        for _ in range(TRIES):
            with self.place(names) as place:
                try:
                    return os.open(place.name, LISTED, dir_fd=place.folder), place.names
                except OSError as fault:
                    if not _became_link(fault, place):
                        raise
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def opened(self, names: Sequence[str], how: int = READ) -> int:
        """A descriptor of the file or folder at the end of every link."""
        for _ in range(TRIES):
            with self.place(names) as place:
                try:
                    return place.open(how)
                except OSError as fault:
                    if not _became_link(fault, place):
                        raise
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def real(self, names: Sequence[str]) -> list[str]:
        """These names without links, as far as something is there; what leads out stays as it is."""
        for count in range(len(names), 0, -1):
            try:
                with self.place(names[:count]) as place:
                    return [*place.names, *names[count:]]
            except OSError as fault:
                if fault.errno not in (errno.ENOENT, errno.ENOTDIR):
                    break
        return list(names)

    def make_folders(self, names: Sequence[str]) -> None:
        """Make each folder that the last of these names is in and that is missing, but none before a `..`: FileNotFoundError."""
        there = len(names) - names[::-1].index("..") if ".." in names else 0
        with self.place(names[:there]):
            pass
        for count in range(there + 1, len(names)):
            with self.place(names[:count]) as place:
                try:  # noqa: SIM105 - contextlib costs a launch 5 ms
                    os.mkdir(place.name, dir_fd=place.folder)
                except FileExistsError:
                    pass


def _became_link(fault: OSError, place: RootedPath) -> bool:
    """Whether the place is a link now, which it was not when it was found."""
    return fault.errno in (errno.ELOOP, errno.ENOTDIR) and _link(place) is not None


def _link(place: RootedPath) -> str | None:
    """The text of the link that is there; None where there is none."""
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
    """One walk: the open folders from the root to here, and their names."""

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
        """The folder that the walk ended in, by its last name where it has one."""
        if not self.names:
            return RootedPath(self.open.pop(), [])
        os.close(self.open.pop())
        return RootedPath(self.open.pop(), self.names)

    def _inside(self, target: str) -> list[str]:
        """The names of a link's text; an absolute one begins at the root again, or leads out."""
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
    """The descriptor of a folder beneath `root`; -1 where a link is on the way, or the kernel cannot say. Raises OSError."""
    if not _calls:
        _calls.append(_openat2())
    answer = _calls[0](root, os.fsencode(path))
    if answer >= 0:
        return answer
    if -answer in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ENAMETOOLONG, errno.EMFILE, errno.ENFILE):
        raise OSError(-answer, os.strerror(-answer))
    return -1  # ELOOP: a link; EXDEV; EAGAIN: something was renamed; ENOSYS, EPERM: no such call here


def _openat2() -> Callable[[int, bytes], int]:
    """openat2(2), which has no wrapper in the C library."""
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
    """The names of a path as an agent writes it, or None. An absolute one below a folder of `homes` counts from there."""
    if "\0" in path or not path:
        return None
    for home in homes:
        if path == home or path.startswith(home.rstrip("/") + "/"):
            path = path[len(home) :]
            break
    return [name for name in path.split("/") if name not in ("", ".")]
