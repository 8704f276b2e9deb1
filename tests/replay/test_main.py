"""`python -m harness.replay`: the process in which a mission is played back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.missions import PROGRAM, House, until


def test_a_job_that_cannot_be_read_ends_with_one_line(house: House) -> None:
    """It starts nothing, and writes nothing."""
    folder = house.folder / "copy"
    folder.mkdir()
    done = house.run([sys.executable, "-P", "-m", "harness.replay", str(folder)])
    assert (done.code, len(done.err.splitlines())) == (70, 1), done
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_playback_leaves_nothing(house: House, how: signal.Signals) -> None:
    """Neither its copy nor a process, and it says how it ended."""
    for number in range(3):
        house.work({"say": f"hello {number}"}) if not number else house.work_again()
    copies = house.folder / "temporary"
    words = [sys.executable, "-P", str(PROGRAM), "replay", "--mission"]
    playing = subprocess.Popen(
        words, cwd=house.project, env=house.env, stdin=subprocess.DEVNULL, start_new_session=True
    )
    until(lambda: any(copies.glob("harness-playback-*/*/.harness/mission.json")))
    os.killpg(playing.pid, how) if how == signal.SIGINT else os.kill(playing.pid, how)
    assert playing.wait(60) == 128 + how
    assert list(copies.glob("harness-playback-*")) == []
    until(lambda: not any(str(copies) in command_of(path) for path in Path("/proc").glob("[0-9]*")))


def command_of(process: Path) -> str:
    """The command line of a process, "" for one that has ended."""
    try:
        return os.fsdecode((process / "cmdline").read_bytes())
    except OSError:
        return ""
