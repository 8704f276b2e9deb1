"""The formats of memory: text is read back as written, bounds hold, and a person's words stay."""

from __future__ import annotations

import json
import random

import pytest

from harness.base.errors import BrokenFile
from harness.memory import pages
from harness.memory.pages import CurationProgress, PageItem
from harness.state import raw
from tests.helpers import nasty

TITLES = pages.MEMORY_TITLES
SHORT = "## Lessons\n- [2026-04-24] run setup first (F-001, F-002 · 2x)\n"


def page(*lines: str) -> str:
    """A MEMORY.md with these lines under Lessons."""
    return "## Decisions\n\n## Context\n\n## History\n\n## Lessons\n" + "".join(line + "\n" for line in lines)


def item(number: int, count: int = 1, date: str = "2026-04-24") -> PageItem:
    """An item with unique text."""
    return PageItem(date=date, text=f"word{number} is number {number}", where=["F-001"], count=count)


# ---- curated.json


def test_curated_json_comes_back_as_written() -> None:
    """Also from zero, which an absent file means."""
    for folded in (0, 3, 10, 11, 99_999):
        curated = CurationProgress(generation=4, first_seq=pages.first_seq(folded), folded=folded)
        assert pages.parse_curated(pages.render_curated(curated)) == curated
        assert set(json.loads(pages.render_curated(curated))) == {"generation", "first_seq", "folded"}
        placed = curated.replace(first_seq=0, offset=1, crc=7)
        assert pages.parse_curated(pages.render_curated(placed)) == placed
    assert pages.parse_curated(None) == CurationProgress(generation=0, first_seq=0, folded=0)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b'{"generation":1,"first_seq":0}',
        b'{"generation":1,"first_seq":0,"folded":-1}',
        b'{"generation":1,"first_seq":0,"folded":true}',
        b'{"generation":1,"first_seq":0,"folded":11}',
        b'{"generation":1,"first_seq":2,"folded":11,"offset":9,"crc":1}',
        b'{"generation":1,"first_seq":1,"folded":11,"offset":-9,"crc":1}',
        b'{"generation":1,"first_seq":0,"folded":0,"more":1}',
    ],
)
def test_a_broken_curated_json_is_named_and_never_read_as_zero(data: bytes) -> None:
    """Zero would process every entry a second time."""
    with pytest.raises(BrokenFile, match=r"memory/curated\.json"):
        pages.parse_curated(data, "memory/curated.json")


# ---- pages


def test_an_item_reads_as_the_design_says() -> None:
    """Date, text, features and count, in one line."""
    line = "- [2026-04-24] run setup first (F-023, F-031 · 2x)"
    assert pages.parse_item(line) == PageItem(
        date="2026-04-24", text="run setup first", where=["F-023", "F-031"], count=2
    )
    assert pages.parse_item("- [2026-04-24] said by nobody in particular (1x)") == PageItem(
        date="2026-04-24", text="said by nobody in particular"
    )
    assert pages.render_item(PageItem(date="2026-04-24", text="a (b · 2x)", where=["F-1"])) == (
        "- [2026-04-24] a (b · 2x) (F-1 · 1x)"
    )


def test_any_item_comes_back_from_its_line() -> None:
    """Also if its text ends like an item, or has brackets, backticks and unusual spaces."""
    dice = random.Random(3)
    for _ in range(2000):
        text = raw.one_line(nasty(dice) + dice.choice(["", " (F-1 · 2x)", " (3x)", ")"]))
        if text:
            where = dice.sample(["F-001", "a.b", "X_1"], dice.randrange(4))
            made = PageItem(date="2026-04-24", text=text, where=where, count=dice.randrange(1, 12))
            assert pages.parse_item(pages.render_item(made)) == made


def test_a_page_is_rendered_as_it_was_read() -> None:
    """Byte for byte, whatever people and agents wrote into it, and again the same page."""
    dice = random.Random(5)
    headings = ["## Lessons", "## History", "## Mine", "# top", "- [2026-04-24] x (F-1 · 2x)", "- [2026-04-24] y", ""]
    for _ in range(500):
        lines = [dice.choice([*headings, nasty(dice).replace("\n", " ").replace("\r", "")]) for _ in range(12)]
        text = "".join(line + "\n" for line in lines)
        read = pages.parse_page(text, TITLES)
        assert pages.render_page(read) == text
        assert pages.parse_page(pages.render_page(read), TITLES) == read


def test_lines_end_only_at_a_newline() -> None:
    """A line separator inside a note ends no line; a page saved with CRLF is still understood."""
    found = pages.parse_page("## Lessons\n- [2026-04-24] a\u2028## History\u0085b (F-1 · 1x)\n", TITLES)
    assert [made.text for made in found.items("Lessons")] == ["a\u2028## History\u0085b"]
    assert pages.parse_page(SHORT.replace("\n", "\r\n"), TITLES) == pages.parse_page(SHORT, TITLES)


def test_a_fence_that_is_never_closed_swallows_nothing() -> None:
    """Notes have backticks and comment marks; later headings still count."""
    found = pages.parse_page("## Lessons\n```\n<!--\n## History\n- [2026-04-24] x (1x)\n", TITLES)
    assert [made.text for made in found.items("History")] == ["x"]


@pytest.mark.parametrize("fence", ["```", "~~~~", "``` md"])
def test_a_heading_in_a_code_fence_is_none(fence: str) -> None:
    """It is a person's example, whatever it reads; behind the fence headings count."""
    text = (
        f"## Mine\n{fence}\n## Lessons\n- [2026-04-24] x (1x)\n{fence[:4].strip()}\n## Lessons\n- [2026-04-24] y (1x)\n"
    )
    found = pages.parse_page(text, TITLES)
    assert [section.heading for section in found.sections] == ["", "## Mine", "## Lessons"]
    assert [made.text for made in found.items("Lessons")] == ["y"]
    assert pages.render_page(found) == text


def test_only_items_under_our_headings_are_ours() -> None:
    """Items that a person lists under another heading belong to the person, in any form."""
    found = pages.parse_page("- [2026-04-24] a (1x)\n## Mine\n- [2026-04-24] b (1x)\n", TITLES)
    assert [made for section in found.sections for made in section.items()] == []


def test_new_items_stand_behind_the_old_ones() -> None:
    """And after a person's words if there are none, before the blank line that ends the section."""
    read = pages.parse_page("## Context\nwords\n\n## Lessons\n- [2026-04-24] a (1x)\nmore\n", TITLES)
    for title in ("Context", "Lessons"):
        pages.add_items(read.section(title), [item(1)])
    new = pages.render_item(item(1))
    assert pages.render_page(read) == (f"## Context\nwords\n{new}\n\n## Lessons\n- [2026-04-24] a (1x)\n{new}\nmore\n")


def test_a_page_over_its_bound_loses_its_weakest_items() -> None:
    """As many as needed; a person's lines are never dropped, however many there are."""
    read = pages.parse_page("hello\n", TITLES)
    for title in TITLES:
        pages.add_items(read.section(title), [item(n, count=n) for n in range(1, 4)])
    gone = pages.fit(read, read.size() - 5, lambda one: one.count)
    assert [made.count for made in gone] == [1, 1, 1, 1, 2]
    assert pages.render_page(read).startswith("hello\n")
    words = "".join(f"line {n}\n\n" for n in range(150))
    read = pages.parse_page(words, TITLES)
    assert pages.fit(read, 200, lambda one: one.count) == []
    assert pages.render_page(read) == words
