"""Promises of harness/filesystem/_edit.py: only what was asked for changes, and what cannot be changed says where it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.filesystem._edit import apply
from harness.filesystem.protocol import FileFault, Replacement
from tests.filesystem.contract import change, kind

PIECES = [b"a", b"b", b"\n", b"\r\n", b"\xff", b"\0", b" "]
LINES = st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join)
TEXTS = st.lists(st.sampled_from([*PIECES, b"\r"]), max_size=12).map(b"".join)


@given(before=LINES, old=LINES.filter(bool), after=LINES, new=LINES)
def test_what_is_around_an_edit_stays_byte_for_byte(before: bytes, old: bytes, after: bytes, new: bytes) -> None:
    """Whatever the bytes are; line ends alone may differ in the text that goes, and in the one that comes."""
    data = before + old + after
    made = apply(data, [Replacement(old=old, new=new)], "f")
    if isinstance(made, FileFault):
        assert (bare(data).count(bare(old)) > 1) if made.kind == "not_unique" else old == new
        return
    cuts = [(at, end) for at in range(len(data)) for end in range(at, len(data) + 1) if bare(data[at:end]) == bare(old)]
    news = (new, bare(new).replace(b"\n", b"\r\n"))
    assert made.data in [data[:at] + one + data[end:] for at, end in cuts for one in news]


def bare(text: bytes) -> bytes:
    """The text with LF as each line end."""
    return text.replace(b"\r\n", b"\n")


@given(data=TEXTS, old=TEXTS, new=TEXTS, everywhere=st.booleans())
def test_an_edit_is_made_or_is_a_fault(data: bytes, old: bytes, new: bytes, everywhere: bool) -> None:
    """It ends for every text, also an empty one, and never half."""
    made = apply(data, [Replacement(old=old, new=new, everywhere=everywhere)], "f")
    if isinstance(made, FileFault):
        assert made.kind in ("invalid", "not_found", "not_unique")
    else:
        assert made.count >= 1
        assert everywhere or made.count == 1


def test_a_text_with_bare_newlines_is_found_in_a_file_with_others() -> None:
    """And new lines end as most lines of the file do."""

    def made(data: bytes, old: str, new: str) -> bytes:
        found = apply(data, [change(old, new)], "f")
        assert not isinstance(found, FileFault), found
        return found.data

    assert made(b"a\r\nb\r\nc", "a\nb", "x\ny\nz") == b"x\r\ny\r\nz\r\nc"
    assert made(b"a\r\nb\r\n", "b", "x\ny") == b"a\r\nx\r\ny\r\n"
    assert made(b"a\r\nb\r\n", "a\r\nb", "x\r\ny") == b"x\r\ny\r\n"
    assert made(b"a\nb\r\nc\n", "a\nb", "x\ny") == b"x\ny\r\nc\n"
    assert made(b"a\r\nb\nc\r\n", "a\nb\nc", "x\ny") == b"x\r\ny\r\n"
    assert made(b"a\nb\n", "b\n", "x\r\n") == b"a\nx\r\n"
    assert kind(apply(b"a\nb\n", [change("a\r\nb", "x")], "f")) == "not_found"


def test_a_text_that_is_there_several_times_says_on_which_lines() -> None:
    """So that the model can give more of what is around it; the first five."""
    found = apply(b"x\nhit\n\nhit hit\n" + b"hit\n" * 9, [change("hit", "y")], "f")
    assert isinstance(found, FileFault)
    assert "12 times in f, on lines 2, 4, 4, 5, 6 …" in found.text


def test_a_fault_of_several_changes_says_which() -> None:
    """And that none was made."""
    found = apply(b"a", [change("a", "b"), change("a", "c")], "f")
    assert isinstance(found, FileFault)
    assert "change 2 of 2; none was made" in found.text
