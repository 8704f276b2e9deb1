"""How two notes differ that are built alike."""

from __future__ import annotations

import pytest

from harness.memory._contrast import differs_in_values, opposed, plain
from harness.memory._words import words


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        ('merge with how="left"', 'merge with how="outer"', True),
        ('merge with how="left"', "merge with how='left'", False),
        ("set TZ=UTC", "set LANG=C", False),
    ],
)
def test_one_setting_with_two_values_is_a_difference(one: str, other: str, differ: bool) -> None:
    """Whatever is around it."""
    assert differs_in_values(words(one), words(other)) is differ


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
