"""A person's terminal while several lanes work: whole lines, one spinner, and nothing after Ctrl-C has returned."""

from __future__ import annotations

import os
import pty
import re
import select
import time

import pytest

from harness.base.console import ERASE, FRAMES
from harness.mission import mission
from tests.missions import CHECKOUT, House, heard, tagged
from tests.test_lanes import independent

SHELL = """trap : INT
'{run_sh}' --lanes 3
echo "ended $?"
read -r line"""


STOPPED = "stopped; the same command goes on"


class Terminal:
    """run.sh with three lanes, below a shell on a terminal; `seen`: all that was printed."""

    def __init__(self, house: House) -> None:
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if not self.pid:
            heard()
            os.chdir(house.project)
            shell = SHELL.format(run_sh=CHECKOUT / "run.sh")
            os.execve("/bin/bash", ["bash", "-c", shell], {**house.env, "TERM": "xterm"})

    def until(self, pattern: str, seconds: float = 60.0) -> None:
        """Wait until it has printed this."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.seen):
            assert time.monotonic() < end, self.seen
            self.read(0.1)

    def read(self, seconds: float) -> bool:
        """Read what is printed within this time; False at its end."""
        try:
            if select.select([self.fd], [], [], seconds)[0]:
                self.seen += os.read(self.fd, 65536).decode("utf-8", "replace")
        except OSError:  # Linux reports a closed terminal like this
            return False
        return True

    def type(self, text: str) -> None:
        """Type it."""
        os.write(self.fd, text.encode())

    def end(self) -> None:
        """Read the rest."""
        while self.read(10):
            pass
        os.waitpid(self.pid, 0)
        os.close(self.fd)

    @property
    def lines(self) -> list[str]:
        """What is on the screen in the end."""
        return [line.rpartition(ERASE)[2] for line in self.seen.split("\r\n")]


@pytest.fixture
def slow(unconfined: House) -> House:
    """Three features whose workers wait for each other, and then take a while."""
    independent(unconfined)
    meet = unconfined.folder / "meet"
    meet.mkdir()
    wait = f"for i in $(seq 1200); do [ $(ls '{meet}' | wc -l) = 3 ] && break; sleep 0.05; done"
    for n in "123":
        unconfined.script(f"worker-F-{n}", {"run": f"touch '{meet}/{n}'; {wait}; sleep 1.{n}; echo {n} >{n}.txt"})
    return unconfined


def test_lanes_print_whole_lines_and_one_spinner_names_them_all(slow: House) -> None:
    """No line begins behind a spinner, none is left of one, and two spinners never draw in turn."""
    terminal = Terminal(slow)
    terminal.until(r"ended \d+")
    terminal.type("\n")
    terminal.end()
    assert "ended 0" in terminal.lines, terminal.seen
    began = [line for line in terminal.lines if "> lane" in line]
    results = [line for line in terminal.lines if re.search(r"(worker|validator) +F-\d +(ok|green)", line)]
    assert (len(began) >= 6, len(results)) == (True, 6), terminal.seen
    assert all(line.startswith("> lane ") for line in began), terminal.seen
    assert all(line.startswith("  ") for line in results), terminal.seen
    assert not any(sign in line for line in terminal.lines for sign in FRAMES), terminal.seen
    drawn = re.findall(rf"[{FRAMES}] (\w+ F-\d) \d:\d\d", terminal.seen)
    turns = [name for name, before in zip(drawn, ["", *drawn], strict=False) if name != before]
    assert 1 <= len(turns) == len(set(turns)), turns
    assert re.search(rf"[{FRAMES}] worker F-\d \d:\d\d, worker F-\d, worker F-\d, \d of 3 features", terminal.seen)


def test_ctrl_c_returns_after_the_last_lane(slow: House) -> None:
    """Every process of the mission has ended, and nothing is printed after the prompt."""
    first = "grep -qz '^HARNESS_LANE=1$' /proc/$PPID/environ"  # its worker ends at once, the others when they must
    for n in "123":
        slow.script(f"worker-F-{n}", {"run": f"{first} || trap '' TERM; sleep 60"})
    terminal = Terminal(slow)
    terminal.until("(?s)> lane.*> lane.*> lane.*0:0[1-9]")
    terminal.type("\x03")
    terminal.until("ended 130")
    assert tagged(mission.load(slow.layout).id) == []
    terminal.read(1.0)
    terminal.type("\n")
    terminal.end()
    assert terminal.seen.partition("ended 130")[2].strip() == "", terminal.seen
    assert len(re.findall("interrupted by signal", terminal.seen)) == 3
    assert "Traceback" not in terminal.seen
    end = [line for line in terminal.lines if line.strip()][-2:]
    assert (terminal.seen.count(STOPPED), end) == (1, [STOPPED, "ended 130"]), terminal.seen
