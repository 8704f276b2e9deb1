"""Process trees: descendants from /proc, signals to a whole tree, and the sweep by tag.

Without /proc (not Linux) `ps` is the source, and functions that read /proc/<pid>/environ return nothing.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Collection
from typing import Any

from harness.base import encoding, errors
from harness.process import spawn

TAG = "PROCESS_TAG"
KILL_SECONDS = 10.0
_libc: list[ctypes.CDLL] = []  # looked up once


def on_linux() -> bool:
    """Whether /proc and subreapers exist."""
    return os.path.exists("/proc/self/stat")


def adopt_orphans() -> None:
    """Make this process a subreaper: orphaned descendants become its children. Raises Unavailable when refused."""
    if not on_linux():
        return
    _libc[:] = _libc or [ctypes.CDLL(None)]
    if _libc[0].prctl(36, 1, 0, 0, 0) != 0:  # PR_SET_CHILD_SUBREAPER, linux/prctl.h
        raise errors.Unavailable("This system refuses PR_SET_CHILD_SUBREAPER; without it daemons would outlive a run.")


def lives(pid: int) -> bool:
    """Whether a process of any user has this id."""
    try:
        return pid > 0 and _signal(pid, 0)
    except OverflowError:
        return False


def stat(pid: int) -> list[bytes]:
    """The fields of /proc/<pid>/stat after the name: [0] state, [1] parent, [2] group, [3] session, [19] start in ticks.

    Empty when the process is gone.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            return file.read().rpartition(b") ")[2].split()
    except (FileNotFoundError, ProcessLookupError, PermissionError):  # the last: another user's, under hidepid
        return []


def descendants(root: int, *, group: int = 0, deep: bool = True) -> dict[int, list[bytes]]:
    """pid -> stat fields of all descendants of `root`, with zombies; of its children only with `deep` False.

    Off Linux the fields are state, parent and group, and members of the process group `group` count as descendants.
    """
    found: dict[int, list[bytes]] = {}
    children, fields = _lookup(root, group)
    todo = [root]
    for pid in todo:
        for child in children(pid):
            if child not in found and (known := fields(child)):
                found[child] = known
                if deep:
                    todo.append(child)
    return found


def adopted(born: int, *, spared: Collection[int], group: int) -> dict[int, list[bytes]]:
    """The orphans that this process adopted from a guardian that started at tick `born`.

    They are children not in `spared` (other guardians), in another session, and not older than the guardian.
    """
    children = descendants(os.getpid(), group=group, deep=False)
    if not on_linux():
        return {pid: fields for pid, fields in children.items() if int(fields[2]) == group}
    here = stat(os.getpid())[3]
    return {
        pid: fields
        for pid, fields in children.items()
        if pid not in spared and fields[3] != here and int(fields[19]) >= born
    }


def _lookup(root: int, group: int) -> tuple[Callable[[int], list[int]], Callable[[int], list[bytes]]]:
    """Two functions of a pid: its children, its fields. From the kernel's list of children, else from a table of all."""
    if os.path.exists("/proc/thread-self/children"):
        return _children, stat
    if on_linux():
        table = {pid: fields for pid in _pids() if (fields := stat(pid))}
    else:
        listing = spawn.capture(["ps", "-A", "-o", "pid=,stat=,ppid=,pgid="], cwd="/")[1]
        rows = [line.split() for line in listing.split(b"\n") if line]
        # no zombies (another reaper may keep them for seconds), and not the `ps` itself, which has exited
        table = {int(row[0]): row[1:] for row in rows if row[1][:1] != b"Z" and _signal(int(row[0]), 0)}
    below: dict[int, list[int]] = {}
    for pid, fields in table.items():
        in_group = group and int(fields[2]) == group and pid != root
        below.setdefault(root if in_group else int(fields[1]), []).append(pid)
    return (lambda pid: below.get(pid, [])), (lambda pid: table.get(pid, []))


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb", buffering=0) as file:
                found += map(int, file.readall().split())
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        pass  # the process is gone: its reaper has adopted its children, and the next walk finds them
    return found


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()] if on_linux() else []


def terminate(processes: dict[int, list[bytes]]) -> set[int]:
    """TERM to each process, and CONT to stopped ones so that they handle it; returns those that were alive."""
    for pid, fields in processes.items():
        _signal(pid, signal.SIGTERM)
        if fields[0][:1] == b"T":
            _signal(pid, signal.SIGCONT)
    return _alive(processes)


