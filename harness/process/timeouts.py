"""How long a child is waited for: until its first event, between signs of life, after its result, and in all.

A sign of life is output, a change in the working folder, or CPU time of its tree. The last two are looked at only while
nothing is heard, a few times before patience ends: a look at a large folder costs half a second.
"""

from __future__ import annotations

import os

from harness.base.record import Record
from harness.process import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LOOKS = 8  # how often a silent child is looked at before it counts as idle
BUSY = 0.05  # of one core, between two looks: what waits for the network draws a spinner with less
MOST_ENTRIES = 200_000
STOPPED_SECONDS = 2.0  # between two questions that come five times a second
WALL, IDLE, STARTUP, AFTER_RESULT = "wall", "idle", "startup_hang", "after_result"


class Patience(Record):
    """Seconds; 0 means no limit. `startup`: until the first event, `idle`: without a sign of life, `after_result`: from the
    result to the exit. `folder`: where changes count as life, "" for nowhere; `passed_over`: a name in it that does not."""

    idle_seconds: float = 0.0
    startup_seconds: float = 0.0
    after_result_seconds: float = 10.0
    folder: str = ""
    passed_over: str = ".harness"


class Watch:
    """The limits of one child, and what was last seen of it. `root`: the process whose descendants are looked at."""

    def __init__(self, wall_seconds: float, patience: Patience, now: float) -> None:
        self.wall_seconds, self.patience = wall_seconds, patience
        self.started = self.alive = self.before = self.looked = self.asked = now
        self.held = False
        self.root = 0
        self.began = False
        self.result_at = 0.0
        self.ticks, self.newest = 0, -1

    def heard(self, now: float) -> None:
        """Output came."""
        self.before = self.alive
        self.alive = self.looked = now

    def take_back(self) -> None:
        """What was heard last was no sign of life: that it tries once more tells nobody anything."""
        self.alive = self.before

    def event(self) -> None:
        """The first event came: startup is over."""
        self.began = True

    def result(self, now: float) -> None:
        """The result came (once): from here on only the grace counts, and the wall."""
        self.result_at = self.result_at or now

    def overdue(self, now: float) -> tuple[str, float]:
        """The limit that has run out, or "", and the seconds until the next one may.

        Who asks too late was stopped itself (Ctrl-Z, say): what waits to be read is heard before anything is judged.
        """
        self.held, self.asked = now - self.asked > STOPPED_SECONDS and not self.held, now
        if self.held:
            return "", 0.0
        self._look(now)
        name, at = min(self._limits(), key=lambda limit: limit[1])
        return (name if at <= now else "", at - now)

    def _limits(self) -> Iterator[tuple[str, float]]:
        yield WALL, self.started + self.wall_seconds
        if self.result_at:
            yield AFTER_RESULT, self.result_at + self.patience.after_result_seconds
            return
        if self.patience.startup_seconds and not self.began:
            yield STARTUP, self.started + self.patience.startup_seconds
        elif self.patience.idle_seconds:
            yield IDLE, self.alive + self.patience.idle_seconds

    def _look(self, now: float) -> None:
        """While nothing is heard, look at the tree and the folder; what moved since the last look is a sign of life."""
        idle = self.patience.idle_seconds
        if not idle or self.result_at or now < self.looked + idle / LOOKS:
            return
        ticks, newest = cpu_ticks(self.root), newest_change(self.patience.folder, self.patience.passed_over)
        busy = ticks - self.ticks >= BUSY * (now - self.looked) * os.sysconf("SC_CLK_TCK")
        if busy or newest > self.newest >= 0:
            self.alive = now
        self.looked, self.ticks, self.newest = now, ticks, newest


def cpu_ticks(root: int) -> int:
    """CPU time of a process, its living descendants, and those that they waited for, in clock ticks; 0 off Linux."""
    if not root or not tree.on_linux():
        return 0
    rows = [tree.stat(root), *tree.family(root).values()]
    return sum(int(number) for fields in rows for number in fields[11:15])  # utime stime cutime cstime, see proc(5)


def newest_change(folder: str, passed_over: str) -> int:
    """When something below a folder last changed, in ns of the file system's clock; looks at MOST_ENTRIES entries."""
    newest, todo, seen = 0, [folder] if folder else [], 0
    while todo and seen < MOST_ENTRIES:
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
        except OSError:  # gone meanwhile, or not ours to read: the next look tells more
            continue
    return newest
