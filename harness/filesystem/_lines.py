"""Reads whole lines of an open file from a given line on, in blocks; without mmap, so a concurrent truncation is harmless.

Only `\\n` ends a line. The end of the file also ends the last line: "a\\n" and "a" are both one line.
"""

from __future__ import annotations

import bisect
import os
import time

from harness.base import encoding
from harness.filesystem.protocol import FileContent

BLOCK = 256 * 1024
SKIPPED = 64 * 1024  # fits in a core's own cache
LONG_LINES = 48  # bytes per line above which deleting newlines is faster than counting them: 1.3 ms vs 3.7 ms for 10 MB
NEWLINE = 10
MAX_MARKED_FILES, MAX_MARKS = 64, 1000  # files, and marks per file
SETTLED_SECONDS = 2.0  # coarser than any filesystem's clock


class Marks:
    """Offsets of some lines in recently read files, so that paging does not count from the start. Files that changed,
    or changed so recently that another change could go unnoticed, have none."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, ...], list[tuple[int, int]]] = {}

    def before(self, found: os.stat_result, offset: int) -> tuple[int, int]:
        """(line, its offset) of the last mark at or before the line `offset`."""
        marks = self.known.get(_identity(found), [])
        at = bisect.bisect_right(marks, (offset, found.st_size))
        return marks[at - 1] if at else (0, 0)

    def add(self, found: os.stat_result, line: int, at: int) -> None:
        """Add a mark."""
        if not version(found):
            return
        marks = self.known.setdefault(_identity(found), [])
        if (line, at) not in marks[-1:] and len(marks) < MAX_MARKS:
            bisect.insort(marks, (line, at))
        if len(self.known) > MAX_MARKED_FILES:
            self.known.pop(next(iter(self.known)), None)


def version(found: os.stat_result) -> str:
    """A string that changes with the file's content; "" if it changed in the last seconds."""
    settled = time.time() - max(found.st_mtime, found.st_ctime) >= SETTLED_SECONDS
    return "-".join(map(str, _identity(found))) if settled else ""


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def part(fd: int, offset: int, limit: int, most: int, marks: Marks | None = None) -> FileContent:
    """Lines of an open file from the 0-based line `offset` on: `limit` of them, or all; at most `most` bytes, of whole
    lines where one fits."""
    found = os.fstat(fd)
    size, (line, begin) = found.st_size, marks.before(found, offset) if marks else (0, 0)
    start, skipped = _position(fd, offset, line, begin)
    if skipped < offset:  # the file has fewer lines
        return FileContent(data=b"", first=offset + 1, total_lines=skipped, size=size, version=version(found))
    data, ends = _taken(fd, start, limit, most)
    content = _content(data, ends, offset, most)
    if marks and not content.digest:
        marks.add(found, offset, start)
        if not (content.ends or content.cut):
            marks.add(found, offset + content.lines, start + len(content.data))
    content.size, content.version = max(size, start + len(content.data)), version(found)
    return content


def part_of(data: bytes, offset: int, limit: int, most: int) -> FileContent:
    """As `part`, of a content in memory, without a version."""
    start, skipped = _behind(data, offset, 0)
    if skipped < offset:
        return FileContent(data=b"", first=offset + 1, total_lines=skipped, size=len(data))
    end = _behind(data, limit, start)[0] if limit else len(data)
    content = _content(data[start:end], end == len(data), offset, most)
    content.size = len(data)
    return content


def _behind(data: bytes, count: int, at: int) -> tuple[int, int]:
    """(the position behind so many lines, or the end; how many lines there were)."""
    for number in range(count):
        if at == len(data):
            return at, number
        at = (data.find(b"\n", at) + 1) or len(data)
    return at, count


def _content(data: bytes, ends: bool, offset: int, most: int) -> FileContent:
    """Lines from the line `offset` on, cut to `most` bytes; `ends`: the last of them is the file's last."""
    if len(data) > most:
        data, ends = data[: (data.rfind(b"\n", 0, most) + 1) or most], False
    lines = data.count(b"\n") + (data[-1:] not in (b"", b"\n"))
    return FileContent(
        data=data,
        first=offset + 1,
        lines=lines,
        total_lines=offset + lines if ends else -1,
        digest=encoding.digest(data) if offset == 0 and ends else "",
        ends=ends,
        cut=not ends and not data.endswith(b"\n"),
    )


def _position(fd: int, offset: int, line: int, at: int) -> tuple[int, int]:
    """(byte position of the line `offset`, number of lines before it), fewer lines if the file is shorter. The line
    `line` begins at `at`."""
    left, last, block = offset - line, NEWLINE, bytearray(SKIPPED if offset > line else 0)
    long = False
    while left:
        size = os.preadv(fd, [block], at)  # reuse the memory: allocation costs as much as counting
        if not size:
            return at, offset - left + (last != NEWLINE)
        count = _newlines(block, size, long)
        long = count * LONG_LINES < size
        if count >= left:
            place = -1
            for _ in range(left):
                place = block.index(b"\n", place + 1)
            return at + place + 1, offset
        at, left, last = at + size, left - count, block[size - 1]
    return at, offset


def _newlines(block: bytearray, size: int, long: bool) -> int:
    """The number of newlines in the first `size` bytes. `long`: the lines are probably long."""
    return size - len(block[:size].replace(b"\n", b"")) if long else block.count(b"\n", 0, size)


def _taken(fd: int, at: int, limit: int, most: int) -> tuple[bytes, bool]:
    """(bytes from `at` on, up to `limit` lines or slightly more than `most` bytes; whether the file ends there)."""
    found, left, size = list[bytes](), limit, 0
    while block := os.pread(fd, BLOCK, at + size):
        count = block.count(b"\n") if limit else 0
        if limit and count >= left:
            place = -1
            for _ in range(left):
                place = block.index(b"\n", place + 1)
            found.append(block[: place + 1])
            size += place + 1
            return b"".join(found), not os.pread(fd, 1, at + size)
        left -= count
        found.append(block)
        size += len(block)
        if size > most:
            return b"".join(found), False
    return b"".join(found), True


def whole(fd: int, most: int) -> bytes | None:
    """All bytes of an open file; None if there are more than `most`."""
    found, size = list[bytes](), 0
    while block := os.pread(fd, BLOCK, size):
        found.append(block)
        size += len(block)
        if size > most:
            return None
    return b"".join(found)
