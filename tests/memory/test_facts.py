"""The facts of a note: which of its words must be in another note that says the same."""

from __future__ import annotations

import pytest

from harness.memory._facts import NEGATION, facts
from tests.helpers import is_linear


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Run the tests. Then stop", set()),
        ("ask Anna, then Ben", {"anna", "ben"}),
        ("run src/web/App.tsx with --retry, user_id and npmRun", {"src/web/app.tsx", "--retry", "user_id", "npmrun"}),
        ("port 4000, version 3.12, 1,000 rows", {"4000", "3.12", "1,000"}),
        ("two workers", {"2"}),
        ("db-a is down", {"db-a"}),
        ("run `npm ci` in “strict mode” with 'x'", {"npm", "ci", "strict", "mode", "x"}),
        ('merge with how="left"', {"how", "left"}),
        ("avoid The cache; it's Anna's", {"anna"}),
        ("数据库用Redis", {"redis"}),
    ],
)
def test_numbers_names_identifiers_and_quotations_are_facts(text: str, found: set[str]) -> None:
    """In small letters; a capital at the beginning of a sentence makes no name."""
    assert facts(text)[1] - {NEGATION} == found


@pytest.mark.parametrize(
    ("text", "negates"),
    [
        ("it isn’t open", True),
        ("no longer", True),
        ("use A instead of B", True),
        ("ohne Netz", True),
        ("avoid the cache, it is off", True),
        ("不要备份", True),
        ("a note", False),
    ],
)
def test_a_note_with_a_negation_is_known(text: str, negates: bool) -> None:
    """By one short list of words."""
    assert (NEGATION in facts(text)[1]) is negates


def test_a_text_is_split_in_time_that_grows_with_its_length() -> None:
    """Whatever it is made of."""
    for text in ("x", "a.b/", "`", "„", "漢", "' \"", "A="):
        assert is_linear(facts, text * (10**4 // len(text))), text
