"""Rebuilds the lessons from archive.jsonl if `lessons.jsonl` is absent, broken, or from another state of the archive.

Each archived entry names its lesson, and each later change is a line, so notes are not compared again.
"""

from __future__ import annotations

from collections.abc import Collection

from harness.memory import archive
from harness.memory.archive import ArchiveEntry, LessonChange
from harness.memory.curation import compaction
from harness.memory.lessons import FORGOTTEN, RETIRED, Lessons
from harness.memory.pages import CurationProgress
from harness.state import raw

AFTER = {"forgotten": FORGOTTEN, "retired": RETIRED}


def lessons(path: str, curated: CurationProgress, evidence: Collection[int] = ()) -> Lessons:
    """The lessons of the archive; raises BrokenFile with the line that is neither an entry nor a change. `evidence`:
    the numbers of the entries in evidence.jsonl."""
    known, run = Lessons(), ""
    for row in archive.forwards(path) if curated.folded else ():
        if isinstance(row, ArchiveEntry):
            if row.run != run:
                known.prune()
                run = row.run
            if row.seq < curated.folded:
                _take(known, row, row.seq in evidence)
        elif isinstance(row, LessonChange):
            change(known, row)
    known.prune()
    return known


def _take(known: Lessons, row: ArchiveEntry, is_evidence: bool) -> None:
    """Add an archived entry."""
    entry = raw.parse_line(row.entry, row.seq)
    kind, note = compaction.kind_of(entry), compaction.note_of(entry)
    if not kind or (row.disposition == "dropped" and row.why == archive.DELETED):
        return
    number = row.lesson
    if number < 0:
        return
    lesson = known.all.get(number)
    if lesson is None:
        known.make_room()
        lesson = known.add(number, kind, note)
        if kind == "other":
            known.others[compaction.other_key(entry, note)] = number
    else:
        known.say(lesson, kind, note)
        known.retag(lesson, kind)
    lesson.evidenced += is_evidence
    lesson.hear(entry)


def change(known: Lessons, row: LessonChange) -> None:
    """Apply a later change to a lesson."""
    lesson, by = known.all.get(row.lesson), known.all.get(row.by)
    if lesson is None:
        return
    if row.change == "superseded" and by is not None:
        known.supersede(lesson, by)
    elif row.change == "merged" and by is not None:
        known.merge(lesson, by)
    elif row.change == "reworded":
        lesson.said = row.text
    elif row.change in AFTER:
        lesson.state = AFTER[row.change]
    elif row.change == "ranked":
        lesson.rank = float(row.why)
