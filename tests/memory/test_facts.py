"""The facts of a note, and what every role reads after a correction, through the program's commands."""

from __future__ import annotations

import pytest

from harness.memory._facts import NEGATION, facts
from harness.state import names
from tests.helpers import is_linear
from tests.missions import House

# Corrections and parallel facts: both are on the page, whichever came first.
BOTH_STAY = [
    ("the docs server listens on port 4000", "the docs server listens on port 4100 now, not on 4000"),
    (
        "the web team merges the release branch",
        "the web team no longer merges the release branch; the core team merges it",
    ),
    ("uploads are limited to 5 MB", "uploads are no longer limited to 5 MB but to 20 MB"),
    ("shard 1 lives on db-a", "shard 2 lives on db-b"),
    ("replica 1 reads from db-1", "replica 2 reads from db-2"),
    ("migration 0012 runs before 0013", "migration 0013 runs before 0014"),
    ("My son Leo is 9 years old.", "My dog Rex is 9 years old."),
    ("Anna reviews the schema changes", "Ben reviews the schema changes"),
    ("the nightly job starts two workers", "the nightly job starts three workers on demand"),
    ("the retry limit of the mailer is 5ms", "the retry limit of the mailer is 5s"),
    ('set the mode of the store to "fast"', 'set the mode of the store to "safe"'),
    ("deploys of the shop go out on Mondays", "deploys of the shop go out on Fridays"),
    ("set debug to true in the staging file", "set debug to false in the staging file"),
]


@pytest.mark.parametrize("tag", ["TRICK", "CONTEXT"])
def test_what_a_newer_note_says_differently_is_on_the_page_beside_the_older_one(house: House, tag: str) -> None:
    """A correction never strengthens what it corrects, and a parallel fact replaces none."""
    for turn in (0, 1):
        for pair in BOTH_STAY:
            assert house.harness("note", "--tag", tag, pair[turn]).code == 0
        assert house.role("curator").code == 0
    summary, memory = house.read(names.SUMMARY), house.read(names.MEMORY)
    for text in (text for pair in BOTH_STAY for text in pair):
        assert f"- {text}\n" in summary
        assert f"{text} (1x)" in memory


def test_a_decision_that_denies_another_is_the_current_one(house: House) -> None:
    """The older is history; parallel decisions stay."""
    web, core = BOTH_STAY[1]
    for text in (web, *BOTH_STAY[3], *BOTH_STAY[5]):
        house.harness("note", "--tag", "DECISION", text)
    assert house.role("curator").code == 0
    house.harness("note", "--tag", "DECISION", core)
    assert house.role("curator").code == 0
    summary = house.read(names.SUMMARY).split("\n")
    assert f"- {web}" not in summary
    assert {f"- {text}" for text in (core, *BOTH_STAY[3], *BOTH_STAY[5])} <= set(summary)


def test_the_same_facts_in_other_words_are_one_line(house: House) -> None:
    """Wherever they stand, with quotes or without, and with a capital at the beginning of a sentence."""
    for text in (
        "Postgres of the shop needs `make seed` before port 5432 answers",
        "before port 5432 of the shop answers, Postgres needs make seed",
    ):
        house.harness("note", "--tag", "TRICK", text)
    assert house.role("curator").code == 0
    assert "make seed (2x)" in house.read(names.MEMORY)


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
    assert facts(text)[1] == found


@pytest.mark.parametrize(
    ("text", "negates"),
    [
        ("it isn’t open", True),
        ("no longer", True),
        ("use A instead of B", True),
        ("ohne Netz", True),
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
