"""Reads whole lines of an open file from a given line on, in blocks; without mmap, so a concurrent truncation is harmless.

Only `\\n` ends a line. The end of the file also ends the last line: "a\\n" and "a" are both one line.
"""

from __future__ import annotations

import os
import time

from harness.base import encoding
from harness.filesystem.protocol import FileContent

BLOCK = 256 * 1024
SKIPPED = 64 * 1024  # fits in a core's own cache
NEWLINE = 10
SETTLED_SECONDS = 2.0  # coarser than any filesystem's clock


def version(found: os.stat_result) -> str:
    """A string that changes with the file's content; "" if it changed in the last seconds."""
    settled = time.time() - max(found.st_mtime, found.st_ctime) >= SETTLED_SECONDS
    identity = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    return "-".join(map(str, identity)) if settled else ""


def part(fd: int, offset: int, limit: int, most: int) -> FileContent:
    """Lines of an open file from the 0-based line `offset` on: `limit` of them, or all; at most `most` bytes, of whole
    lines where one fits."""
    found = os.fstat(fd)
    size = found.st_size
    start, skipped = _position(fd, offset)
    if skipped < offset:  # the file has fewer lines
        return FileContent(data=b"", first=offset + 1, total_lines=skipped, size=size, version=version(found))
    data, ends = _taken(fd, start, limit, most)
    content = _content(data, ends, offset, most)
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


def _behind(data: bytes | bytearray, count: int, at: int) -> tuple[int, int]:
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


def _position(fd: int, offset: int) -> tuple[int, int]:
    """(byte position of the line `offset`, number of lines before it), fewer lines if the file is shorter."""
    at, left, last, block = 0, offset, NEWLINE, bytearray(SKIPPED if offset else 0)
    while left:
        size = os.preadv(fd, [block], at)  # reuse the memory: allocation costs as much as counting
        if not size:
            return at, offset - left + (last != NEWLINE)
        count = block.count(b"\n", 0, size)
        if count >= left:
            return at + _behind(block, left, 0)[0], offset
        at, left, last = at + size, left - count, block[size - 1]
    return at, offset


def _taken(fd: int, at: int, limit: int, most: int) -> tuple[bytes, bool]:
    """(bytes from `at` on, up to `limit` lines or slightly more than `most` bytes; whether the file ends there)."""
    found, left, size = list[bytes](), limit, 0
    while block := os.pread(fd, BLOCK, at + size):
        count = block.count(b"\n") if limit else 0
        if limit and count >= left:
            found.append(block[: _behind(block, left, 0)[0]])
            size += len(found[-1])
            return b"".join(found), not os.pread(fd, 1, at + size)
        left -= count
        found.append(block)
        size += len(block)
        if size > most:
            return b"".join(found), False
    return b"".join(found), True


def whole(fd: int, most: int) -> bytes | None:
    """All bytes of an open file; None if there are more than `most`."""
    data, ends = _taken(fd, 0, 0, most)
    return data if ends else None
