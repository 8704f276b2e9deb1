"""How two notes differ that are built alike."""

from __future__ import annotations

from harness.memory._contrast import opposed, plain
from harness.memory._words import words


def test_what_both_refuse_is_no_contradiction() -> None:
    """Also where their denials reach over other words."""
    one, other = (
        words("never edit types.ts by hand, it is generated"),
        words("types.ts is generated, do not edit it by hand"),
    )
    assert not opposed(one, other, decisions=False, alike=True)
    assert opposed(words("use uv run"), words("never use uv run"), decisions=False, alike=True)


def test_two_writings_of_the_same_words_are_one() -> None:
    """Case, white space, quotes and the last full stop."""
    assert plain("Run  `make gen`.") == plain("run make gen")
