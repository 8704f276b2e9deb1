"""How the memory of a mission grew, curation by curation, from the archive."""

from __future__ import annotations

from harness.base.errors import HarnessError
from harness.base.record import Record
from harness.memory import archive
from harness.memory.archive import ArchiveEntry, LessonChange
from harness.state import names
from harness.state.layout import Layout

STAYS = ("kept", "promoted")  # a new lesson on the pages
GONE = ("superseded", "forgotten", "left", "merged", "retired")


class MemoryGrowth(Record):
    """The memory after a curation that ended at `at`, in seconds: notes taken in so far, lessons on its pages, lessons that
    went to identities."""

    run: str
    at: float
    notes: int
    lessons: int
    graduated: int


def measure(layout: Layout, ends: dict[str, float]) -> tuple[list[MemoryGrowth], str]:
    """Return the memory after each curation of the archive that has an end in `ends`, oldest first, and "" or why the rest of
    the archive cannot be read."""
    found: dict[str, MemoryGrowth] = {}
    notes = lessons = graduated = 0
    try:
        for row in archive.forwards(layout.path(names.ARCHIVE)):
            if isinstance(row, ArchiveEntry):
                notes += 1
                lessons += row.disposition in STAYS
                graduated += row.disposition == "graduated"
            elif isinstance(row, LessonChange):
                lessons -= row.change in GONE
                graduated += row.change == "graduated"
            if at := ends.get(row.run, 0):
                found[row.run] = MemoryGrowth(run=row.run, at=at, notes=notes, lessons=lessons, graduated=graduated)
    except (HarnessError, OSError) as fault:
        return list(found.values()), str(fault)
    return list(found.values()), ""
