"""Configuration for other schedulers than cron: a systemd timer, a launchd agent."""

from __future__ import annotations

import os
import plistlib
from collections.abc import Iterator
from itertools import product
from typing import Any

from harness.base.errors import UsageFault
from harness.unattended import _crontab
from harness.unattended._crontab import CrontabEntry
from harness.unattended._times import Times
from harness.unattended.schedules import Schedule

MAX_INTERVALS = 500
DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")


def recipe(found: Schedule, words: list[str]) -> list[str]:
    """The lines for the schedule's place: files, and the commands that install them."""
    return {"cron": _cron, "systemd": _systemd, "launchd": _launchd}[found.place](found, words)


def _cron(found: Schedule, words: list[str]) -> list[str]:
    rows = [CrontabEntry(times=one, folder=words[3], id=found.id, command=words).line for one in found.times]
    return ["# For a crontab (crontab -e):", _crontab.BEGIN, *rows, _crontab.END]


def _systemd(found: Schedule, words: list[str]) -> list[str]:
    name = f"harness-{found.id}"
    whens = [f"OnCalendar={one}" for known in found.known_times for one in _calendar(known)]
    return [
        f"# ~/.config/systemd/user/{name}.service",
        *("[Unit]", "Description=A mission of the harness", "[Service]", "Type=oneshot"),
        f"ExecStart={' '.join(map(_systemd_word, words))}",
        "",
        f"# ~/.config/systemd/user/{name}.timer",
        *("[Timer]", *whens, "AccuracySec=1s", "Persistent=true", "[Install]", "WantedBy=timers.target"),
        "",
        "# then; the second line keeps it running while you are logged out:",
        f"systemctl --user daemon-reload && systemctl --user enable --now {name}.timer",
        "loginctl enable-linger",
    ]


def _systemd_word(word: str) -> str:
    """A word of ExecStart, escaped for systemd, including `%` specifiers and `$` variables."""
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{plain}"'


def _calendar(known: Times) -> Iterator[str]:
    """OnCalendar lines for these times; several lines are alternatives."""
    clocks = f"{_listed(known.hours, 24)}:{_listed(known.minutes, 60)}:00"
    months = _listed(known.months, 12)
    weekdays = f"{','.join(DAYS[one] for one in known.weekdays)} " if len(known.weekdays) < len(DAYS) else ""
    if known.either:
        yield f"{weekdays}*-{months}-* {clocks}"
        weekdays = ""
    yield f"{weekdays}*-{months}-{_listed(known.days, 31)} {clocks}"


def _listed(numbers: list[int], all_of_them: int) -> str:
    return "*" if len(numbers) == all_of_them else ",".join(f"{one:02d}" for one in numbers)


def _launchd(found: Schedule, words: list[str]) -> list[str]:
    label = f"harness.{found.id}"
    whens = [one for known in found.known_times for one in _intervals(known)]
    if len(whens) > MAX_INTERVALS:
        raise UsageFault(f"launchd needs an entry for each time, here {len(whens)}. Use fewer: --every 1h")
    content = plistlib.dumps({"Label": label, "ProgramArguments": words, "StartCalendarInterval": whens})
    path = f"~/Library/LaunchAgents/{label}.plist"
    commands = [f"launchctl bootstrap gui/{os.getuid()} {path}"]
    return [f"# {path}, without this line:", *content.decode().rstrip("\n").split("\n"), "", "# then:", *commands]


def _intervals(known: Times) -> Iterator[dict[str, Any]]:
    """StartCalendarInterval: an entry for each combination, without unrestricted fields."""
    parts = [("Minute", known.minutes, 60), ("Hour", known.hours, 24), ("Month", known.months, 12)]
    day, weekday = ("Day", known.days, 31), ("Weekday", known.weekdays, 7)
    for more in ([day], [weekday]) if known.either else ([day, weekday],):
        named = [(name, values) for name, values, every in (*parts, *more) if len(values) < every]
        for values in product(*(values for _, values in named)):
            yield dict(zip((name for name, _ in named), values, strict=True))
