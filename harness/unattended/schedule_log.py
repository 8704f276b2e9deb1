"""The log of a schedule and its memory between starts, in `.harness/schedule/`: bounded, each line with its time.

The log is at most two files of MAX_BYTES. `state.json` has the minute up to which starts are accounted for, start and end of the
newest one, and the last message, so that no message is repeated.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from harness.base import clock, console, encoding, schema
from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.state import files, names
from harness.state.layout import Layout

MAX_BYTES = 512 * 1024
MAX_LINE_CHARS = 2000
STAMP = len("2026-04-24T10:05:12Z")


class StartMemory(Record):
    """`seen`: starts are accounted for up to then; `began`, `ended`, `pid`: of the newest start; `told`: the last message, ""
    after the mission continued; `failed`, `failed_at`: the fingerprint of a refused login, and its time; `fault`: the error of
    the newest start if it could not start a run, else "". Unix seconds."""

    seen: int = 0
    began: int = 0
    ended: int = 0
    pid: int = 0
    told: str = ""
    failed: str = ""
    failed_at: int = 0
    fault: str = ""


class LogRow(Record):
    """One line of the log: unix seconds, 0 if it has no time, and its text."""

    at: int
    text: str


class ScheduleLog:
    """The log of one mission; `echo` also prints each line."""

    def __init__(self, where: Layout, *, echo: bool = False) -> None:
        self.path, self.older = (
            os.path.join(where.path(names.SCHEDULE), "log"),
            os.path.join(where.path(names.SCHEDULE), "log.1"),
        )
        self.state, self.echo = os.path.join(where.path(names.SCHEDULE), "state.json"), echo
        self.lock = files.Lock(os.path.join(where.path(names.LOCKS), "schedule-log"))
        self._held: list[LogRow] | None = None

    def write(self, *lines: str) -> None:
        """Add lines with the present time."""
        self.lock.take(wait=True)
        with self.lock:
            self._write(lines)

    def hold(self) -> None:
        """Hold lines back until `release` writes them with their times, or `drop` discards them."""
        self._held = []

    def release(self) -> None:
        """Write the lines held back."""
        held, self._held = self._held or [], None
        self.lock.take(wait=True)
        with self.lock:
            for line in held:
                self._write([line.text], line.at)

    def drop(self) -> None:
        """Discard the lines held back."""
        self._held = None

    @property
    def holds(self) -> bool:
        """Whether lines are held back."""
        return self._held is not None

    def _write(self, lines: Iterable[str], at: int = 0) -> None:
        stamp = clock.stamp(at or clock.now())
        if self._held is not None:
            self._held += [LogRow(at=clock.now(), text=line) for line in lines]
            return
        plain = (line.replace("\n", " ") for line in lines)
        cut = [line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]} …" for line in plain]
        data = "".join(f"{stamp} {console.sanitise(line)}\n" for line in cut).encode()
        if not data:
            return
        files.make_folder(os.path.dirname(self.path))
        if files.length(self.path) + len(data) > MAX_BYTES:
            files.move(self.path, self.older)
        files.add_line(self.path, data)
        for line in cut if self.echo else ():
            console.print_line(line)

    @contextmanager
    def remembered(self) -> Iterator[StartMemory]:
        """The memory, to be changed in place; it is written at the end. One process at a time."""
        self.lock.take(wait=True)
        with self.lock:
            found = self._load()
            before = found.asdict()
            yield found
            if found.asdict() != before:
                files.replace(self.state, encoding.dump_json(found.asdict()))

    def say(self, found: StartMemory, *lines: str) -> None:
        """Like `write`, for the holder of the memory: writes the lines before the memory."""
        self._write(lines)

    def _load(self) -> StartMemory:
        try:
            value = files.read_json(self.state)
            return StartMemory() if value is None or schema.faults(value, "it", StartMemory) else StartMemory(**value)
        except BrokenFile:  # only informs people; a loss repeats messages at most
            return StartMemory()

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
