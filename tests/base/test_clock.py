"""Time is stored in one form, in any time zone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from harness.base import clock


@pytest.mark.parametrize(
    ("seconds", "stamp"),
    [(0, "1970-01-01T00:00:00Z"), (1777025112, "2026-04-24T10:05:12Z"), (1777025112.9, "2026-04-24T10:05:12Z")],
)
def test_a_stamp_is_whole_seconds_in_utc(seconds: float, stamp: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """This also holds in another local time zone."""
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    try:
        assert (clock.stamp(seconds), clock.day(seconds)) == (stamp, stamp[:10])
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "seconds", [0, 951_782_399, 951_782_400, 1_709_164_800, 1_777_025_112, 4_107_542_400, 253_402_300_799]
)
def test_the_seconds_of_a_stamp_are_those_it_was_made_of(seconds: int) -> None:
    """Around leap days and at the end of centuries, too."""
    assert clock.seconds_of(clock.stamp(seconds)) == seconds


@pytest.mark.parametrize("text", ["", "now", "2026-04-24", "2026-04-24T10:05:1xZ", "\uff12026-04-24T10:05:12Z"])
def test_another_text_has_no_seconds(text: str) -> None:
    """0, which is in no run."""
    assert clock.seconds_of(text) == 0


def test_now_is_now() -> None:
    """It is in whole seconds."""
    assert isinstance(clock.now(), int)
    assert abs(clock.now() - time.time()) < 2


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (61, "2 min"),
        (2100, "35 min"),
        (3600, "1 h 0 min"),
        (12_000, "3 h 20 min"),
        (86_399, "1 d 0 h"),
        (691_000, "8 d 0 h"),
    ],
)
def test_a_span_is_read_at_a_glance(seconds: int, words: str) -> None:
    """It is rounded up, so that the user does not come back too early."""
    assert clock.duration(seconds) == words


def test_a_time_on_the_screen_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the date if it is not today."""
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    try:
        assert clock.local(1777025112, 1777025112 - 7200) == "15:50"
        assert clock.local(1777025112, 1777025112 - 86400) == "2026-04-24 15:50"
    finally:
        monkeypatch.undo()
        time.tzset()


# a recorded clock


def test_a_recorded_clock_shows_what_it_is_set_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time and the duration of the run; the time of this machine once it is gone."""
    path = tmp_path / "clock"
    monkeypatch.setenv(clock.RECORDED, str(path))
    path.write_bytes(clock.shown(1_777_025_112, 4.5, clock.SETTLES))
    assert (clock.now(), clock.elapsed(0.0)) == (1_777_025_112, 4.5)
    clock.await_settling()  # it shows that already
    path.unlink()
    assert clock.now() >= int(time.time()) - 1
    clock.await_settling()


def test_a_run_waits_until_its_clock_lets_it_settle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that it has come so far, and ends with the clock, too."""
    path = tmp_path / "clock"
    path.write_bytes(clock.shown(1, 0.0, clock.OPENS))
    monkeypatch.setenv(clock.RECORDED, str(path))
    pid = os.fork()
    if not pid:
        clock.await_settling()
        os._exit(7)
    until = time.monotonic() + 60
    while not os.path.exists(str(path) + clock.REACHED) and time.monotonic() < until:
        time.sleep(0.005)
    assert os.waitpid(pid, os.WNOHANG) == (0, 0)
    path.write_bytes(clock.shown(2, 0.0, clock.SETTLES))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("25m", 1500), ("8h", 28800), ("1000000000s", 10**9), ("1000000001s", 0), ("9" * 5000 + "s", 0)]
    + [(text, 0) for text in ("", "m", "0m", "-5m", "5", "5d", "1.5h", "\u00b2m", "\u0663m", " 5m")],
)
def test_a_time_for_which_to_go_on(text: str, seconds: int) -> None:
    """A number that a shell cannot count is invalid."""
    assert clock.span(text) == seconds
