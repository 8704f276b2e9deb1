"""Timeouts of a child: until its first event, without a sign of life, after its result, and overall.

A sign of life is output, a change in the working folder, or CPU time of the process tree. The last two are checked only
without output, CHECKS times per idle timeout: a scan of a large folder costs half a second.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from harness.base.record import Record
from harness.process import tree

CHECKS = 8  # checks of a silent child before it counts as idle
BUSY = 0.05  # share of one core between two checks; a spinner that waits for the network uses less
MAX_ENTRIES = 200_000
STOPPED_SECONDS = 2.0  # a longer gap between two calls, normally 5 a second, means that this process was stopped
WALL, IDLE, STARTUP, AFTER_RESULT = "wall", "idle", "startup_hang", "after_result"


class Timeouts(Record):
    """Timeouts in seconds; 0 means no limit. `startup`: until the first event; `idle`: without a sign of life;
    `after_result`: from the result to the exit. Changes in `folder` ("": none) are signs of life, except below its
    entry `passed_over`."""

    idle_seconds: float = 0.0
    startup_seconds: float = 0.0
    after_result_seconds: float = 10.0
    folder: str = ""
    passed_over: str = ".harness"


class TimeoutWatch:
    """The timeouts of one child and its last signs of life. `root`: the process whose descendants are checked."""

    def __init__(self, wall_seconds: float, timeouts: Timeouts, now: float) -> None:
        self.wall_seconds, self.timeouts = wall_seconds, timeouts
        self.started = self.alive = self.alive_before = self.checked = self.called = now
        self.was_late = False
        self.root = 0
        self.began = False
        self.result_at = self.waits_since = 0.0
        self.ticks, self.newest = 0, -1

    def output_received(self, now: float) -> None:
        """Count output as a sign of life."""
        self.alive_before = self.alive
        self.alive = self.checked = now

    def take_back(self, now: float, *, answered: bool) -> None:
        """Withdraw the last output as a sign of life: it only reported a retry. Before anything is `answered`, retries have
        the startup limit: some programs repeat them for ever."""
        self.alive = self.alive_before
        self.waits_since = 0.0 if answered else self.waits_since or now

    def event(self) -> None:
        """Record the first event: startup is over."""
        self.began, self.waits_since = True, 0.0

    def result(self, now: float) -> None:
        """Record the result (the first call counts): from now on only `after_result_seconds` and the wall limit apply."""
        self.result_at = self.result_at or now

    def overdue(self, now: float) -> tuple[str, float]:
        """(the expired limit or "", seconds until the next may expire).

        After a late call this process itself was stopped (Ctrl-Z), perhaps with the whole machine: it first reads the waiting
        output, and that time counts as no silence.
        """
        gap, self.called = now - self.called, now
        self.was_late = gap > STOPPED_SECONDS and not self.was_late
        if self.was_late:
            self.alive, self.alive_before, self.checked = self.alive + gap, self.alive_before + gap, self.checked + gap
            return "", 0.0
        self._check_activity(now)
        name, at = min(self._limits(), key=lambda limit: limit[1])
        return (name if at <= now else "", at - now)

    def _limits(self) -> Iterator[tuple[str, float]]:
        yield WALL, self.started + self.wall_seconds
        if self.result_at:
            yield AFTER_RESULT, self.result_at + self.timeouts.after_result_seconds
            return
        if self.timeouts.startup_seconds and (self.waits_since or not self.began):
            yield STARTUP, (self.waits_since or self.started) + self.timeouts.startup_seconds
        elif self.timeouts.idle_seconds:
            yield IDLE, self.alive + self.timeouts.idle_seconds

    def _check_activity(self, now: float) -> None:
        """Without output, check the tree and the folder; activity since the last check is a sign of life."""
        idle = self.timeouts.idle_seconds
        if not idle or self.result_at or now < self.checked + idle / CHECKS:
            return
        ticks, newest = cpu_ticks(self.root), newest_change(self.timeouts.folder, self.timeouts.passed_over)
        busy = ticks - self.ticks >= BUSY * (now - self.checked) * os.sysconf("SC_CLK_TCK")
        if busy or newest > self.newest >= 0:
            self.alive = now
        self.checked, self.ticks, self.newest = now, ticks, newest


def cpu_ticks(root: int) -> int:
    """CPU time of a process, its living descendants and their reaped children, in clock ticks; 0 off Linux."""
    if not root or not tree.on_linux():
        return 0
    rows = [tree.stat(root), *tree.descendants(root).values()]
    return sum(int(number) for fields in rows for number in fields[11:15])  # utime stime cutime cstime, see proc(5)


def newest_change(folder: str, passed_over: str) -> int:
    """The time of the newest change below a folder, in ns of the file system's clock; checks MOST_ENTRIES entries."""
    newest, todo, seen = 0, [folder] if folder else [], 0
    while todo and seen < MAX_ENTRIES:
        here = todo.pop()
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    if here == folder and entry.name == passed_over:
                        continue
                    seen += 1
                    newest = max(newest, entry.stat(follow_symlinks=False).st_ctime_ns)
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
        except OSError:  # gone, or not readable: the next check repeats it
            continue
    return newest