def kill(processes: dict[int, list[bytes]]) -> set[int]:
    """SIGKILL to each process and its process group (one call that no fork escapes); returns those that were alive."""
    for group in {int(fields[2]) for fields in processes.values()} - {0, os.getpgrp()}:
        _signal(-group, signal.SIGKILL)
    for pid in processes:
        _signal(pid, signal.SIGKILL)
    return _alive(processes)


def _alive(processes: dict[int, list[bytes]]) -> set[int]:
    return {pid for pid, fields in processes.items() if fields[0][:1] not in (b"Z", b"X")}


def reap(pid: int) -> int | None:
    """The wait status of the child `pid`; None while it lives, and for a process that is not a child."""
    try:
        ended, code = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return code if ended else None


def _signal(pid: int, number: int) -> bool:
    """Send the signal and return whether the process exists. A set-uid process refuses it and counts as existing."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def ordinary_name(tag: str) -> str:
    """The prefix of inconspicuous temporary folders of a run with this tag."""
    return f"tmp.{encoding.digest(os.fsencode(tag))[:7]}"


def sweep(tag: str) -> list[int]:
    """SIGKILL every process of this user with PROCESS_TAG=`tag` in its environment, or with a TMPDIR that has the
    ordinary name of this tag, until none is left; returns the pids.

    Spares this process and its ancestors. It ends the processes of a run that was killed together with its guardian.
    """
    spared = set(_ancestors(os.getpid()))
    killed: dict[int, None] = {}
    until = time.monotonic() + KILL_SECONDS
    while time.monotonic() < until:
        tagged = [pid for pid in _pids() if pid not in spared and _has(pid, tag)]
        if not tagged:
            break
        killed.update(dict.fromkeys(pid for pid in tagged if _kill_tagged(pid, tag)))
        time.sleep(0.002)
    while _alive({pid: fields for pid in killed if (fields := stat(pid))}) and time.monotonic() < until:
        time.sleep(0.002)  # the kernel frees the environment before the process is gone
    return list(killed)


def _has(pid: int, tag: str) -> bool:
    line, name = os.fsencode(f"{TAG}={tag}"), os.fsencode(f"/{ordinary_name(tag)}")
    return any(one == line or (one.startswith(b"TMPDIR=") and name in one) for one in _environment(pid))


def _kill_tagged(pid: int, tag: str) -> bool:
    """Kill the process if it still has the tag; the check and the kill go through a descriptor that no other pid reuses."""
    descriptor = spawn.exit_descriptor(pid)
    try:
        if not _has(pid, tag):
            return False
        if descriptor >= 0:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return False
    finally:
        spawn.close({descriptor} - {-1})


def tagged_ancestor() -> str | None:
    """The value of PROCESS_TAG in this process's environment, else in that of its nearest living ancestor that has it."""
    if mine := os.environ.get(TAG):
        return mine
    start = f"{TAG}=".encode()
    for pid in _ancestors(os.getpid()):
        for line in _environment(pid):
            if line.startswith(start):
                return os.fsdecode(line.removeprefix(start))
    return None


def _ancestors(pid: int) -> list[int]:
    """The process, its parent, and so on up to the root."""
    found: list[int] = []
    while pid > 0:
        found.append(pid)
        fields = stat(pid) if on_linux() else []
        pid = int(fields[1]) if fields else 0
    return found


def _environment(pid: int) -> list[bytes]:
    """The environment at the start of the program; empty when the process is gone or another user's."""
    folder = f"/proc/{pid}"
    try:
        if os.stat(folder).st_uid != os.geteuid():
            return []
        with open(f"{folder}/environ", "rb") as file:
            return file.read().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []


def is_below(pid: int, root: int) -> bool:
    """Whether `root` is `pid` or an ancestor of it; True without /proc."""
    return not on_linux() or root in _ancestors(pid)


def pid_record() -> dict[str, Any]:
    """{"pid", "started" (ticks after boot), "boot" (the boot's id)} of this process: for people to read, never for a lock."""
    if not on_linux():
        return {"pid": os.getpid(), "started": 0, "boot": ""}
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        boot = file.read().strip()
    return {"pid": os.getpid(), "started": int(stat(os.getpid())[19]), "boot": boot}
