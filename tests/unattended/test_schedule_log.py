"""The log is bounded, and each line has its time."""

from __future__ import annotations

import os

import pytest

from harness.base import clock
from harness.unattended import schedule_log
from harness.unattended.schedule_log import ScheduleLog
from tests.missions import House


def test_every_line_has_its_time_and_no_line_breaks_the_log(house: House) -> None:
    """Control characters are written out, a long line is cut."""
    log, before = ScheduleLog(house.layout), clock.now()
    for text in ("one", "two\x1b[2J\nthree", "x" * 5000):
        log.write(text)
    found = log.lines()
    assert [line.text for line in found[:2]] == ["one", "two\\x1b[2J three"] and len(found) == 3
    assert all(before <= line.at <= clock.now() for line in found) and len(found[2].text) < 2010


def test_it_never_holds_more_than_two_files(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The older half goes; the newest lines are always there."""
    monkeypatch.setattr(schedule_log, "MAX_BYTES", 2000)
    log = ScheduleLog(house.layout)
    for number in range(500):
        log.write(f"line {number}")
    folder = house.state / "schedule"
    assert sorted(os.listdir(folder)) == ["log", "log.1"]
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 4000
    numbers = [int(line.text[5:]) for line in log.lines()]
    assert numbers == [*range(numbers[0], 500)] and len(numbers) > 50


def test_what_changes_nothing_is_written_once(house: House) -> None:
    """Also if the line before has it at its end."""
    log = ScheduleLog(house.layout)
    for text in ("DONE", "DONE", "end: exit 0; PAUSED", "PAUSED", "DONE"):
        log.write(text, once=True)
    assert [line.text for line in log.lines()] == ["DONE", "end: exit 0; PAUSED", "DONE"]
