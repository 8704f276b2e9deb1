"""A copy matches its name, or it is reported as broken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.store import objects
from harness.store.layout import Layout
from tests.helpers import mission, put


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A mission whose folder is empty."""
    return mission(tmp_path)


@pytest.mark.parametrize("data", [b"", b"text\n", bytes(range(256))])
def test_what_was_put_comes_back_byte_for_byte(layout: Layout, data: bytes) -> None:
    """Under the SHA-256 of the bytes, in a folder of its first two digits."""
    name = objects.put(layout, data)
    assert objects.get(layout, name) == data
    assert objects.path_of(layout, name) == f"{layout.objects}/{name[:2]}/{name[2:]}"
    assert os.stat(objects.path_of(layout, name)).st_mode & 0o777 == 0o600


def test_the_same_bytes_are_kept_once(layout: Layout) -> None:
    """A second put writes nothing."""
    path = objects.path_of(layout, objects.put(layout, b"x"))
    before = os.stat(path).st_ino
    objects.put(layout, b"x")
    assert os.stat(path).st_ino == before


def test_a_missing_object_is_named(layout: Layout) -> None:
    """With the path to restore."""
    with pytest.raises(BrokenFile, match=r"objects/ab/cd: the object is missing\. Restore"):
        objects.get(layout, "abcd")


def test_a_changed_object_is_never_handed_out(layout: Layout) -> None:
    """A prompt rebuilt from it would differ."""
    name = objects.put(layout, b"x")
    put(objects.path_of(layout, name), b"y")
    with pytest.raises(BrokenFile, match="not what its name says"):
        objects.get(layout, name)
