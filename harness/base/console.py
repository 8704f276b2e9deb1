"""The only module that prints: lines for people and scripts, and a spinner on a terminal."""

from __future__ import annotations

import os
import sys
import time

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
    sys.stdout.write(sanitise(text) + "\n")
    sys.stdout.flush()


def print_error(text: str) -> None:
    """Print a sanitised paragraph on standard error; ignore a closed one, since the exit code reports the result."""
    try:
        sys.stderr.write(sanitise(text) + "\n")
        sys.stderr.flush()
    except OSError:
        return


class Spinner:
    """Redraws elapsed time, mission progress and the agent's last action on standard error; silent without a
    terminal."""

    def __init__(self, title: str) -> None:
        self.title, self.progress = title, ""
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
        progress = f", {self.progress} ·" if self.progress else ""
        words = f"{frame} {self.title} {seconds // 60}:{seconds % 60:02d}{progress} {action}"
        line = sanitise(" ".join(words.split()))
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
