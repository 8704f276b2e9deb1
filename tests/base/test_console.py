"""The only module that prints: lines, and a spinner on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from harness.base import console
from tests.missions import CHECKOUT

DRAW = f"""
import sys, time
sys.path.insert(0, {str(CHECKOUT)!r})
from harness.base import console
spinner = console.Spinner("worker F-001")
for _ in range(3):
    spinner.draw("reads the file\\nwith care " + "x" * 2000)
    time.sleep(0.11)
spinner.clear()
console.print_line("said")
"""


def on_a_terminal(**env: str) -> bytes:
    """The output of the program above on a terminal."""
    leader, follower = pty.openpty()
    child = {**{key: value for key, value in os.environ.items() if key != "NO_COLOR"}, "TERM": "xterm", **env}
    done = subprocess.run(
        [sys.executable, "-c", DRAW], stdin=follower, stdout=follower, stderr=follower, env=child, check=False
    )
    os.close(follower)
    found = b""
    try:
        while chunk := os.read(leader, 65536):
            found += chunk
    except OSError:
        pass  # Linux reports a closed terminal like this
    os.close(leader)
    assert done.returncode == 0, found
    return found


def test_a_line_goes_to_standard_output_and_a_complaint_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Each line ends with its newline."""
    console.print_line("said")
    console.print_error("complained")
    assert capsys.readouterr() == ("said\n", "complained\n")


def test_on_a_terminal_the_spinner_shows_title_time_and_action() -> None:
    """It fits on one line of the terminal and is erased at the end."""
    found = on_a_terminal()
    assert b"worker F-001 0:00 reads the file with care" in found
    *frames, end = found.split(b"\r\x1b[K")
    assert len([frame for frame in frames if frame]) >= 3 and end == b"said\r\n"
    for frame in filter(None, frames):  # the terminal does not go on in the next line, whatever the characters' widths
        assert frame.startswith(b"\x1b[?7l") and frame.endswith(b"\x1b[K\x1b[?7h") and b"\n" not in frame
        assert 60 < len(frame) < 600


def test_a_dumb_terminal_gets_no_spinner() -> None:
    """Escape codes would be garbage there."""
    assert on_a_terminal(TERM="dumb") == b"said\r\n"


def test_without_a_terminal_nothing_is_drawn() -> None:
    """Logs of cron stay readable."""
    done = subprocess.run([sys.executable, "-c", DRAW], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"said\n", b"")


def test_words_of_an_agent_cannot_steer_the_terminal() -> None:
    """Characters that would clear the screen, set its title or hide a line become visible; other text is unchanged."""
    assert console.sanitise("a\tb\nü \U0001f600") == "a\tb\nü \U0001f600"
    assert console.sanitise("\x1b[2J\x1b]0;x\x07 \r\x9b\x7f\0") == r"\x1b[2J\x1b]0;x\x07 \x0d\x9b\x7f\x00"
    assert console.sanitise("\ud800") == r"\ud800"


def test_what_turns_or_hides_text_becomes_visible() -> None:
    """Bidi overrides and isolates, marks, separators, tags; right-to-left letters and joined emoji stay."""
    assert console.sanitise("a\u202eb\u2066c\u200f\u061c\u2028\ufeff") == r"a\u202eb\u2066c\u200f\u061c\u2028\ufeff"
    assert console.sanitise("\U000e0041") == r"\U000e0041"
    assert console.sanitise("שלום \U0001f468\u200d\U0001f469") == "שלום \U0001f468\u200d\U0001f469"


def test_every_line_and_complaint_is_safe(capsys: pytest.CaptureFixture[str]) -> None:
    """No caller has to think of it."""
    console.print_line("a\x1b[2J")
    console.print_error("b\u202e")
    assert capsys.readouterr() == ("a\\x1b[2J\n", "b\\u202e\n")


def test_an_error_that_cannot_be_written_ends_with_its_code_all_the_same(tmp_path: Path) -> None:
    """Standard error is a full disk: the message is lost, but the exit code is the documented one."""
    program = [sys.executable, "-P", str(CHECKOUT / "harness" / "__main__.py"), "note", "there is no mission here"]
    codes = []
    for path in (os.devnull, "/dev/full"):
        with open(path, "w") as nowhere:
            codes.append(subprocess.run(program, cwd=tmp_path, stderr=nowhere, check=False).returncode)
    assert codes[0] == codes[1] > 1
