"""The only module that prints: lines for people and scripts, a spinner on a terminal; and makes programs' output plain text."""

from __future__ import annotations

import codecs
import fcntl
import os
import re
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
SEQUENCE = (  # a control character, with what follows in ECMA-48: a string (title, link), CSI, another escape
    "[\x01-\x08\x0e-\x1b\x7f-\x9f](?:(?<=\x1b)[]PX^_][^\x07\x1b\r\n]*(?:\x07|\x1b\\\\)?"
    "|(?:(?<=\x1b)\\[|(?<=\x9b))[0-?]*[ -/]*[@-~]?|(?<=\x1b)[ -/]*[0-~]?)?"
)
LINE_BYTES = 65_536  # of a line that has not ended
_ignored: list[type[OSError]] = []  # by `print_line`


def sanitise(text: str) -> str:
    """Escape untrusted text for display: control characters (ESC, C0, C1, except tab and newline) become `\\x1b`,
    characters that reverse or hide text `\\u202e`, and lone surrogates `\\ud800`."""
    return text.translate(UNSAFE).encode("utf-8", "backslashreplace").decode()


def plain(text: str) -> str:
    """The text without control sequences, and of each line only what follows its last `\\r`; `\\r\\n` is a line end."""
    text = re.sub(SEQUENCE, "", text)
    if text.count("\r") == text.count("\r\n"):
        return text
    return re.sub(r"\r*(\r\n)|\r+", r"\1", re.sub(r"(?m)^[^\n]*\r(?=[^\r\n])", "", text))


def complete(data: bytes) -> bytes:
    """The data without what may go on behind it: a character, a control sequence, or `\\r`."""
    text = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(data)
    found = re.search(rf"{SEQUENCE}\Z", text)
    return text[: found.start() if found else None].rstrip("\r").encode("utf-8", "surrogateescape")


class PlainOutput:
    """The `plain` text of an output in UTF-8, in whichever chunks it comes. A line above LINE_BYTES is passed on in parts."""

    line = b""

    def add(self, data: bytes) -> bytes:
        """The lines that are whole with this data. Empty data ends the output: all that is left."""
        text = self.line + data
        at = text.rfind(b"\n") + 1 if data else len(text)
        ready, line = text[:at], text[at:]
        if len(line) > LINE_BYTES:  # only its last two parts count: behind the last `\r` there may be nothing
            line = line[max(0, line.rfind(b"\r", 0, line.rfind(b"\r"))) :]
        if len(line) > LINE_BYTES:
            begin = complete(line)
            ready, line = ready + begin, line[len(begin) :][:2] + line[len(begin) + 2 :][-1:]
        self.line = line
        return plain(ready.decode("utf-8", "replace")).encode()


def go_on_unread() -> None:
    """From now on `print_line` ignores that the reader is gone: a run does not end because nobody reads its output."""
    _ignored.append(BrokenPipeError)


def print_line(text: str) -> None:
    """Print a sanitised line on standard output."""
    with suppress(*_ignored):
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
