"""The live view in a terminal: polls, draws only on a change, and restores the terminal at the end."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from typing import Any

from rich.console import Console, Group
from rich.live import Live

from harness.base import errors
from harness.report import screen
from harness.report.glance import Watcher

BUSY_SECONDS, REST_SECONDS = 0.5, 1.0  # min interval between polls, with and without open runs
BUSY_TIMES, REST_TIMES = 9, 99  # min interval as a multiple of a poll's duration: at most 10% or 1% of a core
QUIT = b"qQ\x03\x04"  # q, Ctrl-C and Ctrl-D


def able() -> bool:
    """Whether standard output is a terminal that can show the live view."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def watch(project: str) -> None:
    """Show the mission of the folder until `q` or Ctrl-C, whatever changes on disk."""
    watcher = Watcher(project)
    drawing, drawn = Console(highlight=False), None
    try:
        with _Keys() as keys, Live(console=drawing, screen=True, auto_refresh=False, vertical_overflow="crop") as view:
            while True:
                began = time.monotonic()
                glance = watcher.look()
                size = drawing.size
                found = screen.lines(glance, size.width, size.height, keys=True)
                now = (size, [(line.plain, line.spans) for line in found])
                if now != drawn:
                    view.update(Group(*found), refresh=True)
                    drawn = now
                took, busy = time.monotonic() - began, bool(glance.lanes)
                if keys.quits(max(BUSY_SECONDS, BUSY_TIMES * took) if busy else max(REST_SECONDS, REST_TIMES * took)):
                    return
    except errors.Interruption as signalled:
        if signalled.code != errors.INTERRUPTED:
            raise


class _Keys:
    """Reads keys without Enter and without echo; none if standard input is not a terminal."""

    def __init__(self) -> None:
        self.descriptor = sys.stdin.fileno() if sys.stdin.isatty() else -1
        self.before: list[Any] = []

    def __enter__(self) -> _Keys:
        if self.descriptor >= 0:
            self.before = termios.tcgetattr(self.descriptor)
            tty.setcbreak(self.descriptor)
        return self

    def __exit__(self, *_: object) -> None:
        if self.before:
            termios.tcsetattr(self.descriptor, termios.TCSADRAIN, self.before)

    def quits(self, seconds: float) -> bool:
        """Wait for `seconds`; whether a quit key was pressed, or the terminal is gone."""
        if self.descriptor < 0:
            time.sleep(seconds)
            return False
        ready, _, _ = select.select([self.descriptor], [], [], seconds)
        pressed = os.read(self.descriptor, 64) if ready else None
        return pressed == b"" or any(key in QUIT for key in pressed or b"")
