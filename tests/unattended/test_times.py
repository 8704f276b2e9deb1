"""The times of a crontab mean what cron means by them."""

from __future__ import annotations

import time

import pytest

from harness.base.errors import UsageFault
from harness.unattended import _times

NOON = int(time.mktime((2026, 11, 23, 12, 0, 0, 0, 0, -1)))  # a Monday


def on(text: str, *at: int) -> bool:
    """Whether the fields take in this local time: year, month, day, hour, minute."""
    return _times.parse(text).falls_on(time.localtime(time.mktime((*at, 0, 0, 0, -1))))  # type: ignore[arg-type]  # nine of them


@pytest.mark.parametrize(
    ("text", "fields"),
    [("1m", "* * * * *"), ("30m", "*/30 * * * *"), ("1h", "0 * * * *"), ("6h", "0 */6 * * *"), ("1d", "0 0 * * *")],
)
def test_a_span_becomes_fields(text: str, fields: str) -> None:
    """Those that divide an hour or a day."""
    assert _times.every(text) == fields


@pytest.mark.parametrize("text", ["", "m", "0m", "7m", "60m", "24h", "2d", "-5m", "1.5h", "30", "30s", "٣m", "9999m"])
def test_a_span_that_would_come_unevenly_is_refused(text: str) -> None:
    """With what is known."""
    with pytest.raises(UsageFault, match="--every takes 1, 2"):
        _times.every(text)


def test_a_start_goes_on_for_less_than_the_time_to_the_next() -> None:
    """So that it does not meet the next one."""
    assert [_times.share(text) for text in ("1m", "10m", "30m", "1h", "1d")] == ["1m", "8m", "25m", "50m", "1200m"]


def test_ranges_lists_steps_and_names() -> None:
    """As in crontab(5)."""
    assert on("*/30 22-23,0-6 * * mon-fri", 2026, 11, 23, 22, 30)
    assert not on("*/30 22-23,0-6 * * mon-fri", 2026, 11, 23, 22, 31)
    assert not on("*/30 22-23,0-6 * * mon-fri", 2026, 11, 22, 22, 30)  # a Sunday
    assert on("5/20 * * nov 7", 2026, 11, 22, 3, 45)


def test_day_and_weekday_are_either_where_both_are_named() -> None:
    """As cron has it since Version 7; with a star in one of them both must fit."""
    assert (
        on("0 0 13 * 5", 2026, 11, 13, 0, 0)
        and on("0 0 13 * 5", 2026, 11, 20, 0, 0)
        and on("0 0 13 * 5", 2026, 12, 13, 0, 0)
    )
    assert not on("0 0 13 * 5", 2026, 11, 21, 0, 0)
    assert not on("0 0 */2 * 1", 2026, 11, 30, 0, 0) and on("0 0 */2 * 1", 2026, 11, 23, 0, 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "5-1 * * * *",
        "*/0 * * * *",
        *("@reboot", "a * * * *", "1-2-3 * * * *", ", * * * *", "1/ * * * *", "-1 * * * *", "* * * * monday"),
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    """Each names what is wrong."""
    with pytest.raises(UsageFault):
        _times.normal(text)


@pytest.mark.parametrize("text", ["0 0 31 2 *", "0 0 30-31 feb *", "0 0 31 4,6,9,11 *"])
def test_a_date_that_no_year_has_is_refused(text: str) -> None:
    """Cron would accept it, and never start anything."""
    with pytest.raises(UsageFault, match="never occurs: no year has day 3"):
        _times.normal(text)


@pytest.mark.parametrize("text", ["0 0 29 2 *", "0 0 31 2,3 *", "0 0 31 2 mon", "0 0 */31 2 *"])
def test_a_date_that_comes_seldom_is_taken(text: str) -> None:
    """A leap day, a month of several, a weekday of that month."""
    assert _times.normal(text) == text


def test_words_become_fields() -> None:
    """`@daily` and its like; spaces do not matter."""
    assert _times.normal("@Daily") == "0 0 * * *"
    assert _times.normal(" */5   *  * * * ") == "*/5 * * * *"


def test_the_starts_between_two_moments_are_counted() -> None:
    """After the first, up to and with the second; of several lines each minute once."""
    known = [_times.parse("*/30 * * * *"), _times.parse("0 * * * *")]
    assert _times.between(known, NOON + 2, NOON + 3601) == [NOON + 1800, NOON + 3600]
    assert _times.between(known, NOON + 7200, NOON) == []  # the clock was set back
    assert len(_times.between(known, 0, NOON)) <= 31 * 48  # nor does a clock that jumps ahead take for ever


def test_the_next_start() -> None:
    """0 if there is none within a month."""
    assert _times.following([_times.parse("*/30 * * * *")], NOON) == NOON + 1800
    assert _times.following([_times.parse("0 0 31 2 *")], NOON) == 0
