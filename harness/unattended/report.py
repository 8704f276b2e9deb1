"""The output of `schedule add`, `list` and `remove`."""

from __future__ import annotations

import os
from typing import Any

from harness.base import clock
from harness.base.errors import BrokenFile
from harness.state.layout import Layout, command
from harness.unattended import _crontab, _machine, _times, schedules
from harness.unattended.schedules import CRON, Schedule


def added(where: Layout, made: Schedule) -> list[str]:
    """The output of `schedule add`."""
    after, now = _times.following(made.known_times, clock.now()), clock.now()
    when = f"next at {clock.local(after, now)}" if after else "the next in more than a month"
    lines = [
        f"Scheduled {made.id}: {', '.join(made.times)}, each for {made.goes_on}{_lanes(made.lanes)}; {when}.",
        f"look      {command('schedule log')}   {command('doctor unattended')}   {command('schedule run-now')}",
        f"end it    {command('schedule remove')}",
    ]
    if _machine.cron_runs() is False:
        lines.append("warning: no cron daemon runs here: sudo systemctl enable --now cron, or: sudo service cron start")
    return lines


def _lanes(number: int) -> str:
    return f", {number} lane{'s' if number > 1 else ''}" if number else ""


def rows(where: Layout) -> list[dict[str, Any]]:
    """A row for each schedule: {id, folder, times, next, place, for, lanes, here, fault}; `next` is unix seconds, or 0."""
    found: dict[str, dict[str, Any]] = {}
    for one in _crontab.entries(_crontab.read()) if _crontab.available() else []:
        row = found.setdefault(one.id, _row(Layout(one.folder), one.id, where))
        row["times"].append(one.times)
    mine = None if schedules.id_of(where) in found else schedules.load(where)
    if mine:
        name = schedules.id_of(where)
        fault = "its lines are gone from your crontab" if mine.place == CRON else ""
        fault = fault if mine.id == name else f"added in another folder; run it again here: {command('schedule add')}"
        found[name] = {**_row(where, name, where), "times": mine.times, "fault": fault}
    for row in found.values():
        row["next"] = _times.following([_times.parse(one) for one in row["times"]], clock.now())
    return [*found.values()]


def _row(folder: Layout, name: str, where: Layout) -> dict[str, Any]:
    """A row without its times; a missing folder or missing settings are a fault."""
    made, fault = None, "" if os.path.isdir(folder.state) else f"gone; {command('schedule remove')} {name}"
    try:
        made = schedules.load(folder)
    except BrokenFile as broken:
        fault = str(broken)
    if not made and not fault:
        fault = f"its settings are gone; run in that folder: {command('schedule add')}"
    place, goes_on, lanes = (made.place, made.goes_on, made.lanes) if made else (CRON, "", 0)
    own = {
        "place": place,
        "for": goes_on,
        "lanes": lanes,
        "here": folder.folders.project == where.folders.project,
        "fault": fault,
    }
    return {"id": name, "folder": folder.folders.project, "times": [], "next": 0, **own}


def listed(where: Layout) -> list[str]:
    """The rows as lines."""
    found, now = rows(where), clock.now()
    lines = []
    for row in found:
        when = f"next {clock.local(row['next'], now)}" if row["next"] else "next in more than a month"
        place = "" if row["place"] == CRON else f" by {row['place']}"
        lines.append(
            f"{row['id']}  {', '.join(row['times'])}{place}, each for {row['for'] or '?'}"
            f"{_lanes(row['lanes'])}  {when}  {row['folder']}"
        )
        lines += [f"  fault: {row['fault']}"] if row["fault"] else []
    return lines or [f"Nothing is scheduled. To schedule this mission: {command('schedule add --every 30m')}"]


def removed(where: Layout, schedule_id: str) -> list[str]:
    """Remove a schedule; returns messages."""
    try:
        made = schedules.load(where)
    except BrokenFile:  # removed anyway
        made = None
    name, there = schedules.remove(where, schedule_id)
    lines = [f"Removed {name}." if there else f"There was no schedule {name}."]
    if made and made.id == name and made.place != CRON:
        lines += [f"Your {made.place} configuration is still installed; to disable it: {_end(made)}"]
    return lines


def _end(made: Schedule) -> str:
    if made.place == "systemd":
        return f"systemctl --user disable --now harness-{made.id}.timer"
    return f"launchctl bootout gui/{os.getuid()}/harness.{made.id}"
