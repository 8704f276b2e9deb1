"""mission.json and the format file: the mission's identity, and whether this version can read its folder; and the
person's SPEC.md in the project folder."""

from __future__ import annotations

import os
import re

from harness.base import encoding, schema
from harness.base.errors import RESTORE, BrokenFile, UsageFault
from harness.base.record import Record
from harness.state import files, names
from harness.state.layout import Layout, command
from harness.state.state import State

FORMAT = 2  # of the folder of a mission, on disk
ID = r"[a-z0-9-]+-[0-9a-f]{6}"
AT = "-at-"  # in a branch name, before the snapshot from which a restore began it
SPEC_CHARS = 24_000  # maximum length of SPEC.md in a prompt


class Mission(Record):
    """`id` is the slug of the folder and 6 hex digits; `branch` has the work, which began at `base_commit`."""

    id: str
    created: str
    host: str
    branch: str
    base_commit: str


def exists(layout: Layout) -> bool:
    """Whether this folder has a mission."""
    return os.path.exists(layout.path(names.FORMAT))


def check_format(layout: Layout) -> None:
    """Raise UsageFault if there is no mission, BrokenFile if it has another format."""
    text, start = State(layout).text(names.FORMAT), f"start {command()}, or: {command('init')}"
    if text is None:
        raise UsageFault(f"There is no mission in {layout.folders.project}. Write SPEC.md there and {start}")
    if text.strip() != str(FORMAT):
        remedy = f"This harness reads format {FORMAT}: use the version that wrote the folder."
        raise BrokenFile(layout.path(names.FORMAT), f"unknown format '{text.strip()[:40]}'", line=1, remedy=remedy)


def load(layout: Layout) -> Mission:
    """The mission in this folder; raises as `check_format`, and BrokenFile if mission.json is malformed."""
    check_format(layout)
    return read(layout)


def read(layout: Layout) -> Mission:
    """mission.json, also of a folder whose format is not checked."""
    value = State(layout).json(names.MISSION)
    found = schema.faults(value, "the mission", Mission)
    if found:
        fault = f"not a mission's id, created, host, branch, base_commit ({'; '.join(found)})"
        raise BrokenFile(layout.path(names.MISSION), fault, remedy=RESTORE)
    return Mission(**(value or {}))


def new_id(project: str) -> str:
    """An id for a new mission: the folder's name as a slug, a dash, 6 random hex digits."""
    slug = re.sub(r"[^a-z0-9]+", "-", os.path.basename(project).lower()).strip("-")[:40] or "mission"
    return f"{slug}-{os.urandom(3).hex()}"


def asked_spec(layout: Layout) -> bytes | None:
    """The person's SPEC.md; None if it is absent."""
    return files.read(layout.folders.asked_spec)


def asked_spec_text(layout: Layout) -> str | None:
    """The person's SPEC.md as text; None if it is absent. Raises BrokenFile if it is not UTF-8."""
    return files.read_text(layout.folders.asked_spec)


def spec_changed(layout: Layout) -> bool:
    """Whether the person's SPEC.md differs from the accepted copy; False if it is absent or empty."""
    return asks(layout, asked_spec(layout))


def asks(layout: Layout, found: bytes | None) -> bool:
    """Whether this SPEC.md has text, and another than the accepted copy, which may be as the person's editor wrote it."""
    text = encoding.plain(found or b"")
    return bool(text.strip()) and text != encoding.plain(State(layout).data(names.SPEC) or b"")
