"""The only module that prints: lines for people and scripts, and a spinner on a terminal."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

LANE = "HARNESS_LANE"  # the number of this lane, where several work on the mission and share the terminal
ERASE = "\r\x1b[K"
ONE_LINE = "\x1b[?7l{:.500}\x1b[K\x1b[?7h"  # the terminal cuts it off, which knows the widths of characters
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}
# Characters that reverse, break or hide text: bidi marks, overrides and isolates, separators, the byte order mark.
# Emoji joiners stay.
TURNING = (0x61C, 0x180E, 0x200B, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF)
UNSAFE = CONTROLS | {code: f"\\u{code:04x}" for code in (*TURNING, *range(0xFFF9, 0xFFFC))}
UNSAFE |= {code: f"\\U{code:08x}" for code in range(0xE0000, 0xE0080)}  # tags, which are invisible


def sanitise(text: str) -> str:
    """Escape untrusted text for display: control characters (ESC, C0, C1, except tab and newline) become `\\x1b`,
    characters that reverse or hide text `\\u202e`, and lone surrogates `\\ud800`."""
    return text.translate(UNSAFE).encode("utf-8", "backslashreplace").decode()


def print_line(text: str) -> None:
    """Print a sanitised line on standard output."""
    _write_line(sys.stdout, text)


def print_error(text: str) -> None:
    """Print a sanitised paragraph on standard error; ignore a closed one, since the exit code reports the result."""
    with suppress(OSError):
        _write_line(sys.stderr, text)


def _write_line(stream: TextIO, text: str) -> None:
    """Write whole lines at once; on a terminal that lanes share, in place of the spinner, which is drawn again below."""
    erase = ERASE if LANE in os.environ and _can_draw(stream) else ""
    stream.write(f"{erase}{sanitise(text)}\n")
    stream.flush()


def _can_draw(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"


class Spinner:
    """Redraws elapsed time, `progress` (asked once a second) and the agent's last action on standard error; silent without a
    terminal. Of the lanes that share a terminal, one draws."""

    def __init__(self, title: str, progress: Callable[[], str] = str) -> None:
        self.title, self.progress, self.known = title, progress, ""
        self.started = time.monotonic()
        self.shown = _can_draw(sys.stderr)
        self.drawn, self.asked = 0.0, -1
        self.terminal = -1  # its lock belongs to the spinner that draws

    def draw(self, action: str) -> None:
        """Redraw, at most ten times a second."""
        now = time.monotonic()
        if not self.shown or now - self.drawn < 0.1 or not self._is_alone():
            return
        self.drawn = now
        seconds = int(now - self.started)
        if seconds != self.asked:
            self.known, self.asked = self.progress(), seconds
        frame = FRAMES[int(now * 10) % len(FRAMES)]
        progress = f", {self.known} ·" if self.known else ""
        words = f"{frame} {self.title} {seconds // 60}:{seconds % 60:02d}{progress} {action}"
        sys.stderr.write(ERASE + ONE_LINE.format(sanitise(" ".join(words.split()))))
        sys.stderr.flush()

    def _is_alone(self) -> bool:
        """Whether no other spinner draws on this terminal; also true where terminals have no locks."""
        try:
            if self.terminal < 0:
                self.terminal = os.open(os.ttyname(sys.stderr.fileno()), os.O_WRONLY | os.O_NOCTTY)
            fcntl.flock(self.terminal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as fault:
            return not isinstance(fault, BlockingIOError)
        return True

    def clear(self) -> None:
        """Erase the line, and let another spinner draw."""
        if self.shown and self.drawn:
            sys.stderr.write(ERASE)
            sys.stderr.flush()
        if self.terminal >= 0:
            os.close(self.terminal)
            self.terminal = -1
