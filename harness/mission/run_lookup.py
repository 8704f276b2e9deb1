"""Finds missions of a folder, archived ones too, and past runs in them."""

from __future__ import annotations

from collections.abc import Iterator

from harness.base import encoding, schema
from harness.base.errors import UsageFault
from harness.mission import mission, runs
from harness.state import json_lines, names
from harness.state.layout import Layout, command
from harness.state.state import State


def missions(layout: Layout) -> list[Layout]:
    """The mission and its archived missions."""
    state = State(layout)
    archived = [layout.archive_of(name) for name in state.list(names.ARCHIVED)]
    found = [Layout(layout.folders.project, path) for path in archived]
    return [layout, *(one for one in found if mission.exists(one))]


def within(layout: Layout, name: str) -> tuple[Layout, str]:
    """(mission, rest of the name) of `MISSION` or `MISSION/REST`; any other name is one in the folder's mission."""
    above, _, rest = name.partition("/")
    archived = Layout(layout.folders.project, layout.archive_of(above))
    if schema.is_name(above) and mission.exists(archived):
        return archived, rest
    mission.check_format(layout)
    return (layout, rest) if above == mission.read(layout).id else (layout, name)


def named(layout: Layout, name: str) -> Layout:
    """The mission with this id, archived or not; without a name, the folder's. Raises UsageFault for an unknown id."""
    where, rest = within(layout, name)
    if rest:
        known = ", ".join(mission.read(one).id for one in missions(layout))
        raise UsageFault(f"There is no mission '{name}' here. There are: {known}.")
    return where


def find(layout: Layout, name: str, *, forgotten: bool = False) -> tuple[Layout, str]:
    """(mission with the run, run id). `name` is an id, or `MISSION/RUN` for a run of an archived mission. Raises UsageFault
    if there is no such run, if several archived missions have one, or, unless `forgotten`, if a person removed it."""
    mission.check_format(layout)
    above, _, run_id = name.rpartition("/")
    found = [one for one in missions(layout) if _has(one, run_id) and above in ("", mission.read(one).id)]
    if len(found) > 1 and found[0] is not layout:
        which = " or ".join(f"{mission.read(one).id}/{run_id}" for one in found)
        raise UsageFault(f"Several archived missions have a run '{run_id}'. Name one: {which}")
    if not found:
        raise UsageFault(f"There is no run '{name}'. See: {command('runs list')}")
    mission.check_format(found[0])
    gone = None if forgotten else runs.forgotten(found[0]).get(run_id)
    if gone:
        raise UsageFault(f"The run {name} was {gone.words}. What is left: {command('runs show')} {name}")
    return found[0], run_id


def _has(layout: Layout, run_id: str) -> bool:
    return runs.is_id(run_id) and State(layout).exists(f"{names.RUNS}/{run_id}")


def title(layout: Layout, run_id: str) -> str:
    """The name of the run for `find`; for an archived mission with the mission's id."""
    return f"{mission.read(layout).id}/{run_id}" if layout.state != Layout(layout.folders.project).state else run_id


def before(layout: Layout, run_id: str, role: str) -> Iterator[str]:
    """The ids of a role's finished runs before this run, newest first, without forgotten ones. Parses only candidate
    lines."""
    own, same = (f'"{key}":{encoding.compact(text)}'.encode() for key, text in (("run", run_id), ("role", role)))
    passed, gone = not State(layout).exists(names.of_run(run_id, names.RESULT)), runs.forgotten(layout)
    for start, line in json_lines.backwards(layout.path(names.RUN_LOG)):
        if passed and same in line:
            found, fault = runs.parse(line)
            if found is None:
                raise runs.misread(layout, start, fault)
            if found.role == role and found.run not in gone:
                yield found.run
        passed = passed or own in line
