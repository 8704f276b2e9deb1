"""Puts files into a working folder that others may write concurrently: follows no link, overwrites nothing.

A folder is opened name by name from its top, without following links. A file is replaced in two steps: the old one is
moved away, the new one takes the name only if it is free. So a file that appears in between is never lost.
"""

from __future__ import annotations

import os
import stat

from harness.git.contents import LINK
from harness.process import temporary
from harness.state import files

Fingerprint = list[int]  # inode, size, mtime_ns, mode: unchanged by a rename, changed by every save


def reach(top: str, parts: list[str], *, make: bool = False) -> int:
    """A descriptor of the folder `parts` below `top`; raises OSError if a part is a link, not a folder, or absent."""
    here = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    for part in parts:
        try:
            if make and part not in os.listdir(here):
                os.mkdir(part, dir_fd=here)
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
        finally:
            os.close(here)
        here = inner
    return here


def fingerprint(top: str, name: str) -> Fingerprint | None:
    """The fingerprint of the file or link at `name`; None if it is absent or only reachable through a link."""
    *above, last = name.split("/")
    try:
        folder = reach(top, above)
    except OSError:
        return None
    try:
        found = os.stat(last, dir_fd=folder, follow_symlinks=False)
        return None if stat.S_ISDIR(found.st_mode) else of(found)
    except FileNotFoundError:
        return None
    finally:
        os.close(folder)


def of(found: os.stat_result) -> Fingerprint:
    """The fingerprint of a stat result."""
    return [found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode]


def move_away(top: str, name: str, target: str) -> None:
    """Move the file at `name` to `target`, a free path of the harness; raises OSError if it cannot."""
    *above, last = name.split("/")
    folder = reach(top, above)
    try:
        os.rename(last, target, src_dir_fd=folder)
    finally:
        os.close(folder)


def put(source: str, top: str, name: str) -> None:
    """Link the file `source` to `name`; raises OSError (FileExistsError if the name is taken)."""
    *above, last = name.split("/")
    folder = reach(top, above, make=True)
    try:
        os.link(source, last, dst_dir_fd=folder, follow_symlinks=False)
    finally:
        os.close(folder)


def drop_empty(top: str, name: str) -> None:
    """Remove empty folders above `name`, as git does."""
    above = name.split("/")[:-1]
    while above:
        try:
            folder = reach(top, above[:-1])
            try:
                os.rmdir(above.pop(), dir_fd=folder)
            finally:
                os.close(folder)
        except OSError:
            return


def blocked(top: str, name: str) -> str:
    """Why no file can be at `name`: a parent is a link or a file; "" if one can."""
    above = name.split("/")[:-1]
    try:
        os.close(reach(top, above))
    except FileNotFoundError:
        return ""
    except OSError as fault:
        return fault.strerror or "it cannot be reached"
    return ""


def write(top: str, name: str, mode: str, data: bytes) -> None:
    """Write a file with git's mode at `name`, replacing anything there or in place of a parent folder."""
    parts = name.split("/")
    for depth in range(1, len(parts) + 1):
        path = os.path.join(top, *parts[:depth])
        if os.path.lexists(path) and (depth == len(parts) or os.path.islink(path) or not os.path.isdir(path)):
            temporary.remove(path) if os.path.isdir(path) and not os.path.islink(path) else files.remove(path)
    folder = reach(top, parts[:-1], make=True)
    try:
        if mode == LINK:
            os.symlink(os.fsdecode(data), parts[-1], dir_fd=folder)
        else:
            _write(folder, parts[-1], data, int(mode[-3:], 8))
    finally:
        os.close(folder)


def copy(source: str, target: str, name: str) -> str:
    """Copy the file `name` with its mode to another folder; returns "" or why not. Links are not followed."""
    *above, last = name.split("/")
    try:
        folder = reach(source, above)
        try:
            descriptor = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | files.NO_WAIT, dir_fd=folder)
        finally:
            os.close(folder)
    except OSError as fault:
        return fault.strerror or "it cannot be read"
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        return "it is not a file"
    with open(descriptor, "rb") as file:
        data = file.read()
    try:
        folder = reach(target, above, make=True)
    except OSError as fault:
        return f"in the tree: {fault.strerror}"
    try:
        _write(folder, last, data, found.st_mode & 0o777)
    except OSError as fault:
        return f"in the tree: {fault.strerror}"
    finally:
        os.close(folder)
    return ""


def _write(folder: int, name: str, data: bytes, mode: int) -> None:
    """Write atomically; a link or hard link of that name is replaced, not written through."""
    temporary = f".{name}.{os.urandom(4).hex()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode, dir_fd=folder)
    try:
        files.write_all(descriptor, data)
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
