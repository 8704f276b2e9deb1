"""Crontab times: five fields, parsed like cron's; past and next times. In local time, like cron's."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice

from harness.base.errors import UsageFault
from harness.base.record import Record

MINUTE, DAY = 60, 24 * 3600
MAX_LOOK_SECONDS = 31 * DAY  # limit for counting missed starts and for finding the next one
FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)  # the max of each month
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
WORDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
UNITS = {"m": (60, "*/{} * * * *", "* * * * *"), "h": (24, "0 */{} * * *", "0 * * * *"), "d": (1, "", "0 0 * * *")}
SECONDS = {"m": MINUTE, "h": 60 * MINUTE, "d": DAY}


class Times(Record):
    """Due times. `either`: days and weekdays are both restricted, and one match is enough, as in cron."""

    minutes: list[int]
    hours: list[int]
    days: list[int]
    months: list[int]
    weekdays: list[int]
    either: bool = False

    def falls_on(self, at: time.struct_time) -> bool:
        """Whether this minute is due."""
        if at.tm_min not in self.minutes or at.tm_hour not in self.hours or at.tm_mon not in self.months:
            return False
        day, weekday = at.tm_mday in self.days, (at.tm_wday + 1) % 7 in self.weekdays
        return day or weekday if self.either else day and weekday


def every(text: str) -> str:
    """The five fields of `30m`, `2h` or `1d`; raises UsageFault if the times would not be evenly spaced."""
    number, unit = text[:-1], text[-1:]
    most, fields, single = UNITS.get(unit, (0, "", ""))
    count = int(number) if number.isascii() and number.isdigit() and len(number) < 4 else 0
    if not count or not most or most % count or (count == most and unit != "d"):
        known = "1, 2, 3, 4, 5, 6, 10, 12, 15, 20 or 30 minutes (30m), 1, 2, 3, 4, 6, 8 or 12 hours (2h), or 1d"
        raise UsageFault(f"'{text}' does not divide an hour or a day. --every takes {known}; --cron takes any times.")
    return fields.format(count) if count > 1 else single


def share(text: str) -> str:
    """The default time limit of a start of `--every`: five sixths of the interval."""
    return f"{max(1, seconds(text) * 5 // 6 // MINUTE)}m"


def seconds(text: str) -> int:
    """The seconds of `25m` or `8h`."""
    return int(text[:-1]) * SECONDS[text[-1]]


def normal(text: str) -> str:
    """The validated five fields of crontab times; converts `@daily` and similar words."""
    words = WORDS.get(text.strip().lower(), text).split()
    if len(words) != len(FIELDS):
        example = "'*/30 22-23,0-6 * * 1-5'"
        raise UsageFault(
            f"'{text}' is neither minute, hour, day, month and weekday, such as {example}, nor a word like @daily."
        )
    fields = " ".join(words)
    found = parse(fields)
    if not found.either and found.days[0] > max(DAYS[month - 1] for month in found.months):
        raise UsageFault(f"'{text}' never occurs: no year has day {words[2]} in month {words[3]}.")
    return fields


def parse(text: str) -> Times:
    """The times of five fields; raises UsageFault with the name of an invalid field."""
    words = text.split()
    found = [_field(word, *known) for word, known in zip(words, FIELDS, strict=True)]
    weekdays = sorted({number % 7 for number in found[4]})
    either = not words[2].startswith("*") and not words[4].startswith("*")
    return Times(minutes=found[0], hours=found[1], days=found[2], months=found[3], weekdays=weekdays, either=either)


def _field(word: str, name: str, low: int, high: int) -> list[int]:
    found: set[int] = set()
    for part in word.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        start = low if span == "*" else _number(first, name)
        end = high if span == "*" or (slash and not dash) else _number(last, name) if dash else start
        by = int(step) if step.isascii() and step.isdigit() else 0 if slash else 1
        if not (low <= start <= end <= high and by):
            raise UsageFault(
                f"invalid {name} '{word}': a crontab takes {low} to {high}, such as *, 5, 1-5, */10 or 0,30."
            )
        found.update(range(start, end + 1, by))
    return sorted(found)


def _number(word: str, name: str) -> int:
    names = {"month": ("", *MONTHS), "weekday": WEEKDAYS}.get(name, ())
    if word.lower() in names and word:
        return names.index(word.lower())
    return int(word) if word.isascii() and word.isdigit() and len(word) < 3 else -1


def between(known: Sequence[Times], since: int, until: int) -> list[int]:
    """The due minutes after `since`, through `until`, as unix seconds; at most the last month."""
    return [*_due(known, max(since, until - MAX_LOOK_SECONDS), until)]


def following(known: Sequence[Times], now: int) -> int:
    """The next due minute; 0 if there is none within a month."""
    return next(islice(_due(known, now, now + MAX_LOOK_SECONDS), 1), 0)


def _due(known: Sequence[Times], since: int, until: int) -> Iterator[int]:
    at = since - since % MINUTE + MINUTE
    while at <= until:
        here = time.localtime(at)
        if any(one.falls_on(here) for one in known):
            yield at
        at += MINUTE
