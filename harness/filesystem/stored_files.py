"""How a store keeps a file: a head under the names of its path, and parts beside it.

The head contains up to CHUNK bytes; larger content is in the parts, which are written before the head and removed after it. The
keys of the parts have time and size, so a listing reads only keys. Parts that no head names come from a killed writer.
"""

from __future__ import annotations

import json
import os
import time
from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate

from harness.base import encoding
from harness.base.errors import BrokenFile, VersionConflict
from harness.base.record import Record
from harness.filesystem import _lines
from harness.filesystem.protocol import FileContent, FileEntry
from harness.stores.store import ABSENT, ANY, Key, Store

CHUNK = 1024 * 1024  # bytes
SIGN = "/"  # begins names that no file has: of the marker of a folder, and of the parts of a file


class StoredFile(Record):
    """The head of a file. `stamp`: unix nanoseconds of the write, size in bytes, and a random number; `lines`: newlines in each
    part; `data`: the content, None if it is in parts."""

    stamp: str
    digest: str
    lines: list[int]
    data: bytes | None
    version: str = ""

    @property
    def size(self) -> int:
        """The size of the content in bytes."""
        return int(self.stamp.split("-")[1])


class PartGone(Exception):
    """A part was removed, because the file was replaced or deleted meanwhile."""


class FileValues:
    """The files below a prefix of a store, by the names of their paths."""

    def __init__(self, store: Store, prefix: Key) -> None:
        self.store, self.prefix = store, prefix

    def get(self, names: Key) -> StoredFile | None:
        """The head of a file; None if there is none. Raises BrokenFile."""
        found = self.store.get(self.prefix + names) if names and names[-1] != SIGN else None
        if found is None:
            return None
        head, _, data = found.data.partition(b"\n")
        try:
            values = json.loads(head)
            inline = None if values["lines"] else data
            return StoredFile(**values, data=inline, version=found.version)
        except (ValueError, TypeError, KeyError):
            raise BrokenFile(self.store.describe(self.prefix + names), "it is not a value of a file") from None

    def put(self, names: Key, data: bytes, known: StoredFile | None, nanoseconds: int = 0) -> StoredFile:
        """Replace the known file, None for no file. Raises VersionConflict, with nothing changed."""
        stamp = f"{nanoseconds or time.time_ns()}-{len(data)}-{os.urandom(6).hex()}"
        parts = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)] if len(data) > CHUNK else []
        lines = [one.count(b"\n") for one in parts]
        made = StoredFile(stamp=stamp, digest=encoding.digest(data), lines=lines, data=data)
        head = json.dumps({name: getattr(made, name) for name in ("stamp", "digest", "lines")}).encode() + b"\n"
        try:
            for key, part in zip(self._parts(names, made), parts or [b""], strict=True):
                self.store.put(key, part, ANY)
            inline, expect = b"" if parts else data, known.version if known else ABSENT
            version = self.store.put(self.prefix + names, head + inline, expect)
        except VersionConflict:
            self._remove(names, made)
            raise
        if known:
            self._remove(names, known)
        return made.replace(version=version)

    def delete(self, names: Key, known: StoredFile) -> None:
        """Remove a file. Raises VersionConflict if it has changed."""
        self.store.delete(self.prefix + names, known.version)
        self._remove(names, known)

    def _parts(self, names: Key, known: StoredFile) -> list[Key]:
        return [
            (*self.prefix, *parts_of(names), f"{known.stamp}-{number}") for number in range(max(1, len(known.lines)))
        ]

    def _remove(self, names: Key, known: StoredFile) -> None:
        for key in self._parts(names, known):
            self.store.delete(key, ANY)

    def content(self, names: Key, known: StoredFile, first: int = 0, last: int = -1) -> bytes:
        """The content, or these parts of it. Raises PartGone."""
        if known.data is not None:
            return known.data
        keys = self._parts(names, known)
        found = [self.store.get(key) for key in keys[first : last % len(keys) + 1]]
        if None in found:
            raise PartGone
        return b"".join(one.data for one in found if one)

    def lines(self, names: Key, known: StoredFile, offset: int, limit: int, most: int) -> FileContent:
        """As `_lines.part_of`; reads only the parts with these lines. Raises PartGone."""
        if known.data is not None:
            return _lines.part_of(known.data, offset, limit, most).replace(version=known.version)
        begins, end = [0, *accumulate(known.lines)], len(known.lines) - 1
        first = min(end, max(0, bisect_left(begins, offset) - 1))
        last = min(end, first + 1 + most // CHUNK, bisect_left(begins, offset + limit) - 1 if limit else end)
        data = self.content(names, known, first, last)
        found = _lines.part_of(data, offset - begins[first], limit, most)
        ends = found.ends and last == end
        return found.replace(
            first=offset + 1,
            total_lines=found.total_lines + begins[first] if ends else -1,
            size=known.size,
            digest=known.digest if ends and not offset else "",
            version=known.version,
            ends=ends,
        )

    def keys(self, names: Key) -> list[Key]:
        """The keys below a folder, from the root on, including those of parts."""
        return [key[len(self.prefix) :] for key in self.store.list(self.prefix + names)]

    def stamps(self) -> dict[Key, str]:
        """{names of a file: stamp of its last write} for all files, from one listing; "" if only the head has it."""
        keys = self.keys(())
        known = _stamps(keys)
        return {names: known.get(names, "") for names in heads(keys) if names[-1] != SIGN}

    def tree(self, names: Key) -> dict[Key, dict[str, FileEntry | None]]:
        """{folder: {name: entry}} of everything below a folder; the entry is None if only the head has it."""
        keys, tree = self.keys(names), dict[Key, dict[str, FileEntry | None]]()
        for key in keys:
            signs = [at for at, name in enumerate(key) if name.startswith(SIGN)]
            end = signs[0] if signs else len(key)
            for at in range(len(names), end):
                is_file = at == len(key) - 1
                path = "/".join(key[: at + 1])
                tree.setdefault(key[:at], {})[key[at]] = None if is_file else FileEntry(path=path, kind="folder")
        for file, stamp in _stamps(keys).items():
            if stamp and file[-1] in tree.get(file[:-1], {}):
                tree[file[:-1]][file[-1]] = entry("/".join(file), stamp)
        return tree


def _stamps(keys: Iterable[Key]) -> dict[Key, str]:
    """{names of a file: stamp of its parts}; "" if there are parts of several writes."""
    found = dict[Key, set[str]]()
    for key in keys:
        if len(key) > 1 and key[-2].startswith(SIGN) and key[-2] != SIGN:
            found.setdefault((*key[:-2], key[-2].strip(SIGN)), set()).add(key[-1].rpartition("-")[0])
    return {file: stamps.pop() if len(stamps) == 1 else "" for file, stamps in found.items()}


def parts_of(names: Key) -> Key:
    """The prefix of the keys of the parts of a file."""
    return (*names[:-1], SIGN + names[-1] + SIGN)


def entry(path: str, stamp: str) -> FileEntry:
    """The entry of a file that was written with this stamp."""
    nanoseconds, size, _ = stamp.split("-")
    return FileEntry(path=path, kind="file", size=int(size), changed=int(nanoseconds) / 1e9)


def heads(keys: Iterable[Key]) -> list[Key]:
    """The keys that are not parts: of files, and of markers of folders."""
    return [key for key in keys if not any(name.startswith(SIGN) and name != SIGN for name in key)]
