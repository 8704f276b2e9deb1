"""raw.md: one line per entry, with any text, and every line has a permanent number."""

from __future__ import annotations

import random
import tracemalloc
from pathlib import Path

import pytest

from harness.base.errors import UsageFault
from harness.state import names, raw
from harness.state.layout import Layout
from tests.helpers import is_linear, mission, nasty, put

AT = "2026-04-24T10:05:12Z"
LINE = f"[{AT}] worker F-023 TRICK: psql -f drizzle/*.sql applies migrations in filename order"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A mission whose folder is empty."""
    return mission(tmp_path)


def test_an_entry_reads_exactly_as_documented() -> None:
    """People grep it."""
    said = "psql -f drizzle/*.sql applies migrations in filename order"
    assert raw.render(AT, "worker", "F-023", "TRICK", said) == LINE
    assert raw.render(AT, "person", "", "-", "hello") == f"[{AT}] person - - hello"


def test_an_untagged_entry_may_have_a_colon() -> None:
    """Either form is read, one is written."""
    entry = raw.parse_line(f"[{AT}] validator F-023 -: F-023 verified via curl", 0)
    assert (entry.role, entry.feature, entry.tag, entry.text) == ("validator", "F-023", "-", "F-023 verified via curl")
    assert entry.line() == f"[{AT}] validator F-023 - F-023 verified via curl"
    assert raw.parse_line(entry.line(), 0) == entry


@pytest.mark.parametrize("tag", raw.TAGS)
def test_an_entry_comes_back_field_by_field_and_byte_by_byte(tag: str) -> None:
    """With any text: line breaks become one space, nothing else changes."""
    dice = random.Random(tag)
    for _ in range(100):
        text = nasty(dice)
        line = raw.render(AT, "worker", "F-1", tag, text)
        entry = raw.parse_line(line, 7)
        assert "\n" not in line
        assert (entry.seq, entry.at, entry.role, entry.feature, entry.tag) == (7, AT, "worker", "F-1", tag)
        assert entry.text == raw.one_line(text)
        assert entry.line() == line


@pytest.mark.parametrize(
    "line",
    [
        "",
        "garbage",
        "[torn",
        "\0\0",
        "[x] a b TRICK: no time",
        f"[{AT}] worker F-1 TRICK no colon",
        f"[{AT}] worker F-1 LIE: no tag",
        f"[{AT}] worker TRICK: no feature",
        f" {LINE}",
    ],
)
def test_a_line_that_is_no_entry_is_kept_as_it_is(line: str) -> None:
    """It counts, has no tag, and returns its text."""
    entry = raw.parse_line(line, 3)
    assert (entry.tag, entry.text, entry.line(), entry.seq) == ("", line, line, 3)


def test_an_entry_that_others_appended_comes_back_byte_for_byte() -> None:
    """Also with tabs and spaces that the harness would not write."""
    line = f"[{AT}] worker F-1 CONTEXT:  two spaces\tand a tab "
    assert raw.parse_line(line, 0).tag == "CONTEXT"
    assert raw.parse_line(line, 0).line() == line


@pytest.mark.parametrize(
    ("text", "line"),
    [("a\nb", "a b"), ("a\r\n\n\tb", "a b"), ("  a  b ", "a  b"), ("a\0b", "a b"), ("a\u2028b\x0cc", "a\u2028b\x0cc")],
)
def test_breaks_become_one_space(text: str, line: str) -> None:
    """Lines end at newlines only; other separators are text."""
    assert raw.one_line(text) == line


def test_every_whole_line_has_its_number(layout: Layout) -> None:
    """A torn last line has none yet; bytes that are no text are replaced."""
    put(layout.path(names.RAW), f"{LINE}\n\nb\xff\n{LINE}".encode("latin-1"))
    entries = list(raw.entries(layout.path(names.RAW), 40))
    assert [(entry.seq, entry.tag) for entry in entries] == [(40, "TRICK"), (41, ""), (42, "")]
    assert entries[2].text == "b\ufffd"


@pytest.mark.parametrize(
    ("tag", "text", "fault"),
    [("LIE", "x", "unknown tag"), ("TRICK", " \n\t", "empty"), ("TRICK", "x" * 301, "301 char")],
)
def test_a_note_that_does_not_fit_is_refused(tag: str, text: str, fault: str) -> None:
    """With the remedy."""
    with pytest.raises(UsageFault, match=fault):
        raw.checked(tag, text, in_run=True)


def test_people_may_say_more_than_a_run() -> None:
    """Outside a run a note may be longer, but not of any length: it has to fit a page."""
    assert raw.checked("-", "x" * 1000, in_run=False) == "x" * 1000
    with pytest.raises(UsageFault, match="has 1001 characters; the limit is 1000"):
        raw.checked("-", "x" * 1001, in_run=False)
    assert raw.checked("TRICK", "a\nb", in_run=True) == "a b"


def test_notes_are_appended_in_order(layout: Layout) -> None:
    """An empty list changes no file."""
    raw.append(layout, "worker", "F-1", [])
    assert not Path(layout.path(names.RAW)).exists()
    raw.append(layout, "worker", "F-1", [("TRICK", "one"), ("-", "two\nlines")])
    raw.append(layout, "person", "", [("AVOID", "three")])
    entries = raw.entries(layout.path(names.RAW), 0)
    assert [(entry.seq, entry.role, entry.feature, entry.tag, entry.text) for entry in entries] == [
        (0, "worker", "F-1", "TRICK", "one"),
        (1, "worker", "F-1", "-", "two lines"),
        (2, "person", "-", "AVOID", "three"),
    ]


def test_a_secret_in_a_note_does_not_get_into_memory(layout: Layout) -> None:
    """Notes enter prompts and later other missions: the rule's name replaces the secret."""
    token = "gh" + "p_a8Kd93jfLs02LqPz7Xc1Vb5Nm4Qw6Er8Ty2Ui0"
    raw.append(layout, "worker", "F-1", [("TRICK", f"npm wants {token} as its token")])
    assert Path(layout.path(names.RAW)).read_text().endswith("TRICK: npm wants [masked: github-token] as its token\n")


