"""Bounds the output of a command: keeps its beginning and end, and the latest output in a ring buffer file."""

from __future__ import annotations

import json
import os
import struct
from typing import Any

from harness.base import encoding

HEAD = struct.Struct("<QQQ")  # bytes of output so far; end of the write in progress; bytes of the final record or 0
HEAD_BYTES = 8192  # the three numbers, and the final record as JSON
RING = 32 * 1024 * 1024
TRIES = 1000


class Ends:
    """The first and last bytes of a stream, at most `most` in all; `lost` counts the bytes between."""

    def __init__(self, most: int) -> None:
        self.most_head, self.most_tail = most // 2, most - most // 2
        self.head, self.tail, self.size = bytearray(), bytearray(), 0

    def add(self, data: bytes) -> None:
        """More output."""
        self.size += len(data)
        room = self.most_head - len(self.head)
        self.head += data[:room]
        self.tail += data[room:]
        if len(self.tail) > 2 * self.most_tail + 65536:
            del self.tail[: len(self.tail) - self.most_tail]

    @property
    def lost(self) -> int:
        """Number of omitted bytes."""
        return max(0, self.size - self.most_head - self.most_tail)

    def text(self) -> bytes:
        """The kept bytes, with a line between the two parts that states how many bytes are omitted."""
        tail = self.tail[max(0, len(self.tail) - self.most_tail) :]
        if not self.lost:
            return bytes(self.head + tail)
        return bytes(self.head) + b"\n[... %d bytes left out ...]\n" % self.lost + bytes(tail)


class Spool:
    """An unnamed file that one process writes and others read: the last RING bytes, the total, and the final record."""

    def __init__(self, fd: int, ring: int = RING) -> None:
        self.fd, self.ring, self.size = fd, ring, 0

    def add(self, data: bytes) -> None:
        """More output."""
        os.pwrite(self.fd, HEAD.pack(self.size, self.size + len(data), 0), 0)
        at = self.size + max(0, len(data) - self.ring)
        rest = memoryview(data)[-self.ring :]
        while rest:
            place = at % self.ring
            count = os.pwrite(self.fd, rest[: self.ring - place], HEAD_BYTES + place)
            at, rest = at + count, rest[count:]
        self.size += len(data)
        os.pwrite(self.fd, HEAD.pack(self.size, self.size, 0), 0)

    def end(self, words: dict[str, Any]) -> None:
        """Write the final record; nothing is added after it."""
        text = encoding.compact(words, ascii_only=True).encode()
        os.pwrite(self.fd, text, HEAD.size)
        os.pwrite(self.fd, HEAD.pack(self.size, self.size, len(text)), 0)

    def look(self) -> tuple[int, dict[str, Any] | None]:
        """(bytes of output so far, the final record or None)."""
        size, _, count = self._head()
        return size, json.loads(os.pread(self.fd, count, HEAD.size)) if count else None

    def _head(self) -> tuple[int, ...]:
        found = os.pread(self.fd, HEAD.size, 0)
        return HEAD.unpack(found) if len(found) == HEAD.size else (0, 0, 0)

    def read(self, offset: int, most: int) -> tuple[int, bytes, int]:
        """(offset of the data, data, bytes of output so far): from `offset` on, or from the first byte still kept."""
        for _ in range(TRIES):
            size, claimed, _ = self._head()
            begin = min(max(offset if offset >= 0 else size + offset, claimed - self.ring, 0), size)
            data = self._taken(begin, min(most, size - begin))
            if self._head()[1] - self.ring <= begin:  # not overwritten meanwhile
                return begin, data, size
        return size, b"", size  # the command writes faster than this reads

    def _taken(self, begin: int, count: int) -> bytes:
        place = begin % self.ring
        data = os.pread(self.fd, min(count, self.ring - place), HEAD_BYTES + place)
        return data + (os.pread(self.fd, count - len(data), HEAD_BYTES) if len(data) < count else b"")
