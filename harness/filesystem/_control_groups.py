"""Limits for a whole process tree by control groups (version 2 or 1), where this process may create them.

The next creation of a group removes the groups of processes that are gone.
"""

from __future__ import annotations

import os
from contextlib import suppress

from harness.process import tree

TOP = "/sys/fs/cgroup"
FILES = {"memory": ("memory.max", "memory.limit_in_bytes"), "pids": ("pids.max", "pids.max")}


def made(controller: str, limit: int) -> str:
    """A new group in which this limit holds; "" if none can be made. `controller`: of FILES."""
    for base, file in zip((TOP, f"{TOP}/{controller}"), FILES[controller], strict=True):
        folder = f"{base}/harness-{os.getpid()}-{os.urandom(4).hex()}"
        try:
            _sweep(base)
            os.mkdir(folder)
            _write(f"{folder}/{file}", limit)
            return folder
        except OSError:
            with suppress(OSError):
                os.rmdir(folder)
    return ""


def join(group: str, root: int) -> None:
    """Put a process and its descendants into a group; raises OSError."""
    for pid in (root, *tree.descendants(root)):
        with suppress(ProcessLookupError):
            _write(f"{group}/cgroup.procs", pid)


def _write(path: str, number: int) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, b"%d" % number)
    finally:
        os.close(fd)


def _sweep(base: str) -> None:
    """Remove the groups of processes that are gone."""
    for name in os.listdir(base):
        words = name.split("-")
        if words[0] == "harness" and len(words) == 3 and not tree.lives(int(words[1])):
            with suppress(OSError):
                os.rmdir(f"{base}/{name}")
