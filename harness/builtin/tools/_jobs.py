"""A command in the background, as a conversation sees it: how it stands, and its output by pages of whole characters."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from harness.base import console
from harness.base.record import Record
from harness.builtin.tools.tool import Live
from harness.filesystem.protocol import CommandResult, ShellJob

LONGEST_PAGE = 30_000  # bytes
POLL_SECONDS = 0.05
HOW = {"timeout": "ended at its timeout", "cancelled": "stopped"}


class OutputPart(Record):
    """A part of the output. `start`, `end`: its place in bytes; `more`: whether there is more behind it now."""

    text: str
    start: int
    end: int
    more: bool


class Running(Live):
    """A job of the shell, and its start time. Several calls may poll it at once; one at a time queries the job."""

    def __init__(self, job: ShellJob) -> None:
        self.job, self.begun, self.turn = job, time.monotonic(), threading.Lock()

    def close(self) -> None:
        """End the command and all that it started."""
        with self.turn:
            self.job.cancel()

    def done(self) -> CommandResult | None:
        """How it ended; None while it runs."""
        with self.turn:
            return self.job.status()

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self.done() is not None

    def wait(self, seconds: float, stop: Callable[[], bool] = lambda: False) -> None:
        """Wait until it has ended, or `stop` says so, but no longer than this."""
        until = time.monotonic() + seconds
        while not self.ended and time.monotonic() < until and not stop():
            time.sleep(POLL_SECONDS)

    def status(self) -> str:
        """How it stands, in words."""
        done = self.done()
        return ended(done) if done else f"running for {time.monotonic() - self.begun:.0f} s"

    def page(self, start: int) -> OutputPart:
        """The output from a byte on, at most LONGEST_PAGE; what is not complete yet is left for the next page."""
        over = self.ended  # asked before the output: what is read then is all of it
        with self.turn:
            found = self.job.page(start, LONGEST_PAGE)
        more = found.next < found.size
        data = found.data if over and not more else console.complete(found.data) or found.data * more
        end = found.offset + len(data)
        return OutputPart(text=console.plain(data.decode("utf-8", "replace")), start=found.offset, end=end, more=more)


def ended(done: CommandResult) -> str:
    """How a command ended, in words."""
    if done.cause != "exit":
        how = HOW.get(done.cause, done.cause)
    else:
        how = f"signal {-done.exit}" if done.exit < 0 else f"exit {done.exit}"
    return f"{how} after {done.seconds:.1f} s"
