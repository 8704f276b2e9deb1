"""Which notes look alike, on labelled pairs, and how the nearest is found among many."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from harness.memory import _similarity
from harness.memory._similarity import Index
from harness.memory._words import words
from harness.memory.lessons import Lessons
from tests.helpers import growth

# The same in other words, in any order.
ALIKE = [
    ("use $PORT in the websocket test", "the websocket test hangs, use $PORT in it"),
    ("retries hide the flaky login test", "the flaky login test is hidden by retries, it fails on a laptop"),
    ("the deploy needs two approvals", "a deploy needs 2 approvals, ask in the channel"),
    ("数据库迁移之前必须先备份数据", "数据库迁移之前必须先备份数据，再部署"),
    ("テストの前にデータベースを初期化する", "テストの前にデータベースを初期化する。"),
    ("Die Datenbank vor den Tests anlegen", "die Datenbank immer vor den Tests neu anlegen"),
]

# Most words are shared, but not a number, a name, an identifier, a quotation or a negation; or few words are.
UNALIKE = [
    ("the nightly job starts workers", "the nightly job starts two workers"),
    ("the release branch is merged by Anna", "the release branch is merged by Ben"),
    ("run `alembic upgrade head` before the tests", "run `alembic downgrade base` before the tests"),
    ("use pnpm for installs in this repository", "never use pnpm for installs in this repository"),
    ("迁移之前要备份数据", "迁移之前不要备份数据"),
    ("clear the cache before a deploy", "restart the worker after a deploy"),
]


@pytest.mark.parametrize(("one", "other"), [*ALIKE, *UNALIKE])
def test_notes_are_alike_that_share_their_facts_and_most_words(one: str, other: str) -> None:
    """Such lessons are counted together, in English, German, Chinese and Japanese; they stay two lines."""
    known = Lessons()
    known.add(0, "lesson", one)
    later = known.add(1, "lesson", other)
    assert [found.id for found in known.alike(later)] == ([0] if (one, other) in ALIKE else [])
    assert known.relations("lesson", other) == (1, [])


def test_a_note_without_words_looks_like_none() -> None:
    """Notes may be in any script, or empty."""
    index = Index()
    for number, text in enumerate(("漢字", "???", "the", "")):
        index.add(text, number)
    assert [index.near(words(text)) for text in ("漢字", "???", "the", "")] == [[0], [], [], []]


def test_the_nearest_note_is_found_among_hundreds() -> None:
    """First, and of several that are as near the oldest; another note comes behind it."""
    index, dice = Index(), random.Random(3)
    for number in range(600):
        index.add(" ".join(f"w{dice.randrange(900)}" for _ in range(8)), number)
    for number, (one, _) in enumerate(ALIKE, 1000):
        index.add(one, number)
    nearest = [index.near(words(other))[0] for _, other in ALIKE]
    assert [index.owners[number] for number in nearest] == [*range(1000, 1000 + len(ALIKE))]
    index.add(f"{ALIKE[0][0]}.", 2)
    assert [index.owners[number] for number in index.near(words(ALIKE[0][1]))[:2]] == [2, 1000]


def test_a_removed_note_is_not_found_and_weighs_nothing() -> None:
    """Another note of the same owner stays, and weighs what it weighs alone; sums are exact."""
    index, alone = Index(), Index()
    for text, owner in (("run setup first", 7), ("setup runs first of all", 7), ("run the setup script", 8)):
        index.add(text, owner)
    for text in ("run setup first", "run the setup script", "never added"):
        index.remove(text)
    alone.add("setup runs first of all", 7)
    assert [index.texts[number] for number in index.near(words("run setup first"))] == ["setup runs first of all"]
    assert [index.square(term) for term in ("setup", "script")] == [alone.square(term) for term in ("setup", "script")]
    assert (index.exact, index.size) == (alone.exact, 1)


def test_looking_up_stays_bounded_when_every_note_shares_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the notes take four times the steps: no look-up compares with all notes."""
    monkeypatch.setattr(_similarity, "MAX_LISTED", 20)
    dice = random.Random(2)
    syllables = [f"{a}{b}" for a in ("lo", "ka", "mi", "ru", "te") for b in ("ban", "dor", "fen", "gul", "pim")]

    def made(count: int) -> Callable[[], object]:
        texts = [" ".join(dice.sample(syllables, 9)) for _ in range(count)]

        def body() -> None:
            known = Lessons()
            for number, text in enumerate(texts):
                if known.relations("lesson", text)[0] is None:
                    known.add(number, "lesson", text)

        return body

    assert growth(made) < 6
