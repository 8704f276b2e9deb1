"""Whether two notes are one, on labelled pairs, and how the nearest is found among many."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from harness.memory import _similarity
from harness.memory._similarity import Index
from harness.memory._words import words
from harness.memory.lessons import DECISION, Lessons
from tests.helpers import growth

# One lesson: the second has all words and facts of the first, and often more.
ONE = [
    ("use $PORT in the websocket test", "the websocket test hangs, use $PORT in it"),
    ("Feature flags are read at start-up", "feature flags are read at start-up, restart after a change"),
    ("retries hide the flaky login test", "the flaky login test is hidden by retries, it fails on a laptop"),
    ("the deploy needs two approvals", "a deploy needs 2 approvals, ask in the channel"),
    ("数据库迁移之前必须先备份数据", "数据库迁移之前必须先备份数据，再部署"),
    ("テストの前にデータベースを初期化する", "テストの前にデータベースを初期化する。"),
    ("Die Datenbank vor den Tests anlegen", "die Datenbank immer vor den Tests neu anlegen"),
]

# Two lessons, although most words are shared.
TWO = [
    # another number, name, identifier or quotation
    ("the nightly job starts workers", "the nightly job starts two workers"),
    ("run `alembic upgrade head` before the tests", "run `alembic downgrade base` before the tests"),
    # one plain word
    ("clicking the blue button opens the panel", "clicking the green button opens the panel"),
    ("测试之前必须启动数据库", "测试之后必须启动数据库"),
    # two that change places
    ("migration 0012 runs before 0013", "migration 0013 runs before 0012"),
    ("migration 0012 runs before 0013", "migration 0013 always runs before 0012 on staging"),
    ("the client calls the server", "the server calls the client"),
    # a negation
    ("use pnpm for installs in this repository", "never use pnpm for installs in this repository"),
    ("迁移之前要备份数据", "迁移之前不要备份数据"),
    # a word that says how many, must or may, whose, from or to, when
    ("all tests need the database", "some tests need the database"),
    ("you must restart the server after a change", "you may restart the server after a change"),
    ("copy the files from the cache to the store", "copy the files to the cache from the store"),
    ("my sister likes green tea", "her sister likes green tea"),
    ("run setup before the tests", "run setup after the tests"),
]


def is_one(old: str, new: str, kind: str = "lesson") -> bool:
    """Whether a newer note repeats the only known one."""
    known = Lessons()
    known.add(0, kind, old)
    return known.relations(kind, new)[0] is not None


@pytest.mark.parametrize("pair", ONE)
@pytest.mark.parametrize("kind", ["lesson", DECISION])
def test_a_note_with_the_facts_and_all_words_of_another_is_the_same_lesson(pair: tuple[str, str], kind: str) -> None:
    """Whichever came first, in English, German, Chinese and Japanese."""
    assert [is_one(*pair, kind), is_one(*pair[::-1], kind)] == [True, True]


@pytest.mark.parametrize("pair", TWO)
@pytest.mark.parametrize("kind", ["lesson", DECISION])
def test_notes_that_differ_in_a_fact_or_a_word_are_two_lessons(pair: tuple[str, str], kind: str) -> None:
    """Whichever came first: a line that is said twice costs less than a lost one."""
    assert [is_one(*pair, kind), is_one(*pair[::-1], kind)] == [False, False]


def test_something_to_avoid_repeats_no_advice() -> None:
    """The same words are an order and a prohibition; what already has a negation is not negated again."""
    known = Lessons()
    known.add(0, "lesson", "use pnpm for installs")
    known.add(1, "lesson", "never use yarn for installs")
    assert [known.relations("avoid", f"{order} for installs")[0] for order in ("use pnpm", "never use yarn")] == [
        None,
        1,
    ]


def test_a_note_without_words_is_like_itself_only() -> None:
    """Notes may be in any script, or empty."""
    assert is_one("漢字", "漢字")
    assert not is_one("???", "the")


def test_a_few_common_words_of_a_long_note_are_no_repetition_and_rare_ones_are() -> None:
    """Though the long note has all of them."""
    long = (
        "an old user gets lost where the nightly import writes a list with each name on the server, and the flamingo "
        "teardown of valkeyd kills the login of the next run in a second region"
    )
    assert is_one(long, "flamingo teardown of valkeyd")
    assert not is_one(long, "a list with a name")


def test_the_nearest_lesson_is_found_among_hundreds() -> None:
    """The one with the same words, and no other."""
    known, dice = Lessons(), random.Random(3)
    for number in range(600):
        known.add(number, "lesson", " ".join(f"w{dice.randrange(900)}" for _ in range(8)))
    for number, (one, _) in enumerate(ONE, 1000):
        known.add(number, "lesson", one)
    assert [known.relations("lesson", other)[0] for _, other in ONE] == list(range(1000, 1000 + len(ONE)))


def test_a_removed_note_is_not_found_and_weighs_nothing() -> None:
    """Another note of the same owner stays, and weighs what it weighs alone; sums are exact."""
    index, alone = Index(), Index()
    for text, owner in (("run setup first", 7), ("setup runs first of all", 7), ("run the setup script", 8)):
        index.add(text, owner)
    for text in ("run setup first", "run the setup script", "never added"):
        index.remove(text)
    alone.add("setup runs first of all", 7)
    assert [index.texts[number] for number in index.near(words("run setup first"))] == ["setup runs first of all"]
    for term in ("setup", "script"):
        assert (index.square(term), index.told(term)) == (alone.square(term), alone.told(term))
    assert index.size == 1


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
