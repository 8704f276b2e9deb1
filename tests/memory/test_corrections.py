"""What a newer note must say so that an older line leaves the page, and what stands beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.memory._corrections import replaces
from harness.memory.lessons import DECISION, Lessons
from tests.helpers import is_linear
from tests.memory.curating import Mission

PORT, REDIS, UPLOADS = "the docs server listens on port 4000", "use redis for sessions", "uploads are limited to 5 MB"

# (older, newer): the newer says in one of the forms that the older no longer holds.
REPLACED = [
    (
        "the web team merges the release branch",
        "the web team no longer merges the release branch; the core team merges it",
    ),
    (UPLOADS, "uploads are no longer limited to 5 MB but to 20 MB"),
    (PORT, "the docs server listens on port 4100 instead of 4000"),
    (PORT, "the docs server listens on a socket rather than on port 4000"),
    (REDIS, "use postgres instead of redis for sessions"),
    (PORT, "the docs server does not listen on port 4000 but on 4100"),
    (PORT, "the docs server now listens on port 4100, was 4000"),
    (PORT, "the docs server now listens on port 4100 (previously on port 4000)"),
    # what it has besides is a clause of its own
    (f"{PORT}, as agreed", "the docs server no longer listens on port 4000"),
]

# The newer says it of something else, or not in one of the forms: both hold.
KEPT = [
    # a fact or a plain word of the older is not repeated, or only in another form
    (PORT, "the docs server no longer listens on that port"),
    (f"{UPLOADS}, 10 files", "uploads are no longer limited to 5 MB"),
    ("the nightly job checks types and links of the site", "the nightly job no longer checks links of the site"),
    ("Anna merges the release branch", "the release branch is no longer merged"),
    (f"{PORT} in the shop", "the docs server no longer listens on port 4000"),
    (f"{PORT}. Its log is in var", "the docs server no longer listens on port 4000"),
    (f"{PORT}, so the server has a proxy", "the docs server no longer listens on port 4000"),
    ("the linter runs first, and the build fails on a dirty tree", "the linter no longer runs first"),
    ("the client connects over http", "the client no longer connects over https"),
    # another subject, or a part of it
    (PORT, "the docs server of the shop no longer listens on port 4000"),
    ("the docs server of the shop listens on port 4000", "the docs server listens on port 4100 instead of 4000"),
    ("Anna merges the release branch", "Ben no longer merges the release branch, Anna does"),
    ("the worker calls the api", "the api no longer calls the worker"),
    # a limit
    (PORT, "the docs server no longer listens on port 4000 in CI"),
    (PORT, "the docs server listens on port 4100 in CI instead of 4000"),
    (REDIS, "in tests use postgres instead of redis for sessions"),
    (UPLOADS, "uploads are no longer limited to 5 MB, except in the shop"),
    (UPLOADS, "uploads are no longer limited to 5 MB but only on staging"),
    # another object
    (REDIS, "use redis instead of postgres for sessions"),
    (REDIS, "use redis and postgres for sessions instead of that"),
    ("Leo and Eva like tea", "Eva no longer likes tea"),
    # the form is denied, asked, a condition or an attempt
    (REDIS, "never use postgres instead of redis for sessions"),
    ("run the tests with the seed", "the tests no longer run without the seed"),
    (PORT, "does the docs server no longer listen on port 4000?"),
    (PORT, "if the docs server no longer listens on port 4000, restart it"),
    (REDIS, "we tried postgres instead of redis for sessions, it was slower"),
    # something more, or in two sentences
    (PORT, "the docs server does not just listen on port 4000 but on 4100 too"),
    (PORT, "the docs server on port 4000 listens no longer than that"),
    (PORT, "the docs server is on 4100. It no longer listens on port 4000"),
    # what lifts a prohibition
    ("never use redis for sessions", "use postgres instead of redis for sessions"),
]

# Other words, as many as the older has or more: also what a reader takes for the same.
OTHER_WORDS = [
    ("use the cache in the pipeline", "disable the cache in the pipeline"),
    ("the port is in use", "the port is out of use"),
    ("используйте pnpm для установки", "не используйте pnpm для установки"),
    ("run the migrations before the seed data", "run the seed data before the migrations"),
    ("the api calls the worker", "the api is called by the worker"),
    ("the timeout of the mailer is 5 s", "the timeout of the mailer is 5 min"),
    ("coverage > 80 needed", "coverage < 80 needed"),
    ("delete branches with git branch -d", "delete branches with git branch -D"),
    ("the tests pass, the lint does not", "the tests do not pass, the lint does"),
    ("the server is on host alpha", "the server was on host alpha"),
    ("测试之前必须启动数据库", "测试之后必须启动数据库"),
    ("the deploy needs two approvals", "the deploy needs 2 approvals"),
    ("stage the tree with `git add`", "stage the tree with `git add .`"),
    ("R reloads the page", "r reloads the page"),
]

CORRECTED = REPLACED[:3]
PARALLEL = [
    ("shard 1 lives on db-a", "shard 2 lives on db-b"),
    ("My son Leo is 9 years old.", "My dog Rex is 9 years old."),
    ("migration 0012 runs before 0013", "migration 0013 runs before 0014"),
    ("the retry limit of the mailer is 5ms", "the retry limit of the mailer is 5s"),
    ("wait 5 s because the broker starts slowly", "wait 10 s because the broker starts slowly"),
]

# Decisions of one name.
NAMED = [
    ("db-engine: postgres", "`DB-engine` = redis with a pool"),
    ("db-engine: postgres", "db-engine: redis"),
    ("engine = postgres", "engine = redis"),
]

# Another name, or none.
UNNAMED = [
    ("db-engine: postgres for jobs", "cache-engine: postgres for jobs"),
    ("`db`: postgres", "`db`: redis"),
    ("docs/api.md: describe errors", "docs/api.md: describe pages"),
    ("we set db-engine: postgres", "we set db-engine: redis"),
]

# A kind, and a note; another, which is neither the same nor a correction.
KINDS = [
    ("lesson", REDIS, "avoid", REDIS),
    ("lesson", "avoid mocks of the clock", "avoid", "mocks of the clock"),
    ("fail", REDIS, "context", REDIS),
    ("lesson", REDIS, "avoid", REPLACED[4][1]),
    ("avoid", PORT, "lesson", REPLACED[2][1]),
    ("avoid", "set debug to true", "avoid", "set debug to false"),
    ("lesson", REDIS, DECISION, REPLACED[4][1]),
]


def related(kind: str, old: str, of: str, new: str) -> tuple[int | None, list[int]]:
    """Whether the only lesson, 0, is the same as a newer note of another kind, and whether the note replaces it."""
    known = Lessons()
    known.add(0, kind, old)
    return known.relations(of, new)


def older(kind: str, old: str, new: str) -> list[int]:
    """The lessons that a newer note of a kind replaces, where there is one."""
    return related(kind, old, kind, new)[1]


@pytest.mark.parametrize(("old", "new"), REPLACED)
def test_a_note_that_says_that_an_older_one_no_longer_holds_replaces_it(old: str, new: str) -> None:
    """Advice, a failure, or a decision; the older, noted behind it, does not replace it in turn."""
    assert replaces(new, old, decisions=False)
    assert [older(kind, old, new) for kind in ("lesson", "avoid", DECISION)] == [[0]] * 3
    assert older("lesson", new, old) == []


@pytest.mark.parametrize(("old", "new"), [*KEPT, *OTHER_WORDS, *PARALLEL])
def test_a_near_miss_stands_beside_the_older_note(old: str, new: str) -> None:
    """Whichever came first: a line that is wrongly replaced, or taken for another, is lost."""
    assert not replaces(new, old, decisions=True)
    pairs = [(kind, *pair) for kind in ("lesson", "avoid", DECISION) for pair in ((old, new), (new, old))]
    assert [related(kind, one, kind, other) for kind, one, other in pairs] == [(None, [])] * 6


@pytest.mark.parametrize(("kind", "old", "of", "new"), KINDS)
def test_advice_failures_and_decisions_are_apart(kind: str, old: str, of: str, new: str) -> None:
    """The same words are an order and a prohibition, and none corrects the other."""
    assert [related(kind, old, of, new), related(of, new, kind, old)] == [(None, [])] * 2


@pytest.mark.parametrize(("old", "new"), NAMED)
def test_of_two_decisions_with_one_name_the_newer_holds(old: str, new: str) -> None:
    """Whichever came first, and whatever they say; two lessons both hold."""
    assert [older(DECISION, old, new), older(DECISION, new, old)] == [[0], [0]]
    assert older("lesson", old, new) == []


@pytest.mark.parametrize(("old", "new"), UNNAMED)
def test_a_word_before_a_colon_is_no_name(old: str, new: str) -> None:
    """Nor is a name that does not come first; other names are other decisions."""
    assert [older(DECISION, old, new), older(DECISION, new, old)] == [[], []]


def test_a_correction_is_looked_for_in_time_that_grows_with_the_note() -> None:
    """Whatever stands before and behind a form, in one sentence or in many."""
    for part in ("x ", "now ", "not ", "no longer ", "instead of ", "x, was ", "not, but. ", "(", "_", "a_"):
        text = part * (10**3 // len(part))
        assert is_linear(lambda note: replaces(f"{note} instead of {note}", "redis x", decisions=True), text), part


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
