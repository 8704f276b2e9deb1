"""Promises of harness/filesystem/_union.py: paths, merged searches and copies; what is made of them is in test_composite.py."""

from __future__ import annotations

import pytest

from harness.filesystem import _union
from harness.filesystem._faults import VerbRefusal
from harness.filesystem.keyvalue import KeyValueFiles
from harness.filesystem.protocol import FileEntry, Match, Matches
from harness.filesystem.transfer import upload
from harness.stores.memory import MemoryStore
from tests.filesystem.contract import content, names, written


@pytest.mark.parametrize("pattern", ["a/*", "**/.h/*", ".a/b", "*.py", "x/**/"])
def test_another_folder_is_asked_for_all_that_a_pattern_could_find(pattern: str) -> None:
    """Hidden names where the pattern names one; folders too."""
    files = KeyValueFiles(MemoryStore())
    upload(files, dict.fromkeys(("a.py", "d/b", "d/.h/c", ".a/b", ".a/d/e"), b""))
    found = set(names(files.glob(_union.widen_glob(pattern))))
    wanted = {"a.py", "d", "d/b"} | ({"d/.h", "d/.h/c", ".a", ".a/b", ".a/d", ".a/d/e"} if "." in pattern else set())
    assert found == ({"a.py"} if pattern == "*.py" else wanted)


def test_matches_of_several_searches_are_in_the_order_of_one() -> None:
    """Name by name; what is not counted in one is not counted in all."""
    rows = [Match(path=path, line=1, text=b"") for path in ("b.txt", "b/x", "a")]
    parts = [Matches(matches=rows[:2], files=2), Matches(matches=rows[2:], files=1, skipped={"d": "denied"})]
    found = _union.merge_matches(parts, 2)
    assert ([one.path for one in found.matches], found.more, found.files) == (["a", "b/x"], 1, 3)
    assert (_union.merge_matches([Matches(more=-1), *parts], 2).more, found.skipped) == (-1, {"d": "denied"})


def test_a_copy_is_whole_or_not_there() -> None:
    """Also where something is in the way: that stays."""
    source, target = KeyValueFiles(MemoryStore()), KeyValueFiles(MemoryStore())
    upload(source, {"d/a": b"\0\xff", "d/e/b": b""})
    written(source.mkdir("d/empty"))
    assert _union.copy(source, "d/a", target, "x/y") == 2
    _union.copy(source, "d", target, "z")
    assert (names(target.ls("z")), content(target.read("z/a")).data) == (["z/a", "z/e", "z/empty"], b"\0\xff")
    with pytest.raises(VerbRefusal):
        _union.copy(source, "none", target, "n")
    assert names(target.ls()) == ["x", "z"]


def test_a_glob_of_a_search_that_began_above_is_matched_from_there() -> None:
    """With the folder of the search as its start."""
    wanted = _union.accepts("s/*.py", ("a",), folders=True)
    assert [wanted(FileEntry(path=path, kind="file")) for path in ("a/s/x.py", "s/x.py")] == [True, False]
