"""Temporary folders for checks, services and agents, below the system's; the code that makes one removes it."""

from __future__ import annotations

import os
from collections.abc import Callable

from harness.process import tree


def create(what: str, tag: str = "", *, ordinary: bool = False) -> str:
    """Make an empty folder in the system's temporary folder; the caller removes it, or `remove_tagged` does after a
    kill. `ordinary`: the name reveals neither owner nor purpose."""
    name = f"{base()}/{tree.ordinary_name(tag)}{os.urandom(4).hex()}" if ordinary else ""
    folder = name or f"{begin(tag)}{what}-{os.urandom(5).hex()}"
    os.mkdir(folder, 0o700)
    return folder


def below(folder: str, name: str) -> str:
    """Make a folder of this name in one that `create` made; it is removed with that."""
    os.mkdir(made := os.path.join(folder, name), 0o700)
    return made


def begin(tag: str, where: str = "") -> str:
    """The path prefix of all temporary folders of a run; `where`: its temporary folder, if not that of this process."""
    named = f"{tag.replace('/', '-')}-" if tag else ""
    return os.path.join(where or base(), f"harness-{named}")


def base() -> str:
    """The system's temporary folder: $TMPDIR if it exists; cron and a terminal may differ."""
    named = os.environ.get("TMPDIR", "")
    return os.path.abspath(named) if os.path.isdir(named) else "/tmp"


def of_process(tag: str) -> str:
    """The tag of this process for a command outside a run; `remove_abandoned` finds its folders after a kill."""
    return f"{tag}-{os.getpid()}"


def remove_tagged(tag: str, where: str = "") -> None:
    """Remove the temporary folders that a killed run with this tag left behind, also in `where`, its temporary folder."""
    start = os.path.basename(begin(tag)), tree.ordinary_name(tag)
    for folder in {base(), where or base()}:
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            if name.startswith(start):
                remove(os.path.join(folder, name))


def remove_abandoned(*tags: str) -> None:
    """Remove the temporary folders that processes, now gone, made with `of_process` of these tags."""
    starts, where = [os.path.basename(begin(tag)) for tag in tags], base()
    for name in os.listdir(where):
        for start in starts:
            pid = name.removeprefix(start).partition("-")[0] if name.startswith(start) else ""
            if pid.isascii() and pid.isdigit() and not tree.lives(int(pid)):
                remove(os.path.join(where, name))


def remove(folder: str) -> None:
    """Remove the folder and its content as far as permissions allow; files of other users and mounts stay.
    Nothing reads it again, so a leftover changes neither a verdict nor the end of a run.
    """
    if os.path.islink(folder) and _done(os.unlink, folder):  # its target does not belong to the run
        return
    if _done(os.rmdir, folder):  # it is usually empty
        return
    _make_writable(folder)
    for top, folders, _ in os.walk(folder):
        for name in folders:
            _make_writable(os.path.join(top, name))
    _done(_empty, folder)
    _done(os.rmdir, folder)


def _empty(folder: str) -> None:
    """Remove the content by descriptors, so that no link leads out of the folder."""
    for _, folders, names, descriptor in os.fwalk(folder, topdown=False):
        for name in (*names, *folders):  # links to folders are among `folders`
            _drop(name, descriptor)


def _drop(name: str, folder: int) -> None:
    """Remove a file, a link or an empty folder from this open folder; `shutil` would cost 10 ms to load."""
    _done(lambda path: os.unlink(path, dir_fd=folder), name) or _done(lambda path: os.rmdir(path, dir_fd=folder), name)


def _make_writable(folder: str) -> None:
    """Make a folder writable: package caches are read-only, which prevents removal."""
    if not os.path.islink(folder):
        _done(lambda path: os.chmod(path, 0o700), folder)


def _done(change: Callable[[str], object], folder: str) -> bool:
    """Whether the change succeeded; files of another user, or removed ones, are skipped."""
    try:
        change(folder)
    except OSError:
        return False
    return True
