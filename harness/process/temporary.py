"""Temporary folders for checks, services and agents, below the system's own; each is removed by the code that made it."""

from __future__ import annotations

import os
from collections.abc import Callable

from harness.process import tree


def create(what: str, tag: str = "", *, ordinary: bool = False) -> str:
    """Make an empty folder in the system's temporary folder; the caller removes it, or `remove_tagged` does after a kill.
    `ordinary`: its name says neither whose it is nor what it is for."""
    name = f"{base()}/{tree.ordinary_name(tag)}{os.urandom(4).hex()}" if ordinary else ""
    folder = name or f"{begin(tag)}{what}-{os.urandom(5).hex()}"
    os.mkdir(folder, 0o700)
    return folder


def below(folder: str, name: str) -> str:
    """Make a folder of this name in one that `create` made; it goes with that."""
    os.mkdir(made := os.path.join(folder, name), 0o700)
    return made


def begin(tag: str, where: str = "") -> str:
    """How the paths of all temporary folders of a run begin; `where`: its temporary folder, if not that of this process."""
    named = f"{tag.replace('/', '-')}-" if tag else ""
    return os.path.join(where or base(), f"harness-{named}")


def base() -> str:
    """The system's temporary folder: $TMPDIR where it exists; another one for cron than in a terminal."""
    named = os.environ.get("TMPDIR", "")
    return os.path.abspath(named) if os.path.isdir(named) else "/tmp"


def of_process(tag: str) -> str:
    """The tag of a command that is no run, for this process: `remove_abandoned` finds its folders after a kill."""
    return f"{tag}-{os.getpid()}"


def remove_tagged(tag: str, where: str = "") -> None:
    """Remove the temporary folders that a killed run with this tag left behind, also in `where`, its temporary folder."""
    start = os.path.basename(begin(tag)), tree.ordinary_name(tag)
    for folder in {base(), where or base()}:
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            if name.startswith(start):
                remove(os.path.join(folder, name))


def remove_abandoned(*tags: str) -> None:
    """Remove the temporary folders of processes that are gone, which made them with `of_process` of these tags."""
    starts, where = [os.path.basename(begin(tag)) for tag in tags], base()
    for name in os.listdir(where):
        for start in starts:
            pid = name.removeprefix(start).partition("-")[0] if name.startswith(start) else ""
            if pid.isascii() and pid.isdigit() and not tree.lives(int(pid)):
                remove(os.path.join(where, name))


def remove(folder: str) -> None:
    """Remove the folder and its content as far as permissions allow: what belongs to another user, or is held by a
    mount, stays. Nothing reads it again, so a leftover changes neither a verdict nor the end of a run.
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
    """By descriptors, so that no link leads out of the folder."""
    for _, folders, names, descriptor in os.fwalk(folder, topdown=False):
        for name in (*names, *folders):  # a link to a folder is among these
            _drop(name, descriptor)


def _drop(name: str, folder: int) -> None:
    """Remove a file, a link or an empty folder from this open folder; `shutil` would cost 10 ms to load."""
    _done(lambda path: os.unlink(path, dir_fd=folder), name) or _done(lambda path: os.rmdir(path, dir_fd=folder), name)


def _make_writable(folder: str) -> None:
    """Make it writable: package caches are read-only, and nothing can be removed from a read-only folder."""
    if not os.path.islink(folder):
        _done(lambda path: os.chmod(path, 0o700), folder)


def _done(change: Callable[[str], object], folder: str) -> bool:
    """Whether the change could be made: what belongs to another user, or is gone, stays as it is."""
    try:
        change(folder)
    except OSError:
        return False
    return True
