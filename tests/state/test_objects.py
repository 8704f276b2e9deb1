"""A copy matches its name, or it is reported as broken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.state import files, names, objects
from harness.state.layout import Layout
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
    assert objects.path_of(layout, name) == f"{layout.path(names.OBJECTS)}/{name[:2]}/{name[2:]}"
    assert os.stat(objects.path_of(layout, name)).st_mode & 0o777 == 0o444


def test_the_same_bytes_are_kept_once(layout: Layout) -> None:
    """A second put writes nothing."""
    path = objects.path_of(layout, objects.put(layout, b"x"))
    before = os.stat(path).st_ino
    objects.put(layout, b"x")
    assert os.stat(path).st_ino == before


def test_what_a_ledger_names_is_kept_as_it_is_on_disk(layout: Layout) -> None:
    """Managed files without an object get one; lengths of append-only files, and files that are gone, do not."""
    files.replace(layout.path(names.FEATURES), b"[]\n")
    name = files.digest(b"[]\n")
    objects.keep(layout, {"features.json": [name, 3], "runs.jsonl": ["", 0], "spec.md": ["0" * 64, 1]})
    assert objects.look(layout) == ({name}, [])


def test_bytes_that_are_there_already_are_compared_before_they_are_used(layout: Layout) -> None:
    """What somebody wrote in their place is replaced; so is a folder's name that is closed to us."""
    path = objects.path_of(layout, objects.put(layout, b"x"))
    os.chmod(path, 0o600)
    put(path, b"y")
    assert objects.get(layout, objects.put(layout, b"x")) == b"x"
    assert os.stat(path).st_mode & 0o777 == 0o444


def test_what_a_crash_left_of_a_read_only_file_is_in_nobodys_way(layout: Layout) -> None:
    """Its process id comes again, and a read-only file cannot be opened for writing."""
    files.make_folder(layout.path(names.OBJECTS))
    left = Path(layout.path(names.OBJECTS), f"{files.digest(b'x')}.{os.getpid()}.tmp")
    left.write_bytes(b"half")
    left.chmod(0o444)
    assert objects.get(layout, objects.put(layout, b"x")) == b"x"
    assert files.names(layout.path(names.OBJECTS)) == [files.digest(b"x")[:2]]


def test_every_object_is_looked_at(layout: Layout) -> None:
    """By its bytes; other files in the folder are ignored."""
    names = sorted(objects.put(layout, data) for data in (b"one", b"two", b"three"))
    assert objects.look(layout) == (set(names), [])
    os.unlink(objects.path_of(layout, names[0]))
    os.chmod(objects.path_of(layout, names[1]), 0o600)
    put(objects.path_of(layout, names[1]), b"else")
    objects.begin_restoring(layout)
    assert objects.look(layout) == ({names[2]}, [names[1]])


def test_a_restoring_that_was_cut_short_is_seen(layout: Layout) -> None:
    """So is a folder that is gone."""
    assert not objects.is_whole(layout)
    objects.put(layout, b"x")
    assert objects.is_whole(layout)
    objects.begin_restoring(layout)
    assert not objects.is_whole(layout)
    objects.end_restoring(layout)
    assert objects.is_whole(layout)


def test_a_missing_object_is_named(layout: Layout) -> None:
    """With the path to restore."""
    with pytest.raises(BrokenFile, match=r"objects/ab/cd: the object is missing\. Restore"):
        objects.get(layout, "abcd")


def test_a_changed_object_is_never_handed_out(layout: Layout) -> None:
    """A prompt rebuilt from it would differ."""
    name = objects.put(layout, b"x")
    os.chmod(objects.path_of(layout, name), 0o600)
    put(objects.path_of(layout, name), b"y")
    with pytest.raises(BrokenFile, match="digest is not its name"):
        objects.get(layout, name)
