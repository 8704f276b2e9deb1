"""Promises of harness/filesystem/_search.py: with ripgrep and without it, the same is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.filesystem import _search
from harness.filesystem.local import Local
from harness.filesystem.protocol import FileFault, Matches
from harness.filesystem.transfer import upload
from tests import crash
from tests.filesystem.contract import lines, names

NAMES = st.sampled_from(["a", "b.py", "c.txt", ".h", "d e", "é", "x.log", "-n", "[z]"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
BODIES = st.sampled_from(
    [b"hit\n", b"no\n", b"Hit me\nhit\r\n", b"\xff hit", b"hit\0", b"hit\n" * 3, b"\n\n", "ähit\n".encode(), b""]
)
RULES = st.lists(st.sampled_from(["*.py", "!b.py", "/a", "a/", "x.log", "*", "!*/", "**/a", "a/**"]), max_size=3)
GLOBS = st.sampled_from(
    ["", "", "*.py", "*", "a/*", "**/a", "{a,b}*", ".h", "[[]z]", "/a/**", "*.{py,txt}", "-n", ".*/a"]
)
PATTERNS = st.sampled_from(["hit", "^hit$", "h.t", "", "[Hh]it", "(", r"\w+$", "ä", "^", "hit\r"])


@settings(
    max_examples=400 if crash.TORTURE else 25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_both_ways_find_the_same(tmp_path: Path, data: st.DataObject) -> None:
    """In any tree, for any question."""
    root = tmp_path / str(len(list(tmp_path.iterdir())))
    root.mkdir()
    with_rg, without = Local(str(root)), Local(str(root), with_rg=False)
    tree = data.draw(st.dictionaries(PATHS, BODIES, max_size=8))
    upload(with_rg, tree)
    for folder in ("", "a/"):
        with_rg.write(f"{folder}.gitignore", "\n".join(data.draw(RULES)).encode())
    asked: dict[str, Any] = {
        "glob": data.draw(GLOBS), "ignore_case": data.draw(st.booleans()), "literal": data.draw(st.booleans()),
        "most": data.draw(st.sampled_from([1, 3, 1000])), "longest": data.draw(st.sampled_from([2, 1000])),
        "hidden": data.draw(st.booleans()),
    }  # fmt: skip
    pattern, path = data.draw(PATTERNS), data.draw(st.one_of(st.just("."), PATHS))
    one, other = with_rg.grep(pattern, path, **asked), without.grep(pattern, path, **asked)
    if isinstance(one, FileFault):
        assert isinstance(other, FileFault)
        assert one.kind == other.kind
    else:
        assert one == other


@pytest.mark.parametrize("with_rg", [True, False])
def test_very_many_lines_are_not_counted_and_the_first_are_shown(
    tmp_path: Path, with_rg: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same ones each time."""
    monkeypatch.setattr(_search, "COUNTED", 100)
    files = Local(str(tmp_path), with_rg=with_rg)
    upload(files, {**{f"f{number:02}": b"hit\n" * 10 for number in range(20)}, "a-late": b"hit\n" * 50_000 + b"\0"})
    found = files.grep("hit", most=25)
    assert isinstance(found, Matches)
    assert lines(found) == [(f"f{number // 10:02}", number % 10 + 1, b"hit") for number in range(25)]
    assert found.more == -1


@pytest.mark.parametrize("with_rg", [True, False])
def test_a_search_below_a_link_tells_where_the_files_are(tmp_path: Path, with_rg: bool) -> None:
    """By paths that can be used as they are."""
    files = Local(str(tmp_path), with_rg=with_rg)
    upload(files, {"real/deep/f": b"hit\n"})
    (tmp_path / "l").symlink_to("real")
    assert lines(files.grep("hit", "l")) == [("real/deep/f", 1, b"hit")]
    assert names(files.glob("*", "l")) == ["real/deep/f"]


@pytest.mark.parametrize("with_rg", [True, False])
def test_names_of_any_kind_are_found(tmp_path: Path, with_rg: bool) -> None:
    """Also one with a line break in it, and one that looks like a warning of ripgrep's."""
    for name in ("a\nb", "x: WARNING: stopped", "1:2:3", "-e", "--glob"):
        (tmp_path / name).write_text("hit\n")
    found = lines(Local(str(tmp_path), with_rg=with_rg).grep("hit"))
    assert sorted(path for path, _, _ in found) == sorted(["a\nb", "x: WARNING: stopped", "1:2:3", "-e", "--glob"])
