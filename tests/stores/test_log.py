"""A log over each store."""

from __future__ import annotations

import pytest

from harness.base.errors import VersionConflict
from harness.stores import log
from harness.stores.store import Store
from tests.crash import TORTURE
from tests.stores.servers import together

KEY = ("s", "log.jsonl")
WRITERS, ROWS = (4, 20) if TORTURE else (3, 8)


def test_rows_are_read_in_the_order_in_which_they_were_added(store: Store) -> None:
    """All of them, or those from a position on."""
    assert log.read(store, KEY) == (b"", 0, b"") and not log.exists(store, KEY)
    first = log.append(store, KEY, b"1\n2\n", 0)
    second = log.append(store, KEY, b"3\n", first)
    assert log.read(store, KEY) == (b"1\n2\n3\n", second, b"")
    assert log.read(store, KEY, first) == (b"3\n", second, b"") and log.exists(store, KEY)
    assert log.has_more(store, KEY, first) and not log.has_more(store, KEY, second)


def test_of_two_writers_at_one_position_one_fails(store: Store) -> None:
    """With nothing of it written."""
    end = log.append(store, KEY, b"1\n", 0)
    log.append(store, KEY, b"2\n", end)
    with pytest.raises(VersionConflict):
        log.append(store, KEY, b"other\n", end)
    assert log.read(store, KEY).data == b"1\n2\n"


def test_of_writers_at_once_each_position_has_one(store: Store) -> None:
    """Whoever fails reads where the log ends now."""

    def write(name: int) -> None:
        at, left = 0, ROWS
        while left:
            try:
                at = log.append(store, KEY, b"%d\n" % name, at)
                left -= 1
            except VersionConflict:
                at = log.read(store, KEY).end

    together(write, WRITERS)
    rows = log.read(store, KEY).data.split()
    assert len(rows) == WRITERS * ROWS and {rows.count(b"%d" % name) for name in range(WRITERS)} == {ROWS}


def test_a_log_can_be_replaced_whole(store: Store) -> None:
    """As a repair does."""
    end = 0
    for number in range(5):
        end = log.append(store, KEY, b"%d\n" % number, end)
    log.replace(store, KEY, b"new\n")
    rows = log.read(store, KEY)
    assert rows.data == b"new\n"
    log.append(store, KEY, b"more\n", rows.end)
    assert log.read(store, KEY).data == b"new\nmore\n"
