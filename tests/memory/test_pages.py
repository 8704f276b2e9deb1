"""The formats of memory: text is read back as written, bounds hold, and a person's words stay."""

from __future__ import annotations

import json
import random

import pytest

from harness.base.errors import BrokenFile
from harness.memory import pages, raw
from harness.memory.pages import Curated, Item
from tests.helpers import nasty

TITLES = pages.MEMORY_TITLES
SHORT = "## Lessons\n- [2026-04-24] run setup first (F-001, F-002 · 2x)\n"


def page(*lines: str) -> str:
    """A MEMORY.md with these lines under Lessons."""
    return "## Decisions\n\n## Context\n\n## History\n\n## Lessons\n" + "".join(line + "\n" for line in lines)


def item(number: int, count: int = 1, date: str = "2026-04-24") -> Item:
    """An item with unique text."""
    return Item(date=date, text=f"word{number} is number {number}", where=["F-001"], count=count)


# ---- curated.json


def test_curated_json_comes_back_as_written() -> None:
    """Also from zero, which an absent file means."""
    for folded in (0, 3, 10, 11, 99_999):
        curated = Curated(generation=4, first_seq=pages.first_seq(folded), folded=folded)
        assert pages.parse_curated(pages.render_curated(curated)) == curated
        assert set(json.loads(pages.render_curated(curated))) == {"generation", "first_seq", "folded"}
        placed = curated.replace(first_seq=0, offset=1, crc=7)
        assert pages.parse_curated(pages.render_curated(placed)) == placed
    assert pages.parse_curated(None) == Curated(generation=0, first_seq=0, folded=0)


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
    assert pages.parse_item(line) == Item(date="2026-04-24", text="run setup first", where=["F-023", "F-031"], count=2)
    assert pages.parse_item("- [2026-04-24] said by nobody in particular (1x)") == Item(
        date="2026-04-24", text="said by nobody in particular"
    )
    assert pages.render_item(Item(date="2026-04-24", text="a (b · 2x)", where=["F-1"])) == (
        "- [2026-04-24] a (b · 2x) (F-1 · 1x)"
    )


def test_any_item_comes_back_from_its_line() -> None:
    """Also if its text ends like an item, or has brackets, backticks and unusual spaces."""
    dice = random.Random(3)
    for _ in range(2000):
        text = raw.one_line(nasty(dice) + dice.choice(["", " (F-1 · 2x)", " (3x)", ")"]))
        if text:
            where = dice.sample(["F-001", "a.b", "X_1"], dice.randrange(4))
            made = Item(date="2026-04-24", text=text, where=where, count=dice.randrange(1, 12))
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


def test_a_page_over_its_bound_loses_history_first_then_what_was_said_least() -> None:
    """The oldest first; a person's lines are never dropped."""
    read = pages.parse_page("hello\n", TITLES)
    for title in TITLES:
        pages.add_items(read.section(title), [item(n, count=n, date=f"2026-04-{n:02}") for n in range(1, 5)])
    gone = pages.fit(read, read.size() - 6, pages.memory_first_to_go, "MEMORY.md")
    assert [made.count for made in gone] == [1, 2, 3, 4, 1, 1]
    assert read.items("History") == []
    assert pages.render_page(read).startswith("hello\n")


def test_hand_written_lines_alone_over_the_bound_are_a_persons_to_mend() -> None:
    """None of their lines is dropped silently; blank lines go first."""
    words = "".join(f"line {n}\n\n" for n in range(150))
    read = pages.parse_page(words, TITLES)
    assert pages.fit(read, 200, pages.memory_first_to_go, "MEMORY.md") == []
    assert pages.render_page(read) == words.replace("\n\n", "\n")
    with pytest.raises(BrokenFile, match=r"MEMORY\.md: what people wrote here comes to 201 lines"):
        pages.fit(pages.parse_page("x\n" * 201, TITLES), 200, pages.memory_first_to_go, "MEMORY.md")


# ---- summary.md


def summary_of(text: str, before: str | None = None, ours: bool = True) -> str:
    """The summary of a MEMORY.md."""
    return pages.summarise(pages.parse_page(text, TITLES), before, lambda _: ours, "summary.md")


def test_the_summary_shows_what_would_have_saved_a_run_first() -> None:
    """Most features, then most occurrences, then newest; things to avoid are separate, without their mark."""
    lines = [
        "- [2026-04-20] old (F-1 · 1x)",
        "- [2026-04-21] wide (F-1, F-2 · 2x)",
        "- [2026-04-22] often (F-1 · 5x)",
        "- [2026-04-23] new (F-1 · 1x)",
        "- [2026-04-23] Avoid: this (F-1 · 1x)",
    ]
    made = pages.parse_page(summary_of(page(*lines)), pages.SUMMARY_TITLES)
    assert [one.text for one in made.items("Lessons")] == ["wide", "often", "new", "old"]
    assert [one.text for one in made.items("Avoid")] == ["this"]


def test_the_summary_keeps_both_bounds_whatever_memory_holds() -> None:
    """40 lines and 800 tokens; a note that is too long is skipped for shorter ones."""
    dice = random.Random(11)
    for _ in range(60):
        lines = [f"- [2026-04-24] {n} {'x' * dice.randrange(1, 400)} ({n + 1}x)" for n in range(dice.randrange(190))]
        lines += ["- [2026-04-24] " + "y" * 5000 + " (900x)"]
        text = summary_of(page(*lines))
        assert text.count("\n") <= 40
        assert pages.estimated_tokens(len(text)) <= 800


def test_no_heading_of_the_summary_is_crowded_out() -> None:
    """Thirty lessons leave room for a decision and for things to avoid."""
    lines = [f"- [2026-04-24] lesson {n} (9x)" for n in range(60)] + ["- [2026-04-20] Avoid: fire (1x)"]
    text = summary_of("## Decisions\n- [2026-04-20] decided (1x)\n" + page(*lines).split("\n", 1)[1])
    assert "decided" in text
    assert "fire" in text


def test_tokens_are_estimated_on_the_safe_side() -> None:
    """Characters / 2.8, rounded up."""
    assert [pages.estimated_tokens(n) for n in (0, 1, 28, 29)] == [0, 1, 10, 11]


def test_a_summary_that_is_made_again_is_the_same() -> None:
    """Byte for byte, from the same memory."""
    text = page("- [2026-04-24] a (1x)", "- [2026-04-24] Avoid: b (2x)")
    once = summary_of(text)
    assert summary_of(text, once) == once


def test_what_a_person_wrote_into_the_summary_stays() -> None:
    """Their lines, their headings, and an item of ours that they reworded; each once."""
    before = "Read this.\n## Lessons\n- [2026-04-24] my own words (2x)\n\n## House\n- keep\n"
    text = pages.summarise(
        pages.parse_page(page("- [2026-04-24] ours (1x)"), TITLES), before, {"ours"}.__contains__, "summary.md"
    )
    for line in ("Read this.", "- [2026-04-24] my own words (2x)", "## House", "- keep", "- [2026-04-24] ours (1x)"):
        assert text.split("\n").count(line) == 1
    again = pages.summarise(pages.parse_page(page(), TITLES), text, {"ours"}.__contains__, "summary.md")
    assert "my own words" in again
    assert "ours" not in again


@pytest.mark.parametrize("words", ["short\n" * 41, "x" * 2300 + "\n"])
def test_a_summary_filled_by_hand_is_a_persons_to_mend(words: str) -> None:
    """Over either bound, and the message names the file."""
    with pytest.raises(BrokenFile, match=r"summary\.md: what people wrote"):
        summary_of(page(), words)
