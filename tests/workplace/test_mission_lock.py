"""One opens or settles at a time, even if someone takes a lock for stale and removes its file."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from pathlib import Path

import pytest

from harness.base.errors import LockBusy
from harness.state import files, names
from harness.state.layout import Layout
from harness.workplace import mission_lock
from tests.helpers import mission


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A mission whose folder exists and is empty."""
    return mission(tmp_path)


def test_a_mission_has_one_holder_and_says_who(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock file names the holder; it is free when the holder releases it."""
    lock = mission_lock.take(layout)
    lock.sign({"run": "r-1"})
    assert not files.is_free(layout.path(names.MISSION_LOCK))
    monkeypatch.setattr(mission_lock, "PATIENCE_SECONDS", 0.05)
    with pytest.raises(LockBusy, match="The mission is busy: run r-1"):
        mission_lock.take(layout)
    lock.release()
    mission_lock.take(layout).release()


def test_a_removed_file_lets_nobody_in(layout: Layout) -> None:
    """The folder is locked too."""
    with mission_lock.take(layout):
        os.unlink(layout.path(names.MISSION_LOCK))
        for _ in range(2):  # the first has written the file again
            assert not mission_lock.MissionLock(layout).take()
    mission_lock.take(layout).release()


def test_whoever_opens_waits_for_a_holder_who_needs_milliseconds(layout: Layout) -> None:
    """Two starts at once are no fault; only a holder who does not let go is."""
    lock = mission_lock.take(layout)
    threading.Timer(0.2, lock.release).start()
    mission_lock.take(layout).release()


def test_who_holds_the_file_alone_keeps_others_out(layout: Layout) -> None:
    """An older version knows no other lock."""
    with files.Lock(layout.path(names.MISSION_LOCK)):
        assert not mission_lock.MissionLock(layout).take()


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
