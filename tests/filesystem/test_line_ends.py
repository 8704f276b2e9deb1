"""Promises of harness/filesystem/line_ends.py: a text is found whatever the line ends, and new lines end as most do."""

from __future__ import annotations

from harness.filesystem.line_ends import find_text, like_file, like_most, replace_matches


def test_a_line_end_matches_any_line_end_in_a_file_that_has_crlf() -> None:
    """Whole: a CRLF is never cut in two. A file without CRLF is searched for the text as it is."""
    data = b"a\r\nb\na\nb\r\n"
    assert [place[0] for place in find_text(data, b"a\nb")] == [b"a\r\nb", b"a\nb"]
    assert [place[0] for place in find_text(data, b"\nb\r\n")] == [b"\r\nb\n", b"\nb\r\n"]
    assert [place[0] for place in find_text(b"a\nb", b"a\r\nb")] == []
    assert [place[0] for place in find_text(b"a.b(\r\n", b"b(")] == [b"b("]


def test_new_lines_end_as_most_lines_do() -> None:
    """With as many of each kind, as they are written."""
    assert like_most(b"1\r\n2\r\n3\n", b"x\ny\r\nz") == b"x\r\ny\r\nz"
    assert like_most(b"1\r\n2\n", b"x\ny\r\nz") == b"x\ny\r\nz"


def test_a_new_content_has_the_byte_order_mark_and_the_line_ends_of_the_file() -> None:
    """Of mixed ends those of most lines; what is written as it is, where there is nothing to follow."""
    assert like_file(b"1\r\n2\r\n", b"x\ny\r\nz") == b"x\r\ny\r\nz"
    assert like_file(b"1\n2\n", b"x\ny\r\nz") == b"x\ny\nz"
    assert like_file(b"1\r\n2\r\n3\n", b"x\ny") == b"x\r\ny"
    assert like_file(b"1\r\n2\n3\n", b"x\r\ny\n") == b"x\r\ny\n"
    assert like_file(b"", b"x\ny\r\n") == like_file(b"1", b"x\ny\r\n") == b"x\ny\r\n"
    mark = b"\xef\xbb\xbf"
    assert like_file(mark + b"1\r\n", b"x\n") == like_file(mark + b"1\r\n", mark + b"x\n") == mark + b"x\r\n"
    assert like_file(b"1\n", mark + b"x\n") == mark + b"x\n"


def test_a_text_is_put_in_all_places() -> None:
    """What is between them stays."""
    data = b"-a-ab"
    assert replace_matches(data, find_text(data, b"a"), b"\\1") == b"-\\1-\\1b"
    assert replace_matches(data, [], b"x") == data
