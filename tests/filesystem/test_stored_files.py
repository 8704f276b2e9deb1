"""Promises of harness/filesystem/stored_files.py; what files promise is in test_keyvalue.py."""

from __future__ import annotations

import pytest

from harness.base.errors import VersionConflict
from harness.filesystem import stored_files
from harness.filesystem.stored_files import FileValues, PartGone
from harness.stores.memory import MemoryStore


def test_a_write_that_loses_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the file of the one that won has all its parts."""
    monkeypatch.setattr(stored_files, "CHUNK", 4)
    store = MemoryStore()
    values = FileValues(store, ("p",))
    first = values.put(("d", "f"), b"0123456789", None)
    keys = store.list(())
    with pytest.raises(VersionConflict):
        values.put(("d", "f"), b"another, longer content", None)
    assert store.list(()) == keys
    known = values.get(("d", "f"))
    assert known is not None
    assert (values.content(("d", "f"), known), values.content(("d", "f"), known, 1, 1)) == (b"0123456789", b"4567")
    values.put(("d", "f"), b"new", first)
    with pytest.raises(PartGone):
        values.content(("d", "f"), known)
    assert len(store.list(())) == 2


def test_one_listing_says_which_files_were_written() -> None:
    """The stamp of each file is that of its head; where writers were killed only the head says it."""
    store = MemoryStore()
    values = FileValues(store, ("p",))
    made = {
        names: values.put(names, data, None) for names, data in ((("a",), b"1"), (("d", "b"), b"2"), (("d", "c"), b""))
    }
    store.put(("p", "d", "/"), b"", "")  # the marker of a folder
    assert values.stamps() == {names: one.stamp for names, one in made.items()}
    made["a",] = values.put(("a",), b"1", made["a",])
    assert values.stamps() == {names: one.stamp for names, one in made.items()}
    store.put(("p", "/a/", "1-1-0-0"), b"", "")  # of a writer that was killed before its head
    assert values.stamps()["a",] == ""
