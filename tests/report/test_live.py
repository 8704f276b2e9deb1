"""The live view on a real terminal: it draws, ends by a key, gives the terminal back, and rests while nothing happens."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.mission import mission
from tests.missions import PROGRAM, House
from tests.report import many

REST_SECONDS = 3.0
MOST_LOAD = 0.2  # of one core, which a loop that does not wait has wholly; measured: 0.01


class Terminal:
    """A terminal of 80 by 24 with `harness watch` in it; `text` is all that it drew."""

    def __init__(self, house: House) -> None:
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(theirs)
        self.theirs, self.text = theirs, ""
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(PROGRAM), "watch"],
            cwd=house.project,
            env={**house.env, "TERM": "xterm"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def until(self, words: str, seconds: float = 60) -> None:
        """Read until it has drawn these words."""
        end = time.monotonic() + seconds
        while words not in self.text:
            assert time.monotonic() < end, self.text
            self.read(0.1)

    def read(self, seconds: float) -> None:
        """Take what it drew."""
        ready, _, _ = select.select([self.ours], [], [], seconds)
        if ready:
            self.text += os.read(self.ours, 65536).decode("utf-8", "replace")

    def ended(self) -> int:
        """Its exit code."""
        end = time.monotonic() + 60
        while self.process.poll() is None:
            assert time.monotonic() < end, "it goes on"
            self.read(0.05)
        self.read(0)
        return self.process.returncode

    def spent(self) -> float:
        """Seconds of processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split(" ")
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def terminal(house: House) -> Iterator[Terminal]:
    """A terminal with the live view of a mission of twelve runs."""
    many.mission(house.layout, 12)
    made = Terminal(house)
    yield made
    made.process.kill()
    made.process.wait()
    os.close(made.ours)
    os.close(made.theirs)


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="it is measured by /proc")
def test_it_draws_rests_follows_and_ends_by_a_key(house: House, terminal: Terminal) -> None:
    """At rest it waits; what changes is drawn; then `q` ends it with 0 and the terminal is as before."""
    terminal.until(mission.load(house.layout).id)
    terminal.until("q quits")
    time.sleep(0.5)
    terminal.read(0)
    before, drawn = terminal.spent(), terminal.text.count("q quits")
    end = time.monotonic() + REST_SECONDS
    while time.monotonic() < end:
        terminal.read(REST_SECONDS / 10)
    assert terminal.spent() - before < REST_SECONDS * MOST_LOAD
    assert terminal.text.count("q quits") <= drawn + 1  # a minute may have passed
    assert "paused" not in terminal.text
    house.harness("pause", "--why", "lunch")
    terminal.until("paused")
    assert not termios.tcgetattr(terminal.theirs)[3] & termios.ICANON
    os.write(terminal.ours, b"xq")
    assert terminal.ended() == 0
    assert termios.tcgetattr(terminal.theirs) == terminal.before
    assert "\x1b[?1049l" in terminal.text  # the screen that was there before


@pytest.mark.parametrize(("key", "code"), [(b"\x03", 0), (signal.SIGTERM, 143)])
def test_it_ends_by_ctrl_c_and_by_a_signal(terminal: Terminal, key: bytes | int, code: int) -> None:
    """Ctrl-C is how people leave it, so it is no failure."""
    terminal.until("q quits")
    if isinstance(key, bytes):
        os.write(terminal.ours, key)
    else:
        terminal.process.send_signal(key)
    assert terminal.ended() == code
    assert termios.tcgetattr(terminal.theirs) == terminal.before
    assert "Traceback" not in terminal.text
