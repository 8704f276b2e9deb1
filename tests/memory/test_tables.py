"""The tables of rules and words: every line is one that code can use."""

from __future__ import annotations

import pytest

from harness.memory import tables

RULES = [name for name in tables.sections("gates.txt") if not name.startswith(tables.PART)]


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_a_pattern_without_an_open_part(name: str) -> None:
    """A part that no section defines would stand in the pattern as it is written."""
    assert tables.pattern(name).search("") is None or name == "no value"
    parts = {key[5:] for key in tables.sections("gates.txt") if key.startswith("part ")}
    assert not [part for part in parts if f"<{part}>" in tables.pattern(name).pattern]


def test_no_word_and_no_rule_is_there_twice() -> None:
    """Such a line does nothing."""
    for name in ("gates.txt", "words.txt"):
        for section, lines in tables.sections(name).items():
            assert len(lines) == len(set(lines)), section


def test_words_of_a_section_are_found_whatever_the_length_of_its_lines() -> None:
    """They are split at blanks."""
    assert {"the", "der"} <= tables.words("words.txt", "stop words")
