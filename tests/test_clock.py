"""Time is written one way, wherever the machine stands."""

from __future__ import annotations

import time

import pytest

from harness import clock


@pytest.mark.parametrize(
    ("seconds", "stamp"),
    [(0, "1970-01-01T00:00:00Z"), (1777025112, "2026-04-24T10:05:12Z"), (1777025112.9, "2026-04-24T10:05:12Z")],
)
def test_a_stamp_is_whole_seconds_in_utc(seconds: float, stamp: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the machine's own time is another."""
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    try:
        assert (clock.stamp(seconds), clock.day(seconds)) == (stamp, stamp[:10])
    finally:
        monkeypatch.undo()
        time.tzset()


def test_now_is_now() -> None:
    """In whole seconds."""
    assert isinstance(clock.now(), int)
    assert abs(clock.now() - time.time()) < 2
