"""How two notes differ that are built alike."""

from __future__ import annotations

import pytest

from harness.memory import contrast
from harness.memory.contrast import differs_in_compounds, differs_in_values, has_opposites, opposed, plain
from harness.memory.words import words


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


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        ("the pre-commit hook runs ruff", "the pre-push hook runs the tests", True),
        ("the pre-commit hook runs ruff", "ruff is in the pre-commit hook", False),
        ("the bucket acme-raw has the raw files", "acme-final is the bucket of files", True),
        ("a read-only mount", "the e2e-runner image", False),
    ],
)
def test_compounds_with_one_half_in_common_are_two_things(one: str, other: str, differ: bool) -> None:
    """As names are."""
    assert differs_in_compounds(words(one), words(other)) is differ


def test_what_both_refuse_is_no_contradiction() -> None:
    """Also where their denials reach over other words."""
    one, other = (
        words("never edit types.ts by hand, it is generated"),
        words("types.ts is generated, do not edit it by hand"),
    )
    assert not opposed(one, other, frozenset(), decisions=False, alike=True)
    assert opposed(words("use uv run"), words("never use uv run"), frozenset(), decisions=False, alike=True)


def test_who_refuses_a_name_contradicts_a_note_that_is_about_it() -> None:
    """Also where the two have few other words in common."""
    refused, known = words("stop using torch.compile for the model"), words("torch.compile the model, 1.4x faster")
    assert opposed(refused, known, frozenset(), decisions=False, alike=False)
    assert not opposed(refused, words("the model is faster in eval mode"), frozenset(), decisions=False, alike=False)


def test_an_adverb_has_the_opposite_of_its_word() -> None:
    """And an option that has the word in its name does not."""
    assert has_opposites(words("run the tests serially"), words("run the tests in parallel, with -parallel-enabled"))
    assert not has_opposites(words("pass -parallel-enabled"), words("run the tests serially, -parallel-enabled hangs"))


def test_two_writings_of_the_same_words_are_one() -> None:
    """Case, white space, quotes and the last full stop."""
    assert plain("Run  `make gen`.") == plain("run make gen")


@pytest.mark.parametrize(
    ("turned_on", "turned_off"),
    [
        ("turn direct_media on so that calls are direct", "keep direct_media off, nothing is recorded otherwise"),
        ("leave autovacuum on even during the load", "turn autovacuum off on the staging table"),
        ("flat catalog on: faster pages", "the flat catalog must be off since 2.4"),
    ],
)
def test_on_and_off_are_known_behind_what_they_are_about(turned_on: str, turned_off: str) -> None:
    """Also some words behind the verb; "on the page" is a place."""
    assert contrast.flips(words(turned_on), words(turned_off))
    assert contrast.flips(words(turned_off), words(turned_on))
    assert not contrast.switched("set a limit on pods")
    assert not contrast.switched("keep the button on the page")
