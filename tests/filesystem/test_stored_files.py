"""Promises of harness/filesystem/_stored_files.py; what files promise is in test_keyvalue.py."""

from __future__ import annotations

import pytest

from harness.base.errors import VersionConflict
from harness.filesystem import _stored_files
from harness.filesystem._stored_files import FileValues, PartGone
from harness.stores.memory import MemoryStore


def test_a_write_that_loses_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the file of the one that won has all its parts."""
    monkeypatch.setattr(_stored_files, "CHUNK", 4)
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
