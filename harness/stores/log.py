"""A log over any store: rows are only added, and an append fails if another writer was there first.

A position is the end of what a writer knows: bytes if the store keeps one growing value, otherwise the number of segments. A
segment has the rows of one append and is put with ABSENT, so one of two writers at the same position fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from harness.stores.store import ABSENT, Key, Store, Value

DIGITS = 12  # of the number of a segment


@runtime_checkable
class Appending(Protocol):
    """An optional ability of a store: values that grow in place."""

    def append(self, key: Key, data: bytes, at: int) -> int:
        """Add whole rows at byte `at`, durably, and return the new length. Cuts a torn row there off; raises VersionConflict if
        whole rows are there, or the value is shorter."""

    def tail(self, key: Key, start: int) -> bytes:
        """The bytes from `start` on; empty if there are none."""

    def size(self, key: Key) -> int:
        """The length of the value in bytes; 0 if there is none."""


@runtime_checkable
class Bulk(Protocol):
    """An optional ability of a store: several values in one round trip."""

    def get_many(self, keys: Sequence[Key]) -> list[Value | None]:
        """The value of each key, None for each absent one."""


class Rows(NamedTuple):
    """Whole rows of a log with their newlines. `end`: the position after them; `torn`: the bytes of an incomplete row."""

    data: bytes
    end: int
    torn: bytes = b""


def append(store: Store, key: Key, rows: bytes, at: int) -> int:
    """Add whole rows at the position, durably; returns the new position. Raises VersionConflict, with nothing written, if
    another writer was there first."""
    if isinstance(store, Appending):
        return store.append(key, rows, at)
    store.put(_segment(key, at), rows, ABSENT)
    return at + 1


def read(store: Store, key: Key, start: int = 0) -> Rows:
    """The rows from a position on."""
    if isinstance(store, Appending):
        data = store.tail(key, start)
        whole = data.rfind(b"\n") + 1
        return Rows(data[:whole], start + whole, data[whole:])
    segments = store.list(key, _segment(key, start - 1) if start else ())
    values = store.get_many(segments) if isinstance(store, Bulk) else [store.get(one) for one in segments]
    return Rows(b"".join(one.data for one in values if one is not None), start + len(segments))


def has_more(store: Store, key: Key, at: int) -> bool:
    """Whether the log does not end at the position."""
    if isinstance(store, Appending):
        return store.size(key) != at
    return bool(store.list(key, _segment(key, at - 1) if at else (), 1)) or bool(at and not _has(store, key, at - 1))


def exists(store: Store, key: Key) -> bool:
    """Whether the log has any row."""
    return store.size(key) > 0 if isinstance(store, Appending) else _has(store, key, 0)


def replace(store: Store, key: Key, rows: bytes) -> int:
    """Replace the whole log by these rows; returns the position after them. Only for the single writer of the log."""
    if isinstance(store, Appending):
        known = store.get(key)
        store.put(key, rows, known.version if known else ABSENT)
        return len(rows)
    segments = store.list(key)
    first = store.get(_segment(key, 0))
    store.put(_segment(key, 0), rows, first.version if first else ABSENT)
    for one in reversed(segments[1:]):
        if (known := store.get(one)) is not None:
            store.delete(one, known.version)
    return 1


def _has(store: Store, key: Key, number: int) -> bool:
    return store.get(_segment(key, number)) is not None


def _segment(key: Key, number: int) -> Key:
    return (*key, f"{number:0{DIGITS}d}")
