"""The only module that prints: lines, and a spinner on a terminal; and what programs print, as plain text."""

from __future__ import annotations

import os
import pty
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.base import console
from tests.helpers import is_linear
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


# the output of programs

SHOWN = {
    "50%\r100%\r\n": "100%\r\n",
    "a long state\rdone\n\rx\r\r\n50%\r": "done\nx\r\n50%",
    "one\r\ntwo\n\r\n": "one\r\ntwo\n\r\n",
    "1%\r\x1b[K2%\r\x1b[K3%\n": "3%\n",
    "\x1b[1;31mred\x1b[0m \x9b4mline\x9bm \x1b[38;5;9": "red line ",
    "\x1b]0;a title\x07\x1b]8;;https://x.test\x1b\\a link\x1b]8;;\x1b\\ \x1b]2;no end\nnext": "a link \nnext",
    "\x1b(B\x1b7\x1b=\x1bM\x1bP1$r\x1b\\x\x08y\x07z\x85\x7f\x0f": "xyz",
    "naïve 数据 👩\u200d👩\ta\0b\f": "naïve 数据 👩\u200d👩\ta\0b\f",
}


@pytest.mark.parametrize("text", SHOWN)
def test_an_output_is_what_stays_on_a_terminal(text: str) -> None:
    """Of a progress bar the last state, and no colours, links, titles, bells or backspaces; a CRLF stays."""
    assert console.plain(text) == SHOWN[text]


PIECES = [
    "a",
    "é",
    "囧",
    " ",
    "\t",
    "\n",
    "\r",
    "\r\n",
    "50%",
    "\x1b[",
    "31m",
    "m",
    "\x1b",
    "]0;t",
    "\x07",
    "\x1b\\",
    "\x9b",
]
PIECES += [
    "\x9d",
    "\x08",
    "\x85",
    "\x1b]8;;u\x1b\\",
    "\x1b(B",
    "\x1b[1;3",
    "\x7f",
    "\0",
    "P",
    "\x1bP1$r",
    "8",
    "[",
    "\\",
]
LEFT = re.compile("[\x01-\x08\x0e-\x1b\x7f-\x9f]|\r(?!\n)")


def in_chunks(data: bytes, chance: random.Random, most: int) -> bytes:
    """The plain output of these bytes, as they come."""
    output, made, at = console.PlainOutput(), b"", 0
    while at < len(data):
        size = chance.randint(1, most)
        made += output.add(data[at : at + size])
        at += size
    return made + output.add(b"")


def test_no_mixture_of_sequences_leaves_one_and_no_chunks_change_the_text() -> None:
    """A second time changes nothing, every line stays one, and text without sequences stays byte for byte."""
    chance = random.Random(5)
    for _ in range(1500):
        text = "".join(chance.choices(PIECES, k=chance.randint(0, 25)))
        shown = console.plain(text)
        assert (LEFT.search(shown), console.plain(shown), shown.count("\n")) == (None, shown, text.count("\n")), text
        assert in_chunks(text.encode(), chance, 5).decode() == shown, text
        bare = LEFT.sub("", text)
        assert console.plain(bare) == bare


@pytest.mark.parametrize(
    ("begin", "state"),
    [
        ("", state)
        for state in ("\r\x1b[K50% of it", "\x1b[2K50% of it\r", "no end ", "é", "\x1b[1mx", "\x1b]0;a title ")
    ]
    + [("\x1b]0;", "title"), ("\x1b[", "1;")],
)
def test_of_a_line_without_an_end_little_is_held_and_no_sequence_is_cut(begin: str, state: str) -> None:
    """Whatever repeats in it, also within one sequence; what follows it is shown."""
    chance, output, shown = random.Random(6), console.PlainOutput(), b""
    data = (begin + state * (8 * console.LINE_BYTES // len(state))).encode()
    while data:
        size = chance.randint(1, 9000)
        shown += output.add(data[:size])
        assert len(output.line) <= console.LINE_BYTES
        data = data[size:]
    text = (shown + output.add(b"\x07\r\x1b[31mlast\n") + output.add(b"")).decode()
    repeated = "" if begin or "\r" in state or "title" in state else console.plain(state)
    assert text.endswith("last\n") and {*text[:-5]} == {*repeated}


def test_what_may_go_on_is_no_complete_output() -> None:
    """A character, a sequence, a line end."""
    whole = b"a\xff\r\nb\n\x1b[1mc"
    for rest in (b"", "é".encode()[:1], b"\r", b"\r\r", b"\x1b", b"\x1b[3", b"\r\x1b[3", b"\x1b]0;title", b"\xc2"):
        assert console.complete(whole + rest) == whole


@pytest.mark.parametrize(
    "word", ["\r", "\r\r\n", "\x1b", "\x1b[", "\x1b[1", "\x1b]", "\x9b1", "a\r", "\x1b]8;;\x07", "\xc2"]
)
def test_no_output_makes_it_slow(word: str) -> None:
    """The time grows linearly."""
    assert is_linear(console.plain, word * (10_000 // len(word)))
    assert is_linear(lambda text: console.complete(text.encode()), word * (10_000 // len(word)))
