"""One run at a time, even if someone takes a lock for stale and removes its file."""

from __future__ import annotations

import errno
import fcntl
import os
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


@pytest.mark.parametrize("spoil", ["rm .harness/locks/mission", "rm -r .harness/locks"])
def test_an_agent_that_removes_a_stale_lock_does_not_let_two_runs_work_at_once(unconfined: House, spoil: str) -> None:
    """The second run learns that one is alive, and the first one's work counts."""
    unconfined.script("worker", {"run": f"{spoil}; echo 1 > 1.txt; touch begun; sleep 1.5; rm begun"})
    role = unconfined.begin_role("worker", "F-001")
    until(lambda: (unconfined.tree / "begun").exists())
    second = unconfined.role("worker", "F-002")
    assert second.code == 75, second
    assert role.wait() == 0
    assert [line["feature"] for line in unconfined.ran()] == ["F-001"]
    assert (unconfined.result()["outcome"], unconfined.feature().status) == ("ok", "validating")
    assert runs.open_runs(unconfined.layout) == []


def test_a_confined_agent_cannot_remove_the_lock(house: House) -> None:
    """The second run is told which run is alive."""
    house.script("worker", {"run": "! rm -r .harness/locks; echo 1 > 1.txt; touch begun; sleep 1; rm begun"})
    role = house.begin_role("worker", "F-001")
    until(lambda: (house.tree / "begun").exists())
    second = house.role("worker", "F-002")
    assert (second.code, runs.open_runs(house.layout)[0] in second.err) == (75, True), second
    assert role.wait() == 0
    assert (house.result()["outcome"], house.result()["refused"]) == ("ok", [])
