"""A log over any store: rows that are only ever added, in an order that proves that nobody else wrote in between.

A position names the end of what a writer knows: bytes where the store keeps one growing value, else the number of segments. A
segment has the rows of one append, and is put with ABSENT, so of two writers at one position one fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from harness.stores.store import ABSENT, Key, Store, Value

DIGITS = 12  # of the number of a segment


@runtime_checkable
class Appending(Protocol):
    """What a store may offer besides: values that grow in place."""

    def append(self, key: Key, data: bytes, at: int) -> int:
        """Add whole rows behind byte `at`, durably, and return the new length. A torn row behind it is cut off; raises
        VersionConflict if whole rows are there, or the value is shorter."""

    def tail(self, key: Key, start: int) -> bytes:
        """The bytes from `start` on; empty if there are none."""

    def size(self, key: Key) -> int:
        """The length of the value in bytes; 0 if there is none."""


@runtime_checkable
class Bulk(Protocol):
    """What a store may offer besides: several values in the time of one."""

    def get_many(self, keys: Sequence[Key]) -> list[Value | None]:
        """The value of each key, None where there is none."""


class Rows(NamedTuple):
    """Whole rows of a log, each with its newline, and the position behind them; `torn`: the bytes of a row without its end."""

    data: bytes
    end: int
    torn: bytes = b""


def append(store: Store, key: Key, rows: bytes, at: int) -> int:
    """Add whole rows behind the position, durably; returns the new position. Raises VersionConflict, with nothing written, if
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
    """Whether the log goes on behind the position, or ends before it."""
    if isinstance(store, Appending):
        return store.size(key) != at
    return bool(store.list(key, _segment(key, at - 1) if at else (), 1)) or bool(at and not _has(store, key, at - 1))


def exists(store: Store, key: Key) -> bool:
    """Whether the log has any row."""
    return store.size(key) > 0 if isinstance(store, Appending) else _has(store, key, 0)


def replace(store: Store, key: Key, rows: bytes) -> int:
    """Put these rows in the place of the whole log, for who is its only writer; returns the position behind them."""
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
