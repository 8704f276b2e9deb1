"""`schedule`: cron starts the mission at set times."""

from __future__ import annotations

import click

from harness.base import console
from harness.cli import _values, help
from harness.cli.help import as_json
from harness.cli.quick import MAX_LANES, here, project_of
from harness.state.layout import Layout, command
from harness.unattended import report, schedules
from harness.unattended import start as starting
from harness.unattended.schedule_log import ScheduleLog, shown

LAST_LINES = 40


@click.group(cls=help.CommandGroups)
def schedule() -> None:
    """Let cron start the mission at set times: add, list, remove, run-now, log."""


at_folder = click.option(
    "-C", "folder", metavar="DIR", type=click.Path(exists=True, file_okay=False), help="The mission's folder."
)


def _where(folder: str | None) -> Layout:
    return Layout(project_of(click.format_filename(folder))) if folder else here()


@schedule.command(name="add")
@click.option("--every", default="", metavar="TIME", help="Such as 30m, 2h or 1d.")
@click.option("--cron", multiple=True, metavar="FIELDS", help="Times as in a crontab, such as '*/30 22-23,0-6 * * *'.")
@at_folder
@click.option("--for", "goes_on", default="", metavar="TIME", help="Time limit of a start, such as 25m.")
@click.option("--lanes", type=click.IntRange(1, MAX_LANES), help="Number of concurrent features.")
def add(every: str, cron: tuple[str, ...], folder: str | None, goes_on: str, lanes: int | None) -> None:
    """Add the mission to your crontab, or replace its entry (without times: with the same times). Other lines are not
    touched."""
    where = _where(folder)
    made = schedules.add(where, every, [*cron], goes_on, lanes or 0)
    console.print_line("\n".join(report.added(where, made)))


@schedule.command(name="list")
@as_json
def list_(as_json: bool) -> None:
    """List the schedules in your crontab, of all missions."""
    _values.echo(report.rows(here())) if as_json else console.print_line("\n".join(report.listed(here())))


@schedule.command(name="remove")
@click.argument("schedule_id", metavar="[ID]", default="")
@at_folder
def remove(schedule_id: str, folder: str | None) -> None:
    """Remove this mission's schedule, or the one with this ID, from your crontab. Its log stays."""
    console.print_line(report.removed(_where(folder), schedule_id))


@schedule.command(name="run-now")
@at_folder
def run_now(folder: str | None) -> int:
    """Start the mission now like cron, in the same environment, and show the log."""
    return schedules.run_now(_where(folder))


@schedule.command(name="log")
@click.option(
    "-n", "count", default=LAST_LINES, metavar="LINES", type=click.IntRange(1), help="The number of last lines."
)
@as_json
def log(count: int, as_json: bool) -> None:
    """Show what scheduled starts found, printed and left, with local times."""
    found = ScheduleLog(here()).lines()[-count:]
    none = f"There is no log of scheduled starts yet. See: {command('schedule list')}"
    _values.show(found, map(shown, found) if found else [none], as_json=as_json)


@schedule.command(name="start", hidden=True)
@click.argument("schedule_id", metavar="ID")
@click.option("--now", is_flag=True, help="Started by a person.")
def start(schedule_id: str, now: bool) -> int:
    """One scheduled start, called by the crontab."""
    return starting.start(here(), schedule_id, by_hand=now)
