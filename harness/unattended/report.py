"""The output of `schedule add`, `list` and `remove`."""

from __future__ import annotations

from typing import Any

from harness.agents import logins, registry
from harness.base.errors import BrokenFile, HarnessError
from harness.mission import config
from harness.state import names
from harness.state.layout import Layout, command
from harness.unattended import _crontab, schedules
from harness.unattended.schedules import Schedule


def added(where: Layout, made: Schedule) -> list[str]:
    """The output of `schedule add`, with what would stop the mission tonight as far as it is known."""
    warnings = _obstacles(where, {**made.environment, **_crontab.variables(_crontab.read())})
    if _crontab.is_idle():
        warnings.append("no cron daemon runs here: sudo systemctl enable --now cron, or: sudo service cron start")
    return [
        f"Scheduled {made.id}: {', '.join(made.times)}, each for {made.goes_on}{_lanes(made.lanes)}.",
        f"look      {command('schedule log')}   {command('schedule list')}   {command('schedule run-now')}",
        f"end it    {command('schedule remove')}",
        *(f"warning: {line}" for line in warnings),
    ]


def _obstacles(where: Layout, environment: dict[str, str]) -> list[str]:
    """Logins that end tonight for a start with this environment, or why no agent can be chosen."""
    try:
        settings = config.load(where)
        registry.choose(settings.agent, where.folders.project, where.shown(names.CONFIG))
    except HarnessError as fault:
        return [str(fault)]
    return [*logins.ending(settings, environment)]


def _lanes(number: int) -> str:
    return f", {number} lane{'s' if number > 1 else ''}" if number else ""


def rows(where: Layout) -> list[dict[str, Any]]:
    """A row for each schedule: {id, folder, times, for, lanes, here, fault}."""
    found: dict[str, dict[str, Any]] = {}
    for one in _crontab.entries(_crontab.read()) if _crontab.available() else []:
        row = found.setdefault(one.id, _row(Layout(one.folder), one.id, where))
        row["times"].append(one.times)
    name = schedules.id_of(where)
    if name not in found and (mine := schedules.load(where)):
        fault = f"it is not in your crontab; run again: {command('schedule add')}"
        found[name] = {**_row(where, name, where), "times": mine.times, "fault": fault}
    return [*found.values()]


def _row(folder: Layout, name: str, where: Layout) -> dict[str, Any]:
    """A row without its times; missing settings are a fault."""
    made, fault = None, ""
    try:
        made = schedules.load(folder)
        if not made:
            ways = f"{command('schedule add')} in that folder, or {command('schedule remove')} {name}"
            fault = f"its settings are gone: {ways}"
    except BrokenFile as broken:
        fault = str(broken)
    own = {"for": made.goes_on if made else "", "lanes": made.lanes if made else 0}
    here = folder.folders.project == where.folders.project
    return {"id": name, "folder": folder.folders.project, "times": [], **own, "here": here, "fault": fault}


def listed(where: Layout) -> list[str]:
    """The rows as lines."""
    lines = []
    for row in rows(where):
        about = f"{', '.join(row['times'])}, each for {row['for'] or '?'}{_lanes(row['lanes'])}"
        lines.append(f"{row['id']}  {about}  {row['folder']}")
        lines += [f"  fault: {row['fault']}"] if row["fault"] else []
    return lines or [f"Nothing is scheduled. To schedule this mission: {command('schedule add --every 30m')}"]


def removed(where: Layout, schedule_id: str) -> str:
    """Remove a schedule; returns the message."""
    name, there = schedules.remove(where, schedule_id)
    return f"Removed {name}." if there else f"There was no schedule {name}."
