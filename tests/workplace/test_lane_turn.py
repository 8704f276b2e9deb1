"""The turn of a lane: one decides at a time, and who waits goes on as soon as a run ends."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import pytest

from harness.workplace import lane_turn
from tests.missions import House


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """The descriptor of this lane."""
    made = os.open(tmp_path / "turn", os.O_RDWR | os.O_CREAT)
    monkeypatch.setenv(lane_turn.TURN, str(made))
    return made


def is_free(folder: Path) -> bool:
    """Whether another lane could decide now."""
    other = os.open(folder / "turn", os.O_RDWR)
    try:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(other)
    return True


def test_a_turn_lasts_until_it_is_released_or_passed_on(own: int, tmp_path: Path) -> None:
    """Once it is passed on, no child of the run has the descriptor."""
    lane_turn.take()
    assert not is_free(tmp_path)
    lane_turn.release()
    assert is_free(tmp_path)
    lane_turn.take()
    lane_turn.pass_on()
    assert is_free(tmp_path)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(own)


def test_without_lanes_there_is_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a variable was left over."""
    monkeypatch.delenv(lane_turn.TURN, raising=False)
    lane_turn.take()
    for left in ("", "x", "999"):
        monkeypatch.setenv(lane_turn.TURN, left)
        lane_turn.take()
        lane_turn.release()
        lane_turn.pass_on()


def test_a_lull_ends_at_once_where_the_run_that_it_waits_for_has_ended_already(house: House) -> None:
    """Between the decision and the look at it; where nothing is waited for it takes its time."""
    started = time.monotonic()
    lane_turn.lull(house.layout, 60, "WAIT 0 for 1-worker-F-001, 2-worker-F-002")
    assert time.monotonic() - started < 55
    started = time.monotonic()
    lane_turn.lull(house.layout, 0.3, "NEXT worker F-001")
    assert time.monotonic() - started >= 0.3
