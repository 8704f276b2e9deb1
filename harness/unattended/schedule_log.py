"""The log of a schedule, in `.harness/schedule/`: at most two files of MAX_BYTES, each line with its time."""

from __future__ import annotations

import os
import time

from harness.base import clock, console
from harness.base.record import Record
from harness.state import files, names
from harness.state.layout import Layout

MAX_BYTES = 512 * 1024
MAX_LINE_CHARS = 2000
STAMP = len("2026-04-24T10:05:12Z")


class LogRow(Record):
    """One line of the log: unix seconds, 0 if it has no time, and its text."""

    at: int
    text: str


class ScheduleLog:
    """The log of one mission; `echo` also prints each line."""

    def __init__(self, where: Layout, *, echo: bool = False) -> None:
        folder = where.path(names.SCHEDULE)
        self.path, self.older, self.echo = os.path.join(folder, "log"), os.path.join(folder, "log.1"), echo
        self.lock = files.Lock(os.path.join(where.path(names.LOCKS), "schedule-log"))

    def write(self, line: str, *, once: bool = False) -> None:
        """Add a line with the present time; `once`: unless the last line ends with it."""
        text = console.sanitise(line.replace("\n", " "))
        text = text if len(text) <= MAX_LINE_CHARS else f"{text[:MAX_LINE_CHARS]} …"
        if self.echo:
            console.print_line(text)
        self.lock.take(wait=True)
        with self.lock:
            last = self.lines()[-1:] if once else []
            if not last or not last[0].text.endswith(text):
                self._add(f"{clock.stamp(clock.now())} {text}\n".encode())

    def _add(self, data: bytes) -> None:
        files.make_folder(os.path.dirname(self.path))
        if files.length(self.path) + len(data) > MAX_BYTES:
            files.move(self.path, self.older)
        files.add_line(self.path, data)

    def lines(self) -> list[LogRow]:
        """All lines, oldest first."""
        found = []
        for path in (self.older, self.path):
            data = (files.read(path) or b"").decode("utf-8", "replace")
            for text in data.split("\n"):
                at = clock.seconds_of(text[:STAMP])
                found += [LogRow(at=at, text=text[STAMP + 1 :] if at else text)] if text else []
        return found


def shown(line: LogRow) -> str:
    """A line for people, in local time."""
    stamp = time.strftime("%m-%d %H:%M:%S", time.localtime(line.at)) if line.at else " " * 14
    return f"{stamp}  {line.text}"
