"""archive.jsonl: every compacted entry by sequence number with its disposition, and later changes of lessons.

It has the entries 0 to `folded` - 1, each once and in order. It grows with the mission, so readers go backwards from
its end and stop early; `Compaction` has a bounded number of the newest rows in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.base import encoding, schema
from harness.base.errors import BrokenFile
from harness.base.passwords import MASKED
from harness.base.record import Record
from harness.memory import gates
from harness.state import files, json_lines, raw
from harness.state.raw import RawEntry

# The disposition of an entry: a new lesson in MEMORY.md, in the summary, too, or in an identity; one more occurrence of a lesson;
# replaced by a newer one; gated, or dropped, with the reason.
DISPOSITIONS = ("kept", "promoted", "graduated", "merged", "superseded", "gated", "dropped")
CHANGES = (
    "superseded",
    "forgotten",
    "left",
    "demoted",
    "merged",
    "reworded",
    "ranked",
    "retired",
    "graduated",
    "crowded",
)

if TYPE_CHECKING:  # a type for checkers; at run time the kind of a field
    Disposition = str
    What = str
else:
    Disposition = schema.one_of(DISPOSITIONS)
    What = schema.one_of(CHANGES)

DELETED = "a person deleted this lesson"  # the reason to drop an entry that repeats it
OF_ITS_OWN = "an agent: a lesson of its own"
LEAVES = "a compaction writes"
BLOCK = 1 << 20  # bytes
REPAIR = "This file is append-only and has no other copy here: repair that line, or restore it from a backup."
TOGETHER = "raw.md, archive.jsonl and curated.json belong together: restore memory/ from a backup."


class ArchiveEntry(Record):
    """One raw entry in the archive: its line, its disposition (one of DISPOSITIONS) with the reason, the section that
    shows it, the run, and its lesson (the number of the lesson's first entry, -1 for none); a later line may merge that
    lesson into another."""

    seq: int
    entry: str
    disposition: Disposition
    target: str
    run: str
    why: str = ""
    lesson: int = -1


class LessonChange(Record):
    """A later change of a lesson; `text`: its wording then; `by`: the lesson that replaced it."""

    change: What
    lesson: int
    text: str
    run: str
    why: str
    by: int = -1


def render(row: ArchiveEntry | LessonChange) -> bytes:
    """One line of the archive."""
    return encoding.dump_json(
        {name: value for name, value in row.asdict().items() if name in row.needed() or value != row.default(name)}
    )


def masked_line(entry: RawEntry, why: str) -> str:
    """The line of a gated entry: secrets are masked; of hostile text only the length is kept."""
    text = gates.masked(entry.text) if why == gates.SECRET else f"{MASKED}{why}, {len(entry.text)} characters]"
    return entry.replace(text=text).line()


def harmless(entry: RawEntry) -> RawEntry:
    """The safe form of an entry that is not compacted yet: one to be gated reads as it will in the archive."""
    why = gates.gated(entry.text)
    return raw.parse_line(masked_line(entry, why), entry.seq) if why else entry


def parse(line: bytes) -> ArchiveEntry | LessonChange:
    """Parse one line of the archive; raises ValueError, TypeError or KeyError if it is invalid."""
    row = json_lines.value(line)
    if "change" not in row:
        return schema.record(ArchiveEntry, row, LEAVES)
    change = schema.record(LessonChange, row, LEAVES)
    if change.change == "ranked" and not is_rank(change.why):
        raise schema.InvalidField(f"`why` of a rank is {change.why!r}, not a number, 0 or above")
    return change


def is_rank(text: str) -> bool:
    """Whether a text is a valid rank: a number to add to a lesson's worth."""
    whole, _, part = text.partition(".")
    return whole.isascii() and whole.isdigit() and (not part or (part.isascii() and part.isdigit())) and len(text) < 9


def forwards(path: str, start: int = 0) -> Iterator[ArchiveEntry | LessonChange]:
    """Every line of the archive, oldest first; raises BrokenFile with an invalid line."""
    for number, (line, size) in enumerate(raw.lines(path, start), 1):
        if not line.strip(b"\0 \r"):
            continue
        try:
            whole = line if size == len(line) else files.read_from(path, start, size)
            yield parse(whole)
        except (ValueError, TypeError, KeyError) as fault:
            message = str(fault) if isinstance(fault, schema.InvalidField) else "neither an entry nor a change"
            raise BrokenFile(path, message, line=number, remedy=REPAIR) from None
        finally:
            start += size + 1


def backwards(path: str, folded: int) -> Iterator[ArchiveEntry]:
    """The archived entries, newest first, read and checked lazily. Raises BrokenFile with a line that is neither an
    entry nor a change, or with the first gap in the numbers, which run from `folded` - 1 to 0."""
    seq = folded
    for row in rows_backwards(path):
        if not isinstance(row, ArchiveEntry):
            continue
        seq -= 1
        if row.seq != seq:
            wrong = f"has entry {row.seq} where entry {seq} belongs; curated.json says {folded} are archived"
            raise BrokenFile(path, wrong, remedy=TOGETHER)
        yield row
    if seq:
        raise BrokenFile(path, f"has {folded - seq} entries; curated.json says {folded}", remedy=TOGETHER)


def rows_backwards(path: str) -> Iterator[ArchiveEntry | LessonChange]:
    """Every line of the archive, newest first, read lazily. Raises BrokenFile with an invalid line."""
    for offset, line in json_lines.backwards(path, BLOCK):
        if not line.strip(b"\0 \r"):
            continue
        try:
            yield parse(line)
        except (ValueError, TypeError, KeyError) as fault:
            message = str(fault) if isinstance(fault, schema.InvalidField) else "neither an entry nor a change"
            raise BrokenFile(path, message, line=json_lines.number(path, offset), remedy=REPAIR) from None


def newest(path: str, folded: int, entries: int, room: int) -> list[ArchiveEntry]:
    """The newest entries in order: at most `entries`, with at most about `room` bytes of lines. Raises BrokenFile as
    `backwards` does."""
    found: list[ArchiveEntry] = []
    for row in backwards(path, folded):
        found.append(row)
        room -= len(row.entry)
        if len(found) == entries or room < 0:
            break
    return found[::-1]
