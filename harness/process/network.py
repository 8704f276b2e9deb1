"""A private network of a run: only a loopback interface, shared by its agent, checks and services.

A holder process makes the network namespace (without root a user namespace too) and waits; the guardian of each program
enters it before the start. Numbers are those of linux/sched.h, linux/if.h and setns(2); Python wraps them only from 3.12 on.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct

from harness.base.errors import Unavailable
from harness.process import spawn

NEW_USER, NEW_NET = 0x10000000, 0x40000000
SET_FLAGS, UP_AND_RUNNING = 0x8914, 0x41  # SIOCSIFFLAGS; IFF_UP | IFF_RUNNING
SPACES = (("user", NEW_USER), ("net", NEW_NET))


def hold() -> int:
    """Start the holder and return its pid; it ends with this process. Raises Unavailable if the kernel forbids it."""
    (reading, writing), (reports, report) = spawn.pipe(), spawn.pipe()
    pid = spawn.fork(lambda: _stay(reading, report, writing))
    spawn.close({reading, report})
    said = os.read(reports, 200)
    os.close(reports)
    if said != b"up":
        os.close(writing)
        os.waitpid(pid, 0)
        raise Unavailable(f'network = "loopback" does not work here: {said.decode() or "its holder was killed"}.')
    os.set_inheritable(writing, False)
    return pid


def _stay(control: int, report: int, writing: int) -> None:
    """Make the namespace, bring up its loopback, report, and wait until the run closes `control`."""
    os.close(writing)
    os.setsid()
    spawn.close_all_but({control, report})
    uid, gid = os.getuid(), os.getgid()
    try:
        _checked("unshare", NEW_NET if uid == 0 else NEW_NET | NEW_USER)
        if uid:
            for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
                with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                    file.write(text)
        probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        fcntl.ioctl(probe.fileno(), SET_FLAGS, struct.pack("16sH14x", b"lo", UP_AND_RUNNING))
        probe.close()
    except OSError as fault:
        os.write(report, (fault.strerror or "?").encode())
        os._exit(1)
    os.write(report, b"up")
    os.close(report)
    os.read(control, 1)
    os._exit(0)


def enter(holder: int) -> None:
    """Move this process and its descendants into the holder's network. Raises Unavailable."""
    try:
        for name, kind in SPACES:
            if os.stat(f"/proc/{holder}/ns/{name}").st_ino == os.stat(f"/proc/self/ns/{name}").st_ino:
                continue
            space = os.open(f"/proc/{holder}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)
            _checked("setns", space, kind)
            os.close(space)
    except OSError as fault:
        raise Unavailable(f"the run's network cannot be entered: {fault.strerror}.") from fault


def _checked(name: str, *arguments: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
