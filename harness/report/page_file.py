"""Writes the page of a mission to a file atomically."""

from __future__ import annotations

import os

from harness.base.errors import UsageFault
from harness.base.record import Record
from harness.mission import run_lookup
from harness.report import _facts, _page
from harness.state import files, names
from harness.state.layout import Layout, command
from harness.workplace import run_detection

BEGINS = b"<!DOCTYPE html>"


class PageFile(Record):
    """The page: its path, its size in bytes, the number of runs on it, and the unreadable parts."""

    path: str
    size: int
    runs: int
    faults: list[str]


def write(layout: Layout, of: str, target: str) -> PageFile:
    """Write the page of the mission, or of the archived mission `of`, to `target`, by default report.html in the folder of its
    state. Raises UsageFault if that mission does not exist, or `target` exists and is not a page."""
    wanted = run_lookup.named(layout, of)
    path = os.path.abspath(target) if target else wanted.path(names.REPORT)
    if not target:
        run_detection.refuse(layout, "report")
    _require_room(layout, path, wanted.path(names.REPORT))
    found = _facts.gather(wanted)
    data = _page.render(found)
    files.replace(path, data)
    return PageFile(path=path, size=len(data), runs=len(found.runs), faults=found.faults)


def _require_room(layout: Layout, path: str, default: str) -> None:
    """Raise UsageFault if the target is not a page, or is within the mission's state."""
    if path != default and os.path.realpath(path).startswith(os.path.realpath(layout.state) + "/"):
        raise UsageFault(f"{path} is in the state of the mission. Choose another file: {command('report')} --to FILE")
    if os.path.isdir(path) or not os.path.isdir(os.path.dirname(path)):
        what = f"{path} is a folder" if os.path.isdir(path) else f"There is no folder {os.path.dirname(path)}"
        raise UsageFault(f"{what}. Choose a file: {command('report')} --to FILE")
    if os.path.lexists(path) and files.read_from(path, 0, len(BEGINS)) != BEGINS:
        raise UsageFault(f"{path} exists and is not a report of the harness. Choose another file, or remove it.")
