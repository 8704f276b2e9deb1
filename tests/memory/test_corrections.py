"""What a newer note must say so that an older line leaves the page, and what stands beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.memory._corrections import replaces
from harness.memory.lessons import DECISION, Lessons
from tests.memory.curating import Mission

PORT, REDIS = "the docs server listens on port 4000", "use redis for sessions"

# (older, newer): the newer says in one of the forms that the older no longer holds.
REPLACED = [
    (
        "the web team merges the release branch",
        "the web team no longer merges the release branch; the core team merges it",
    ),
    ("uploads are limited to 5 MB", "uploads are no longer limited to 5 MB but to 20 MB"),
    (PORT, "the docs server listens on port 4100 instead of 4000"),
    (PORT, "the docs server listens on a socket rather than on port 4000"),
    (PORT, "the docs server listens on port 4100 now, not on 4000"),
    (REDIS, "use postgres instead of redis for sessions"),
    ("Anna and Ben merge the release branch", "Anna and Carl merge the release branch instead of Ben"),
    (PORT, "the docs server does not listen on port 4000 but on 4100"),
    (PORT, "the docs server now listens on port 4100, was 4000"),
    (PORT, "the docs server now listens on port 4100 (it was 4000)"),
    (PORT, "the docs server is now on port 4100, previously on port 4000"),
]

# The newer says it of something else, or not in one of the forms: both hold.
KEPT = [
    # a fact, or most words, of the older are not repeated
    (PORT, "the docs server no longer listens on that port"),
    ("uploads are limited to 5 MB and 10 files", "uploads are no longer limited to 5 MB"),
    ("the nightly job checks types, links and spelling", "the nightly job no longer checks links"),
    # another subject, or a part of it
    (PORT, "the docs server of the shop no longer listens on port 4000"),
    (PORT, "the docs server no longer listens on port 4000 in CI"),
    (PORT, "the admin docs server listens on port 4100 instead of 4000"),
    ("the docs server of the shop listens on port 4000", "the docs server listens on port 4100 instead of 4000"),
    ("Anna merges the release branch", "Ben no longer merges the release branch, Anna does"),
    ("all tests need redis", "some tests no longer need redis"),
    # another object
    (REDIS, "use redis instead of postgres for sessions"),
    (REDIS, "use redis for sessions, not for jobs"),
    (REDIS, "use redis and postgres instead of cookies for sessions"),
    (REDIS, "use redis and postgres for sessions instead of that"),
    ("Leo and Eva like tea", "Leo likes tea instead of Eva"),
    # something more, or in two sentences
    (PORT, "the docs server listens not only on port 4000 but also on 4100"),
    (PORT, "the docs server on port 4000 listens no longer than that"),
    (PORT, "the docs server is on 4100. It no longer listens on port 4000"),
    # what lifts a prohibition
    ("never use redis for sessions", "use postgres instead of redis for sessions"),
    ("the worker cannot reach the queue", "the worker can reach the queue now, was unable"),
]

CORRECTED = [REPLACED[0], REPLACED[1], REPLACED[4]]
PARALLEL = [
    ("shard 1 lives on db-a", "shard 2 lives on db-b"),
    ("My son Leo is 9 years old.", "My dog Rex is 9 years old."),
    ("migration 0012 runs before 0013", "migration 0013 runs before 0014"),
    ("the retry limit of the mailer is 5ms", "the retry limit of the mailer is 5s"),
    ("wait 5 s because the broker starts slowly", "wait 10 s because the broker starts slowly"),
]

# Decisions of one name.
NAMED = [
    ("`db`: postgres", "`db`: redis"),
    ("`db`: postgres", "DB = redis with a pool"),
    ("db-engine: postgres", "db-engine: redis"),
    ("engine = postgres", "engine = redis"),
]

# Another name, or none.
UNNAMED = [
    ("`db`: postgres for jobs", "`cache`: postgres for jobs"),
    ("decided: postgres for jobs", "decided: postgres for mails"),
    ("we set `db`: postgres", "we set `db`: redis"),
]


def older(kind: str, old: str, new: str) -> list[int]:
    """The lessons that a newer note of a kind replaces, where there is one."""
    known = Lessons()
    known.add(0, kind, old)
    return known.relations(kind, new)[1]


@pytest.mark.parametrize(("old", "new"), REPLACED)
def test_a_note_that_says_that_an_older_one_no_longer_holds_replaces_it(old: str, new: str) -> None:
    """As a lesson and as a decision; the older, noted behind it, does not replace it in turn."""
    assert replaces(new, old, decisions=False)
    assert [older("lesson", old, new), older(DECISION, old, new)] == [[0], [0]]
    assert older("lesson", new, old) == []


@pytest.mark.parametrize(("old", "new"), [*KEPT, *PARALLEL])
def test_a_near_miss_stands_beside_the_older_note(old: str, new: str) -> None:
    """Whichever came first: a line that is wrongly replaced is lost."""
    assert not replaces(new, old, decisions=True)
    assert [older(kind, *pair) for kind in ("lesson", DECISION) for pair in ((old, new), (new, old))] == [[]] * 4


@pytest.mark.parametrize(("old", "new"), NAMED)
def test_of_two_decisions_with_one_name_the_newer_holds(old: str, new: str) -> None:
    """Whichever came first, and whatever they say; two lessons both hold."""
    assert [older(DECISION, old, new), older(DECISION, new, old)] == [[0], [0]]
    assert older("lesson", old, new) == []


@pytest.mark.parametrize(("old", "new"), UNNAMED)
def test_a_word_before_a_colon_is_no_name(old: str, new: str) -> None:
    """Nor is a name that does not come first; other names are other decisions."""
    assert [older(DECISION, old, new), older(DECISION, new, old)] == [[], []]


@pytest.mark.parametrize("tag", ["TRICK", "CONTEXT"])
def test_a_corrected_line_is_history_and_never_one_line_with_its_correction(tmp_path: Path, tag: str) -> None:
    """Where the correction was noted first, both are on the pages, each noted once."""
    one, other = Mission(tmp_path, "m-1"), Mission(tmp_path, "m-2")
    for turn in (0, 1):
        for pair in CORRECTED:
            one.note(tag, pair[turn])
            other.note(tag, pair[1 - turn])
        one.fold()
        other.fold()
    for old, new in CORRECTED:
        assert f"{old} (superseded by entry " in "".join(one.lines("History"))
        assert f" {new}\n" in one.summary and f" {old}\n" not in one.summary
        assert all(f" {text} (F-001 · 1x)" in other.memory and f" {text}\n" in other.summary for text in (old, new))


def test_parallel_facts_stand_side_by_side_the_newer_first(tmp_path: Path) -> None:
    """Each noted once, though other notes lie between them."""
    there = Mission(tmp_path)
    for turn in (0, 1):
        for pair in PARALLEL:
            there.note("TRICK", pair[turn])
        there.fold()
    shown = [line.partition("] ")[2] for line in there.lines("Lessons")]
    assert sorted(shown) == sorted(f"{text} (F-001 · 1x)" for pair in PARALLEL for text in pair)
    for old, new in PARALLEL:
        assert shown.index(f"{old} (F-001 · 1x)") == shown.index(f"{new} (F-001 · 1x)") + 1
        assert f" {old}\n" in there.summary and f" {new}\n" in there.summary
