"""One run at a time, even if someone takes a lock for stale and removes its file."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from pathlib import Path

import pytest

from harness.base.errors import Busy
from harness.integrity import mission_lock
from harness.model import runs
from harness.store import files
from harness.store.layout import Layout
from tests.helpers import mission
from tests.missions import House, until


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A mission whose folder exists and is empty."""
    return mission(tmp_path)


def test_a_mission_has_one_holder_and_says_who(layout: Layout) -> None:
    """The lock file names the holder; it is free when the holder releases it."""
    lock = mission_lock.take(layout)
    lock.sign({"run": "r-1"})
    assert not files.is_free(layout.mission_lock)
    with pytest.raises(Busy, match="The mission is busy: run r-1"):
        mission_lock.take(layout)
    lock.release()
    mission_lock.take(layout).release()


def test_a_removed_file_lets_nobody_in(layout: Layout) -> None:
    """The folder is locked too; a second run learns which run is alive."""
    with mission_lock.take(layout), files.Lock(layout.run("7-worker").lock):
        os.unlink(layout.mission_lock)
        for _ in range(2):  # the first has written the file again
            assert not mission_lock.MissionLock(layout).take()
        with pytest.raises(Busy, match="The mission is busy: run 7-worker"):
            mission_lock.take(layout)
    mission_lock.take(layout).release()


def test_who_holds_the_file_alone_keeps_others_out(layout: Layout) -> None:
    """An older version knows no other lock."""
    with files.Lock(layout.mission_lock):
        assert not mission_lock.MissionLock(layout).take()


def test_it_is_held_as_long_as_any_of_its_descriptors_is_open(layout: Layout) -> None:
    """A guardian that inherited them keeps the mission locked."""
    lock = mission_lock.take(layout)
    kept = [os.dup(descriptor) for descriptor in mission_lock.descriptors([lock])]
    lock.release()
    assert len(kept) == 2
    os.unlink(layout.mission_lock)
    assert not mission_lock.MissionLock(layout).take()
    for descriptor in kept:
        os.close(descriptor)
    mission_lock.take(layout).release()


def test_a_file_system_that_locks_no_folders_is_no_obstacle(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some network file systems do not; the file is locked as always. None is available here, so the call is replaced."""
    real = fcntl.flock

    def no_folders(descriptor: int, how: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EBADF, "no")
        real(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", no_folders)
    with mission_lock.take(layout):
        assert not mission_lock.MissionLock(layout).take()
    mission_lock.take(layout).release()


@pytest.mark.parametrize("what", ["the file", "the folder"])
def test_what_was_removed_meanwhile_is_locked_again_at_its_place(layout: Layout, what: str) -> None:
    """The descriptors stay the same, with the holder's signature."""
    lock, own = mission_lock.take(layout), files.Lock(layout.run("7-worker").lock)
    own.take()
    lock.sign({"run": "7-worker"})
    before = mission_lock.descriptors([lock, own])
    shutil.rmtree(layout.state if what == "the folder" else layout.locks)
    os.makedirs(layout.locks)
    found = mission_lock.put_back([lock, own])
    assert found == [layout.mission_lock, *([layout.state] if what == "the folder" else []), own.path]
    assert mission_lock.put_back([lock, own]) == []
    assert (mission_lock.descriptors([lock, own]), runs.is_dead(layout, "7-worker")) == (before, False)
    with pytest.raises(Busy, match="run 7-worker"):
        mission_lock.take(layout)
    lock.release()
    own.release()
    assert files.is_free(layout.mission_lock)


@pytest.mark.parametrize("spoil", ["rm .harness/locks/mission", "rm -r .harness/locks"])
def test_an_agent_that_removes_a_stale_lock_does_not_let_two_runs_work_at_once(house: House, spoil: str) -> None:
    """The second run learns which run is alive; the first one's work counts, and the removed file is named."""
    house.script("worker", {"run": f"{spoil}; echo 1 > 1.txt; touch begun; sleep 1.5"})
    role = house.begin_role("worker", "F-001")
    until(lambda: (house.project / "begun").exists())
    second = house.role("worker", "F-002")
    assert second.code == 75, second
    assert role.wait() == 0
    assert [line["feature"] for line in house.ran()] == ["F-001"]
    result = house.result()
    own = f"locks/run-{result['run']}"
    assert (result["outcome"], house.feature().status) == ("ok", "validating")
    assert result["refused"] == ["locks/mission", *([own] if "-r" in spoil else [])]
    assert runs.open_runs(house.layout) == []
