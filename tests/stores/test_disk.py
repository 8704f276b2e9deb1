"""The store on disk: plain files that people read and edit."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile, VersionConflict
from harness.stores.disk import DiskStore
from harness.stores.store import ABSENT, ANY


def test_a_value_is_a_plain_file_at_its_names(tmp_path: Path) -> None:
    """For its owner alone, with nothing beside it."""
    DiskStore(str(tmp_path)).put(("alice", "s", "state.json"), b"{}", ABSENT)
    path = tmp_path / "alice/s/state.json"
    assert path.read_bytes() == b"{}" and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["state.json"]


def test_an_edit_by_a_person_is_another_version(tmp_path: Path) -> None:
    """Also one that leaves the size as it was."""
    store = DiskStore(str(tmp_path))
    version = store.put(("page.md",), b"one", ABSENT)
    (tmp_path / "page.md").write_bytes(b"two")
    with pytest.raises(VersionConflict):
        store.put(("page.md",), b"three", version)
    known = store.get(("page.md",))
    assert known is not None and known.data == b"two"
    store.put(("page.md",), b"three", known.version)


def test_what_is_no_file_is_neither_absent_nor_empty(tmp_path: Path) -> None:
    """A folder in the place of a value."""
    (tmp_path / "k").mkdir()
    with pytest.raises(BrokenFile):
        DiskStore(str(tmp_path)).get(("k",))
    assert DiskStore(str(tmp_path)).get(("k", "below")) is None


def test_a_leftover_of_a_killed_write_is_no_key(tmp_path: Path) -> None:
    """It has the name of a temporary file."""
    store = DiskStore(str(tmp_path))
    store.put(("k",), b"", ANY)
    (tmp_path / "k.123.tmp").write_bytes(b"half")
    assert store.list(()) == [("k",)]


def test_a_torn_row_behind_the_known_end_is_cut_off_and_a_whole_one_is_a_conflict(tmp_path: Path) -> None:
    """The first is a crash's, the second another writer's."""
    store, path = DiskStore(str(tmp_path)), tmp_path / "log.jsonl"
    end = store.append(("log.jsonl",), b"1\n2\n", 0)
    with path.open("ab") as file:
        file.write(b"tor")
    end = store.append(("log.jsonl",), b"3\n", end)
    assert path.read_bytes() == b"1\n2\n3\n" and end == 6
    for wrong in (4, 8):
        with pytest.raises(VersionConflict):
            store.append(("log.jsonl",), b"4\n", wrong)
    assert path.read_bytes() == b"1\n2\n3\n"
