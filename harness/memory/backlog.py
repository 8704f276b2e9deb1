"""The curator's backlog: locates, reads and counts the waiting entries of raw.md.

Entry number `folded` begins at the byte `offset` of curated.json, which is valid while the bytes before it have the
checksum `crc`. Otherwise (an older file, or an edit of raw.md) lines are counted from the start of the file and must
match the end of the archive.
"""

from __future__ import annotations

from binascii import crc32
from collections.abc import Iterator
from itertools import islice

from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.memory.pages import CurationProgress
from harness.state import files, names, raw
from harness.state.layout import Layout
from harness.state.raw import RawEntry

CHECKED = 4096  # bytes before the offset covered by the checksum; timestamps make them unique
COPIED = 1 << 20  # bytes of a block for reading or copying without parsing
_OWN = f"] {raw.CURATOR} ".encode()


class BatchLimit(Record, frozen=True):
    """The maximum number of entries of raw.md, and of the archive, in memory during a compaction, and their bytes."""

    entries: int
    bytes: int


BOUND = BatchLimit(entries=20_000, bytes=4 * 2**20)


class Batch(Record):
    """Waiting entries that are compacted together, up to byte `end` of raw.md; unless it is the last batch, more wait
    after it. `crc` is the checksum before `end`."""

    entries: list[RawEntry]
    end: int
    is_last: bool
    crc: int = 0


def start(layout: Layout, curated: CurationProgress) -> int | None:
    """The byte of raw.md where entry number `folded` begins; None if archived lines before it are missing."""
    if curated.offset and checksum(layout.path(names.RAW), curated.offset) == curated.crc:
        return curated.offset
    found = _after(layout.path(names.RAW), curated.folded - curated.first_seq)
    return found if found is None or _are_archived(layout, curated, found) else None


def _are_archived(layout: Layout, curated: CurationProgress, end: int) -> bool:
    """Whether most lines before a byte of raw.md match the end of the archive; a person may have edited a few."""
    archived = _archived(layout, curated)
    first = before(layout.path(names.RAW), end, len(archived))
    there = [line.strip() for line in files.read_from(layout.path(names.RAW), first, end - first).split(b"\n")]
    same = sum(line.strip() == mine for line, mine in zip(archived, there, strict=False))
    return 2 * same >= len(archived)


def _archived(layout: Layout, curated: CurationProgress) -> list[bytes]:
    """The archived lines that belong to the head of raw.md; [] if the archive is broken, which its readers report."""
    count = curated.folded - curated.first_seq
    if not count:
        return []
    from harness.memory import archive  # here: only an edited file needs it

    try:
        rows = archive.newest(layout.path(names.ARCHIVE), curated.folded, count, count * raw.MAX_LINE_BYTES)
    except BrokenFile:
        return []
    return [row.entry.encode("utf-8", "replace") for row in rows]


def mended(layout: Layout, curated: CurationProgress) -> bytes:
    """The repaired content of raw.md if archived lines are missing from its head: those lines, then the present content."""
    archived = _archived(layout, curated)
    known = {line.strip() for line in archived}
    there = (files.read(layout.path(names.RAW)) or b"").split(b"\n")
    return b"\n".join([*archived, *(line for line in there if line.strip() not in known)])


def checksum(path: str, offset: int, first: int = 0) -> int:
    """The CRC-32 of the bytes from `first` to `offset`, at most the last CHECKED of them; -1 unless a line ends there."""
    size = min(offset - first, CHECKED)
    data = files.read_from(path, offset - size, size)
    return crc32(data) if len(data) == size and data.endswith(b"\n") else -1


class Window(Record):
    """The lines of `path` that a compaction keeps, in order: each as (offset, size), or as its new bytes."""

    path: str
    lines: list[tuple[int, int] | bytes]

    def size(self) -> int:
        """Size in bytes."""
        return sum(len(line) if isinstance(line, bytes) else line[1] for line in self.lines)

    def blocks(self) -> Iterator[bytes]:
        """The content, block by block, since a line may have any length."""
        for line in self.lines:
            if isinstance(line, bytes):
                yield line
                continue
            at, end = line[0], line[0] + line[1]
            while at < end:
                yield files.read_from(self.path, at, min(COPIED, end - at))
                at += COPIED

    def checksum(self) -> int:
        """The `checksum` of its end."""
        tail = b""
        for line in reversed(self.lines):
            if len(tail) >= CHECKED:
                break
            if not isinstance(line, bytes):
                size = min(CHECKED, line[1])
                line = files.read_from(self.path, line[0] + line[1] - size, size)
            tail = line + tail
        return crc32(tail[-CHECKED:])


def window(path: str, start: int, end: int, changed: dict[int, bytes]) -> Window:
    """The lines between two offsets; lines whose 0-based number is in `changed` are replaced."""
    found: list[tuple[int, int] | bytes] = []
    for number, (_, size) in enumerate(raw.lines(path, start) if start < end else ()):
        found.append(changed[number] + b"\n" if number in changed else (start, size + 1))
        start += size + 1
        if start >= end:
            break
    return Window(path=path, lines=found)


def _after(path: str, lines: int) -> int | None:
    """The offset after this many lines from the start of the file; None if it has fewer."""
    offset = 0
    if not lines:
        return offset
    for block in files.blocks(path, size=COPIED):
        found = block.count(b"\n")
        if found >= lines:
            end = -1
            for _ in range(lines):
                end = block.index(b"\n", end + 1)
            return offset + end + 1
        lines, offset = lines - found, offset + len(block)
    return None


def before(path: str, end: int, lines: int) -> int:
    """The offset of the last `lines` lines before `end`, which follows a newline; counts backwards."""
    position = end - 1 if lines else 0
    while position > 0:
        size = min(65536, position)
        position -= size
        block = files.read_from(path, position, size)
        found = len(block)
        while (found := block.rfind(b"\n", 0, found)) >= 0:
            lines -= 1
            if not lines:
                return position + found + 1
    return 0 if lines else end


def entries(layout: Layout, curated: CurationProgress) -> Iterator[RawEntry]:
    """The entries not archived yet, in order, read block by block."""
    offset = start(layout, curated)
    return iter(()) if offset is None else raw.entries(layout.path(names.RAW), curated.folded, offset)


def uncurated(layout: Layout, curated: CurationProgress, most: int) -> int:
    """The number of entries that wait for the curator, up to `most`, without the curator's own."""
    offset = start(layout, curated)
    if offset is None:
        return 0
    others = (True for line, size in raw.lines(layout.path(names.RAW), offset) if not _is_of_curator(line, size))
    return sum(1 for _ in islice(others, most))


def _is_of_curator(line: bytes, size: int) -> bool:
    return _OWN in line and raw.parse_bytes(line, size, 0).role == raw.CURATOR  # few lines are parsed


def batch(path: str, first: int, offset: int, bound: BatchLimit) -> Batch:
    """The entries from `offset` on, the first with number `first`, within the limit, but at least one if any waits."""
    found: list[RawEntry] = []
    end, room, is_last = offset, bound.bytes, True
    for line, size in raw.lines(path, offset):
        room -= len(line)
        if found and (room < 0 or len(found) == bound.entries):
            is_last = False
            break
        found.append(raw.parse_bytes(line, size, first + len(found)))
        end += size + 1
    return Batch(entries=found, end=end, is_last=is_last, crc=checksum(path, end) if found else 0)
