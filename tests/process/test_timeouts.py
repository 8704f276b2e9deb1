"""Timeouts of a child: silence is not idleness while its process tree computes or the folder changes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from harness.process.supervise import Child, ChildEnd
from harness.process.timeouts import STOPPED_SECONDS, Timeouts, TimeoutWatch, newest_change

ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C"}


def wait(script: str, timeouts: Timeouts, wall_seconds: float = 30.0, result: bool = False) -> ChildEnd:
    """Run a shell script to its end under these limits; with `result` its first output counts as the result."""
    with Child(
        ["bash", "-c", script], cwd="/", env=ENV, wall_seconds=wall_seconds, grace_seconds=0.2, timeouts=timeouts
    ) as child:
        for _, chunk in child.output():
            if chunk:
                child.watch.event()
            if chunk and result:
                child.watch.result(time.monotonic())
        assert child.ended is not None
        return child.ended


def test_a_child_that_never_writes_anything_ends_as_a_startup_hang() -> None:
    """Long before the wall limit."""
    ended = wait("sleep 60", Timeouts(startup_seconds=0.3, idle_seconds=20))
    assert ended.cause == "startup_hang"


def test_a_child_that_falls_silent_ends_as_idle() -> None:
    """The limit counts from the last sign of life."""
    ended = wait("for n in 1 2 3; do echo $n; sleep 0.5; done; sleep 60", Timeouts(startup_seconds=30, idle_seconds=2))
    assert ended.cause == "idle"
    assert ended.seconds > 2.9


def test_a_supervisor_that_was_stopped_reads_first_what_it_missed() -> None:
    """Ctrl-Z for a while, then fg: the child's output meanwhile waits in the pipe."""
    with Child(
        ["bash", "-c", "for n in $(seq 20); do echo $n; sleep 0.15; done"],
        cwd="/",
        env=ENV,
        wall_seconds=30,
        timeouts=Timeouts(idle_seconds=2.0),
    ) as child:
        said = b""
        for _, chunk in child.output():
            if not said:
                time.sleep(STOPPED_SECONDS + 0.3)
            said += chunk
    assert child.ended is not None
    assert (child.ended.cause, said.split()[-1]) == ("exit", b"20")


def test_time_in_which_nobody_looked_is_no_silence() -> None:
    """A machine that was halted, or Ctrl-Z for a while: the child may have been stopped as well, so its limit goes on then."""
    watch = TimeoutWatch(1000.0, Timeouts(idle_seconds=10.0), now=0.0)
    watch.event()
    assert [watch.overdue(at)[0] for at in (1.0, 100.0, 100.1, 102.0, 104.0, 106.0, 108.0)] == [""] * 7
    assert watch.overdue(109.1)[0] == "idle"


def test_a_child_whose_tree_computes_in_silence_is_not_idle() -> None:
    """CPU time of a grandchild is a sign of life."""
    ended = wait("bash -c 'end=$((SECONDS+3)); while ((SECONDS < end)); do :; done'", Timeouts(idle_seconds=1.5))
    assert (ended.cause, ended.exit) == ("exit", 0)


def test_a_child_that_changes_files_in_silence_is_not_idle(tmp_path: Path) -> None:
    """Deep in the working folder too; a change below the excluded name does not count."""
    (tmp_path / "deep").mkdir()
    (tmp_path / ".harness").mkdir()
    busy = f"for n in $(seq 12); do sleep 0.2; echo > '{tmp_path}'/{{}}/$n; done"
    timeouts = Timeouts(idle_seconds=2.0, folder=str(tmp_path))
    assert wait(busy.format("deep"), timeouts).cause == "exit"
    assert wait(busy.format(".harness"), timeouts).cause == "idle"


def test_only_the_grace_counts_after_the_result() -> None:
    """Neither startup nor idle limits it, and the grace is short."""
    ended = wait("echo done; sleep 60", Timeouts(after_result_seconds=1.5, idle_seconds=1.0), result=True)
    assert ended.cause == "after_result"
    assert ended.seconds > 1.4


def test_the_wall_limit_always_applies() -> None:
    """Endless output does not extend it."""
    ended = wait("while :; do echo x; sleep 0.01; done", Timeouts(idle_seconds=5, startup_seconds=5), wall_seconds=0.5)
    assert ended.cause == "wall"


def test_no_timeouts_mean_no_limit_but_the_wall() -> None:
    """Checks and services get this."""
    assert wait("sleep 0.5", Timeouts()).cause == "exit"


@pytest.mark.parametrize("change", ["write", "make", "remove", "touch back"])
def test_every_change_below_a_folder_is_seen(tmp_path: Path, change: str) -> None:
    """Also a change that sets a file's time back, as unpacking does."""
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "file").write_text("1")
    before = newest_change(str(tmp_path), ".harness")
    time.sleep(0.02)
    if change == "write":
        (inner / "file").write_text("2")
    elif change == "make":
        (inner / "other").mkdir()
    elif change == "remove":
        (inner / "file").unlink()
    else:
        os.utime(inner / "file", (1, 1))
    assert newest_change(str(tmp_path), ".harness") > before > 0


def test_a_folder_that_is_not_there_never_changes(tmp_path: Path) -> None:
    """An agent may delete its working folder."""
    assert newest_change(str(tmp_path / "gone"), ".harness") == 0
    assert newest_change("", ".harness") == 0
