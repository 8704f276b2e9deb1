"""The store in one SQLite file."""

from __future__ import annotations

import resource
import sqlite3
import stat
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile, LockBusy, StoreRefusal
from harness.stores import _sqlite
from harness.stores.store import ABSENT, ANY
from harness.stores.urls import open_store
from tests import crash
from tests.stores.test_engine import check_late


def test_a_store_is_one_file_for_its_owner_that_sqlite_opens(tmp_path: Path) -> None:
    """Made by the first write alone."""
    path = tmp_path / "deep" / "store.db"
    store = open_store(f"sqlite://{path}")
    assert store.get(("k",)) is None and store.list(()) == []
    store.delete(("k",), ANY)
    assert not path.parent.exists()
    store.put(("a", "k"), b"\x00v", ABSENT)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sqlite3.connect(path).execute("select name, data from harness_entries").fetchall() == [("a/k", b"\x00v")]


def test_a_file_that_is_no_store_is_neither_absent_nor_empty(tmp_path: Path) -> None:
    """It stays as it is."""
    path = tmp_path / "notes.txt"
    path.write_bytes(b"What people wrote.\n" * 99)
    store = open_store(f"sqlite://{path}")
    for act in (lambda: store.get(("k",)), lambda: store.put(("k",), b"", ANY), lambda: store.list(())):
        with pytest.raises(BrokenFile, match=r"notes\.txt"):
            act()
    assert path.read_bytes() == b"What people wrote.\n" * 99


def test_a_full_disk_is_said_with_the_store_and_the_key_and_nothing_is_half_written(tmp_path: Path) -> None:
    """The old value stays. Here a file of the process may not be longer."""
    store = open_store(f"sqlite://{tmp_path}/store.db")
    store.put(("a", "k"), b"old", ANY)

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        with pytest.raises(StoreRefusal, match=r"store\.db/a/k: .*refuses"):
            store.put(("a", "k"), b"new" * 99999, ANY)

    assert crash.in_child(full) == 0
    known = store.get(("a", "k"))
    assert known is not None and known.data == b"old"


def test_a_writer_that_hangs_ends_the_others_in_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not wait for a stopped process for ever."""
    monkeypatch.setattr(_sqlite, "BUSY_SECONDS", 0.05)
    store = open_store(f"sqlite://{tmp_path}/store.db")
    store.put(("k",), b"", ANY)
    other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    other.execute("begin immediate")
    with pytest.raises(LockBusy, match=r"store\.db"):
        store.put(("k",), b"", ANY)
    other.execute("rollback")
    store.put(("k",), b"", ANY)


def test_a_write_that_comes_late_changes_nothing_again(tmp_path: Path) -> None:
    """As on a server, though no reply is lost here."""
    check_late(open_store(f"sqlite://{tmp_path}/store.db"))