def test_a_long_file_is_read_block_by_block_without_losing_count(layout: Layout) -> None:
    """Lines cross block boundaries; numbers stay; lines may end where a block does."""
    lines = [f"[{AT}] worker - - {number} {'é' * (number % 700)}" for number in range(400)]
    lines += ["x" * (raw.MAX_LINE_BYTES - 1), "x" * raw.MAX_LINE_BYTES, "", "y"]
    put(layout.path(names.RAW), "\n".join(lines) + "\ntorn")
    assert [entry.line() for entry in raw.entries(layout.path(names.RAW), 0)] == lines
    start = len("\n".join(lines[:150]).encode()) + 1
    assert [(entry.seq, entry.line()) for entry in raw.entries(layout.path(names.RAW), 150, start)] == list(
        enumerate(lines)
    )[150:]


@pytest.mark.parametrize("over", [1, 99, raw.MAX_LINE_BYTES, 5 * raw.MAX_LINE_BYTES + 7])
def test_a_line_that_is_too_long_is_no_entry_and_says_its_length(layout: Layout, over: int) -> None:
    """Its beginning stays, and read again from the archive it is still no entry."""
    line = LINE + "!" * (raw.MAX_LINE_BYTES + over - len(LINE))
    put(layout.path(names.RAW), f"{LINE}\n{line}\n{LINE}\n")
    before, entry, after = raw.entries(layout.path(names.RAW), 7)
    assert (before.tag, entry.tag, after.tag, after.seq) == ("TRICK", "", "TRICK", 9)
    assert entry.line().startswith(f"(a line of {len(line)} bytes, cut) {LINE}!!!")
    assert len(entry.line()) == raw.MAX_LINE_BYTES
    assert raw.parse_line(line, 8) == entry
    assert raw.parse_line(entry.line(), 8) == entry
    assert len(entry.shown()) == raw.MAX_PERSON_NOTE_CHARS


def test_a_time_role_or_feature_that_is_too_long_makes_no_entry() -> None:
    """They go into pages and identities; names that the harness gives are shorter."""
    assert raw.parse_line(f"[{AT}] {'r' * 64} {'f' * 64} TRICK: x", 0).tag == "TRICK"
    for line in (
        f"[{AT}] {'r' * 200} F-1 TRICK: x",
        f"[{AT}] w {'f' * 200} TRICK: x",
        f"[{'9' * 200}Z] w F-1 TRICK: x",
    ):
        assert raw.parse_line(line, 0).tag == ""


def test_what_a_prompt_shows_of_an_entry_is_readable() -> None:
    """Notes that the harness accepts are whole; a longer one is cut with a mark, and stays an entry."""
    note = f"[{AT}] person - CONTEXT: " + "x" * raw.MAX_PERSON_NOTE_CHARS
    assert raw.parse_line(note, 0).shown() == note
    assert raw.parse_line(note + "xx", 0).shown() == note[:-1] + "…"
    assert raw.parse_line(note + "xx", 0).line() == note + "xx"


def test_one_line_of_any_length_is_read_in_linear_time_and_small_memory(layout: Layout) -> None:
    """30 MB without a newline: no quadratic growth of the line, and no copy of it in memory."""
    put(layout.path(names.RAW), f"{LINE}\n" + "x" * 30_000_000 + f"\n{LINE}\n")
    tracemalloc.start()
    found = [(entry.seq, len(entry.text)) for entry in raw.entries(layout.path(names.RAW), 0)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [seq for seq, _ in found] == [0, 1, 2]
    assert max(length for _, length in found) == raw.MAX_LINE_BYTES
    assert peak < 2_000_000

    def read(text: str) -> None:
        put(layout.path(names.RAW), text)
        list(raw.entries(layout.path(names.RAW), 0))

    assert is_linear(read, "x" * 4_000_000)


def test_where_there_is_no_file_there_are_no_entries(layout: Layout) -> None:
    """A mission that has just begun."""
    assert list(raw.entries(layout.path(names.RAW), 0)) == []
