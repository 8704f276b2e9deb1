"""How much a word tells that two notes share."""

from __future__ import annotations

import pytest

from harness.memory._word_frequency import ALL, special
from harness.memory._words import stem


@pytest.mark.parametrize("word", ["flushall", "freezegun", "forcepathstyle", "quuxd"])
def test_a_word_that_documentation_does_not_have_tells_all(word: str) -> None:
    """A name of one tool, or of this project."""
    assert special(stem(word)) == ALL


@pytest.mark.parametrize("word", ["file", "database", "running", "changes", "migration", "datei", "package.json"])
def test_a_word_that_most_documentation_has_tells_less(word: str) -> None:
    """In any inflection."""
    assert special(word if "." in word else stem(word)) < 0.9 * ALL


def test_the_commoner_the_less() -> None:
    """As numbers: many notes have a 5, few have a 3000; and one pair of Chinese characters is half a word."""
    assert special("fil") < special("worktre") < special("flushall")
    assert special("5") < special("3000") < ALL
    assert special("\u6570\u636e") < ALL
