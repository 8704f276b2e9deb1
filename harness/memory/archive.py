"""archive.jsonl: every compacted entry by sequence number with its disposition, and items that left their place later.

It has the entries 0 to `folded` - 1, each once and in order. It grows with the mission, so readers go backwards from its end
and stop where they know enough; `Compaction` has the newest rows in memory, up to a bound.
"""

from __future__ import annotations

from harness.base import encoding, schema
from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.memory.raw import CURATOR
from harness.store import files, json_lines

# The disposition of an entry: a new item, one more occurrence of an item, replaced by newer words in the same compaction,
# no room on the page (only the archive has it), the curator's own entry, a line that is no entry.
DISPOSITIONS = ("item", "merged", "superseded", "no_room", CURATOR, "malformed")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Disposition = str
else:
    Disposition = schema.one_of(DISPOSITIONS)

LEAVES = "a compaction writes"
BLOCK = 1 << 20  # bytes
REPAIR = (
    "This file is append-only, and there is no other copy of it here: repair that line, or restore it from a backup."
)
TOGETHER = "raw.md, archive.jsonl and curated.json belong together: restore memory/ from a backup."


class Archived(Record):
    """One raw entry in the archive: its line, its disposition (one of DISPOSITIONS), the target, and the run."""

    seq: int
    entry: str
    disposition: Disposition
    target: str
    run: str


class Move(Record):
    """An item that left its place after it was archived; `origin` is written as `from`."""

    moved: str
    origin: str
    to: str
    run: str
    why: str


def render_archived(entry: Archived) -> bytes:
    """One line of the archive."""
    return encoding.dump_json(entry.asdict())


def render_move(move: Move) -> bytes:
    """One line of the archive for an item that left its place."""
    return encoding.dump_json({("from" if key == "origin" else key): value for key, value in move.asdict().items()})


def parse(line: bytes) -> Archived | Move:
    """One line of the archive; raises ValueError, TypeError or KeyError where it is none."""
    row = json_lines.value(line)
    if "moved" in row:
        return schema.record(Move, {("origin" if key == "from" else key): row[key] for key in row}, LEAVES)
    return schema.record(Archived, row, LEAVES)


def backwards(path: str, folded: int) -> Iterator[Archived]:
    """The archived entries, newest first, each read and checked when it is asked for. Raises BrokenFile with the line that is
    neither an entry nor a move, or with the first number that is not the one before: entries are `folded` - 1 to 0."""
    seq = folded
    for offset, line in json_lines.backwards(path, BLOCK):
        if not line.strip(b"\0 \r"):
            continue
        try:
            row = parse(line)
        except (ValueError, TypeError, KeyError) as fault:
            message = str(fault) if isinstance(fault, schema.InvalidField) else "neither an entry nor a move"
            raise BrokenFile(path, message, line=_number(path, offset), remedy=REPAIR) from None
        if isinstance(row, Move):
            continue
        seq -= 1
        if row.seq != seq:
            wrong = f"has entry {row.seq} where entry {seq} belongs; curated.json says {folded} are archived"
            raise BrokenFile(path, wrong, remedy=TOGETHER)
        yield row
    if seq:
        raise BrokenFile(path, f"has {folded - seq} entries; curated.json says {folded}", remedy=TOGETHER)


def _number(path: str, offset: int) -> int:
    """The number of the line at a byte."""
    before, number = 0, 1
    for block in files.blocks(path, size=BLOCK):
        number += block[: max(0, offset - before)].count(b"\n")
        before += len(block)
        if before >= offset:
            break
    return number


def newest(path: str, folded: int, entries: int, room: int) -> list[Archived]:
    """The newest entries in order: at most so many, and no more once their lines come to `room` bytes. Raises BrokenFile as
    `backwards` does."""
    found: list[Archived] = []
    for row in backwards(path, folded):
        found.append(row)
        room -= len(row.entry)
        if len(found) == entries or room < 0:
            break
    return found[::-1]
