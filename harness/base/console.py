"""The only module that prints: lines for people and scripts, and a spinner on a terminal."""

from __future__ import annotations

import os
import sys
import time

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}


def sanitise(text: str) -> str:
    """Sanitise text from an agent for a terminal: control characters (ESC, C0, C1, except tab and newline) become `\\x1b`,
    and lone surrogates `\\ud800`."""
    return text.translate(CONTROLS).encode("utf-8", "backslashreplace").decode()


def print_line(text: str) -> None:
    """Print a line on standard output."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def print_error(text: str) -> None:
    """Print a paragraph on standard error."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


class Spinner:
    """Elapsed time and the agent's last action, redrawn on standard error; silent if that is no terminal."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.started = time.monotonic()
        self.shown = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.drawn = 0.0

    def draw(self, action: str) -> None:
        """Redraw, at most ten times a second."""
        now = time.monotonic()
        if not self.shown or now - self.drawn < 0.1:
            return
        self.drawn = now
        seconds = int(now - self.started)
        frame = FRAMES[int(now * 10) % len(FRAMES)]
        line = f"{frame} {self.title} {seconds // 60}:{seconds % 60:02d} {action}".replace("\n", " ")
        sys.stderr.write("\r\x1b[K" + line[: _width() - 1])
        sys.stderr.flush()

    def clear(self) -> None:
        """Erase the line."""
        if self.shown and self.drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _width() -> int:
    try:
        return os.get_terminal_size(2).columns or 80  # some terminals report 0
    except OSError:
        return 80
