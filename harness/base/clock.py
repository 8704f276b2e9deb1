"""Time: stored as whole seconds in UTC, shown to people in local time.

A replayed mission runs on a recorded clock: a file `<unix seconds> <duration of the run> <opens or settles>` that only
the replay advances.
"""

from __future__ import annotations

import os
import time

RECORDED = "HARNESS_CLOCK"  # variable: path of the recorded clock
OPENS, SETTLES = "opens", "settles"
REACHED = ".reached"  # suffix of the file that reports that the run is about to settle
POLL_SECONDS = 0.005
SECONDS = {"s": 1, "m": 60, "h": 3600}
MAX_SECONDS = 10**9  # seconds: the largest value that every shell can count


def now() -> int:
    """Whole seconds since the epoch, or the time of the recorded clock."""
    shown = _recorded()
    return int(shown[0]) if shown else int(time.time())


def elapsed(started: float) -> float:
    """Seconds since `started` on the monotonic clock; on a recorded clock, the duration of the replayed run."""
    shown = _recorded()
    return float(shown[1]) if shown else round(time.monotonic() - started, 3)


def await_settling() -> None:
    """On a recorded clock: report that the run is ready to settle and wait until the clock says so. The wait also ends
    when the clock is removed or the parent process dies."""
    path, parent = os.environ.get(RECORDED), os.getppid()
    if path:
        with open(path + REACHED, "w", encoding="utf-8"):
            pass
        while (shown := _recorded()) and shown[2] == OPENS and os.getppid() == parent:
            time.sleep(POLL_SECONDS)


def shown(at: int, seconds: float, step: str) -> bytes:
    """The file content of a recorded clock."""
    return f"{at} {seconds} {step}\n".encode()


def _recorded() -> list[str]:
    """The three words of the recorded clock; [] without a clock."""
    path = os.environ.get(RECORDED)
    if not path:
        return []
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().split()
    except FileNotFoundError:  # the replay has ended
        return []


def stamp(seconds: float) -> str:
    """Format `seconds` since the epoch as `2026-04-24T10:05:12Z`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def seconds_of(stamp: str) -> int:
    """Seconds since the epoch of a `stamp`; 0 for any other text. Avoids `strptime`, which adds 10 ms to a launch."""
    numbers = [stamp[start:end] for start, end in ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16), (17, 19))]
    if len(stamp) != 20 or not all(number.isascii() and number.isdigit() for number in numbers):
        return 0
    year, month, day, hour, minute, second = map(int, numbers)
    # Years start in March, so that the leap day is the last
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 1 - 719_468
    return ((days * 24 + hour) * 60 + minute) * 60 + second


def local(seconds: float, now: float) -> str:
    """`seconds` since the epoch in local time: `21:40`, or `2026-04-24 21:40` if that is not today."""
    here, today = time.localtime(seconds), time.localtime(now)
    return time.strftime("%H:%M" if here[:3] == today[:3] else "%Y-%m-%d %H:%M", here)


def duration(seconds: int) -> str:
    """A duration in words, rounded up: `40 s`, `35 min`, `3 h 20 min`, `7 d 23 h`."""
    minutes = -(-seconds // 60)
    if seconds < 60:
        return f"{max(0, seconds)} s"
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    hours = -(-minutes // 60)
    return f"{hours // 24} d {hours % 24} h"


def span(text: str) -> int:
    """Seconds in `90s`, `25m` or `8h`; 0 for any other text, and above LONGEST."""
    number, unit = text[:-1], SECONDS.get(text[-1:], 0)
    known = number.isascii() and number.isdigit() and len(number) <= len(str(MAX_SECONDS))
    seconds = int(number) * unit if known else 0
    return seconds if seconds <= MAX_SECONDS else 0


def day(seconds: float) -> str:
    """`seconds` since the epoch as `2026-04-24`."""
    return stamp(seconds)[:10]
