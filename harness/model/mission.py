"""mission.json and the format file: which mission this folder is, and whether we understand what lies in it."""

from __future__ import annotations

import os
import re

from harness.base import schema
from harness.base.errors import RESTORE, BrokenFile, UsageFault
from harness.base.record import Record
from harness.store import files, migrations
from harness.store.layout import Layout, command


class Mission(Record):
    """`id` is the folder's slug and 6 hex digits; `branch` and `base_commit` say where the work stands and began."""

    id: str
    created: str
    host: str
    branch: str
    base_commit: str


def exists(layout: Layout) -> bool:
    """Whether a mission has been started in this folder."""
    return os.path.exists(layout.format)


def check_format(layout: Layout) -> None:
    """Raises UsageFault where there is no mission, BrokenFile where its format is not ours, or not yet."""
    text = files.read_text(layout.format)
    if text is None:
        raise UsageFault(
            f"There is no mission in {layout.project}. Write SPEC.md there and start run.sh, or: {command('init')}"
        )
    if migrations.is_due(layout):
        remedy = f"The next start migrates it to format {migrations.FORMAT}: start run.sh, or: {command('init')}"
        raise BrokenFile(layout.format, f"format {text.strip()} is that of an older harness", line=1, remedy=remedy)
    if text.strip() != str(migrations.FORMAT):
        remedy = (
            f"This harness reads format {migrations.FORMAT}: use the version that wrote the folder, or a newer one."
        )
        raise BrokenFile(layout.format, f"unknown format '{text.strip()[:40]}'", line=1, remedy=remedy)


def load(layout: Layout) -> Mission:
    """The mission in this folder; UsageFault where there is none, BrokenFile where it is not understood."""
    check_format(layout)
    return read(layout)


def read(layout: Layout) -> Mission:
    """mission.json, which is the same in every format so far."""
    value = files.read_json(layout.mission)
    found = schema.faults(value, "the mission", Mission)
    if found:
        fault = f"not a mission's id, created, host, branch, base_commit ({'; '.join(found)})"
        raise BrokenFile(layout.mission, fault, remedy=RESTORE)
    return Mission(**(value or {}))


def new_id(project: str) -> str:
    """An id for a new mission: the folder's name as a slug, a dash, 6 random hex digits."""
    slug = re.sub(r"[^a-z0-9]+", "-", os.path.basename(project).lower()).strip("-")[:40] or "mission"
    return f"{slug}-{os.urandom(3).hex()}"
