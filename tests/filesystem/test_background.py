"""Promises of harness/filesystem/_background.py, beyond the contract: if a process dies, the command ends, with a known end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.filesystem._background import Background
from harness.filesystem.protocol import FileFault
from harness.filesystem.shell import LocalShell
from harness.process import tree
from tests.filesystem.contract import waited
from tests.missions import CHECKOUT


def begun(files: LocalShell, command: str) -> Background:
    """A job that runs."""
    job = files.start(command)
    assert not isinstance(job, FileFault), job
    return job


def lives(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    fields = tree.stat(pid)
    return bool(fields) and fields[0] not in (b"Z", b"X")


def pid_of(tmp_path: Path) -> int:
    """What the command wrote."""
    assert waited(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    return int((tmp_path / "pid").read_text())


def test_a_keeper_that_is_killed_takes_the_command_with_it(tmp_path: Path) -> None:
    """And the job says that it was cancelled, with what it said."""
    job = begun(LocalShell(str(tmp_path)), "echo said; echo $$ > pid; exec sleep 7166.5")
    pid = pid_of(tmp_path)
    assert waited(lambda: job.page().size == 5)
    os.kill(job.pid, signal.SIGKILL)
    assert waited(lambda: job.status() is not None)
    ended = job.cancel()
    assert (ended.cause, ended.output) == ("cancelled", b"said\n")
    assert waited(lambda: not lives(pid))


def test_a_hang_up_under_nohup_ends_no_command(tmp_path: Path) -> None:
    """Its keeper ignores what the program ignored at its start."""
    body = f"""
import os, signal, sys, time
sys.path.insert(0, {str(CHECKOUT)!r})
from harness.filesystem.shell import LocalShell
job = LocalShell({str(tmp_path)!r}).start("touch begun; sleep 0.3; echo whole")
while not os.path.exists("begun"):
    time.sleep(0.01)
os.kill(job.pid, signal.SIGHUP)
while job.status() is None:
    time.sleep(0.01)
print(job.status().output.decode())
"""
    words = ["sh", "-c", 'trap "" HUP; exec "$0" -c "$1"', sys.executable, body]
    assert subprocess.run(words, cwd=tmp_path, capture_output=True, check=False, timeout=60).stdout == b"whole\n\n"


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads of this process take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def told_at_once(job: Background, count: int) -> list[int]:
    """What so many threads are told of its end."""
    gate = threading.Barrier(count)

    def ask(_: int) -> int:
        gate.wait()
        ended = job.status()
        return ended.exit if ended else -1

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(ask, range(count)))


@pytest.mark.usefixtures("hasty")
def test_threads_that_ask_at_once_are_told_the_same(tmp_path: Path) -> None:
    """How the command ended; and no other child of this process is taken for it."""
    files, other = LocalShell(str(tmp_path)), os.fork()
    if not other:
        os._exit(7)
    jobs = [begun(files, "exit 3") for _ in range(10)]  # before there are threads
    for job, pid in [(job, job.pid) for job in jobs]:
        while lives(pid):
            time.sleep(0.001)
        assert told_at_once(job, 8) == [3] * 8
    assert os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]) == 7


def test_a_job_that_nobody_has_any_more_ends(tmp_path: Path) -> None:
    """With the last reference to it."""
    job = begun(LocalShell(str(tmp_path)), "echo $$ > pid; exec sleep 7167.5")
    pid = pid_of(tmp_path)
    del job
    assert waited(lambda: not lives(pid))


def test_a_command_that_cannot_start_says_why(tmp_path: Path) -> None:
    """In its output."""
    job = begun(LocalShell(str(tmp_path), environment={"PATH": ""}), "true")
    assert waited(lambda: job.status() is not None)
    ended = job.cancel()
    assert ended.exit == 127
    assert b"bash cannot be started" in ended.output


def test_many_jobs_run_at_once_and_leave_nothing_open(tmp_path: Path) -> None:
    """Each with its own output."""
    before = len(os.listdir("/dev/fd"))
    files = LocalShell(str(tmp_path))
    jobs = [begun(files, f"echo {number}; sleep 7168.5") for number in range(8)]
    assert len({job.id for job in jobs}) == 8
    assert waited(lambda: all(job.page().size == 2 for job in jobs))
    assert [job.cancel().output for job in jobs] == [b"%d\n" % number for number in range(8)]
    jobs.clear()
    assert len(os.listdir("/dev/fd")) == before
