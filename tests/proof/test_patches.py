"""Unified diffs as files: exact names, and lines as they are."""

from __future__ import annotations

from harness.proof import _patches
from harness.proof._patches import FilePatch


def patch(path: str, *lines: str) -> str:
    """A unified diff of one file."""
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n" + "".join(f"{x}\n" for x in lines)


def test_lines_that_look_like_headers_stay_lines() -> None:
    """`--- x` inside a hunk was a line `-- x`."""
    text = patch("a.sql", "--- note", "+++ more", " same") + patch("b c.txt", "+x")
    one = FilePatch(path="a.sql", added=["++ more"], removed=["-- note"], after=["++ more", "same"])
    one.old, one.new = ["-- note", "same"], ["++ more", "same"]
    assert _patches.parse(text) == [one, FilePatch(path="b c.txt", added=["x"], after=["x"], new=["x"])]


def test_a_binary_file_and_a_moved_one_have_no_lines() -> None:
    """Nothing is guessed about them."""
    text = "diff --git a/x.png b/x.png\nindex 1..2\nBinary files a/x.png and b/x.png differ\n"
    assert _patches.parse(text) == [FilePatch(path="x.png")]


def test_names_are_exact() -> None:
    """A folder called `b` and characters that git writes in C style."""
    odd = r'diff --git "a/t\303\251st\t\"b\"" "b/t\303\251st\t\"b\""'
    assert [one.path for one in _patches.parse(patch("a b/b b/x", "+x") + odd + "\n")] == ["a b/b b/x", 'tést\t"b"']


def test_a_line_may_end_as_on_windows() -> None:
    """The end is no part of it."""
    assert _patches.parse(patch("a", "+exit 0\r"))[0].added == ["exit 0"]


def test_a_long_line_comes_in_pieces_that_overlap() -> None:
    """So that no pattern takes long, and none misses what is at a border."""
    pieces = _patches.parse(patch("a", "+" + "x" * 480 + "process.env.CI" + " " * 5_000))[0].added
    assert max(map(len, pieces)) <= 500
    assert any("process.env.CI" in piece for piece in pieces)
