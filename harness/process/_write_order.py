"""Sees writes to several pipes in the order in which they were made.

Each pipe holds one write of at most 4 KB, so a writer's next one waits until this one was read; epoll reports pipes in the
order in which they were written to. Behind MAX_ORDERED_BYTES the pipes become large, and the order is that of reading.
"""

from __future__ import annotations

import fcntl
import os
import select

AVAILABLE = hasattr(select, "epoll") and hasattr(os, "O_DIRECT") and hasattr(fcntl, "F_SETPIPE_SZ")  # Linux
MAX_ORDERED_BYTES = 1024 * 1024
LARGE = 65536  # bytes of a pipe


class OrderedPoller:
    """Replaces select.poll. `pipes`: the reading ends that are seen in order, by their writing ends."""

    def __init__(self, pipes: dict[int, int]) -> None:
        self.left, self.pipes, self.epoll = MAX_ORDERED_BYTES, set(pipes), select.epoll()
        for writing in pipes.values():
            # With O_DIRECT each write is one packet.
            fcntl.fcntl(writing, fcntl.F_SETFL, fcntl.fcntl(writing, fcntl.F_GETFL) | os.O_DIRECT)
            fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 1)  # rounded up to the one page of one packet

    def register(self, fd: int, events: int) -> None:
        """Poll this descriptor, too."""
        self.epoll.register(fd, events | (select.EPOLLET if fd in self.pipes else 0))  # ET: once for each write

    def unregister(self, fd: int) -> None:
        """Poll it no more."""
        self.pipes.discard(fd)
        self.epoll.unregister(fd)

    def poll(self, milliseconds: int) -> list[tuple[int, int]]:
        """What is ready, in order; after the time, every pipe, since the end of one may be no event of its own."""
        return self.epoll.poll(milliseconds / 1000) or [(fd, select.EPOLLHUP) for fd in self.pipes]

    def passed(self, count: int) -> None:
        """So many bytes were read."""
        self.left -= count
        if self.left < 0 <= self.left + count:
            for fd in self.pipes:
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, LARGE)
                self.epoll.modify(fd, select.EPOLLIN)
