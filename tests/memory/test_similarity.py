"""How two notes relate, on labelled pairs: the same lesson, one subject of which the newer note holds, or unrelated."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from harness.memory import _similarity
from harness.memory._similarity import NEWER, SAME, UNRELATED, Index
from harness.memory._words import words
from harness.memory.lessons import DECISION, Lessons
from tests.helpers import growth

# Two wordings of one lesson.
ALIKE = [
    (
        "stop the dev server before you run e2e tests: they also need port 3000",
        "The dev server must be stopped before running the e2e tests, both bind port 3000",
    ),
    (
        "eslint --fix reorders imports and breaks the circular one in store.ts, exclude that file",
        "exclude store.ts from eslint --fix: its circular import breaks when imports are reordered",
    ),
    (
        "curl --retry does not retry on HTTP 500 without --retry-all-errors",
        "without --retry-all-errors curl --retry does not retry on HTTP 500",
    ),
    (
        "kubectl apply needs the namespace to exist, create it first",
        "create the namespace first or kubectl apply fails",
    ),
    (
        "Feature flags are read once at start-up, restart after changing them",
        "after changing feature flags restart the server, they are only read at start-up",
    ),
    (
        "The websocket test hangs when the port is taken, use $PORT",
        "use $PORT in the websocket test, it hangs if the port is taken already",
    ),
    ("数据库迁移之前必须先备份数据", "在数据库迁移之前一定要备份数据"),
    ("テストの前にデータベースを初期化する", "データベースはテストの前に初期化すること"),
    ("Vor den Tests muss die Datenbank neu angelegt werden", "Die Datenbank vor den Tests neu anlegen"),
    (
        "Access-Control-Allow-Origin: * with credentials is refused by browsers, echo the origin",
        "browsers refuse Access-Control-Allow-Origin: * with credentials; echo the origin",
    ),
]

# Two wordings, of which only one has a negation or an identifier: a line that is said twice costs less than a lost one.
SAID_TWICE = [
    ("awk on macOS has no gensub, use sed in scripts", "use sed in scripts: macOS awk lacks gensub"),
    ("make gen leaves schema.lock unchanged with --frozen", "with --frozen, make gen does not change schema.lock"),
    (
        "never run KEYS session:* on prod redis, it blocks the server; use SCAN with COUNT",
        "KEYS session:* blocks the prod redis server, use SCAN with COUNT",
    ),
    (
        "collect() in jobs/Run.scala kills the driver with java.lang.OutOfMemoryError, write the dataframe to s3",
        "collect() in jobs/Run.scala kills the driver with OutOfMemoryError, write the dataframe to s3",
    ),
]

# The second, as a decision, holds in the place of the first.
REPLACED = [
    ("jobs go through RabbitMQ", "use Redis streams instead of RabbitMQ for jobs"),
    ("we use RabbitMQ for background jobs", "background jobs: Redis streams instead of RabbitMQ"),
    ("use pnpm for installs", "never use pnpm for installs"),
    ("API pages have 50 rows", "API pages have 100 rows"),
    ("Sitzungen liegen in Redis", "Sitzungen liegen in Postgres statt in Redis"),
    ("缓存使用 Redis", "缓存改用 Memcached，不再使用 Redis"),
    ("redux holds the renderer state", "zustand holds the renderer state, redux removed"),
    ("background jobs switched to dramatiq", "no more dramatiq: background jobs sit in a postgres table"),
    ("fine-tune with AdamW lr 2e-5", "AdamW at lr 1e-5 is the fine-tuning setup"),
]

# The same for lessons: a changed value, or the opposite order.
OUTDATED = [
    ("use pnpm for installs in this repository", "never use pnpm for installs in this repository"),
    ("use `uv run` for the scripts", "never use `uv run` for the scripts"),
    ("Page numbers in the API start at 0", "Page numbers in the API start at 1"),
    ("Run black with --line-length 100 on the backend code", "Run black with --line-length 88 on the backend code"),
    (
        "set Application.Calculation = xlCalculationManual at the start of the macro",
        "don't set Application.Calculation = xlCalculationManual in the macro, after an error it stays",
    ),
    ("torch.compile the model, speedup 1.4x", "no torch.compile on the model, recompiles each batch"),
]

# Near misses: both stay.
APART = [
    ("the redis for sessions listens on port 6379", "the redis for jobs listens on port 6380"),
    ("测试之前必须启动数据库", "部署之后清理缓存目录"),
    ("Vor jedem Release die Version hochsetzen", "Nach dem Deployment den Cache leeren"),
    (
        "systemctl start postgresql before the integration tests",
        "systemctl stop postgresql before the embedded-db tests, port 5432 clashes",
    ),
    (
        'merge the orders with how="left", the report needs all rows',
        'merge the orders with how="outer", the audit needs both',
    ),
    ("run `alembic upgrade head` before the tests", "run `alembic downgrade base` before the tests"),
]


def relation(old: str, new: str, kind: str = "lesson", of_new: str = "") -> str:
    """How a newer note relates to the only known one."""
    known = Lessons()
    known.add(0, kind, old)
    same, older = known.relations(of_new or kind, new)
    return SAME if same is not None else NEWER if older else UNRELATED


@pytest.mark.parametrize("pair", ALIKE)
@pytest.mark.parametrize("kind", ["lesson", DECISION])
def test_two_wordings_are_one_lesson(pair: tuple[str, str], kind: str) -> None:
    """Whichever came first, in English, German, Chinese and Japanese."""
    assert [relation(*pair, kind), relation(*pair[::-1], kind)] == [SAME, SAME]


@pytest.mark.parametrize("pair", SAID_TWICE)
def test_two_warnings_of_one_thing_that_differ_in_a_fact_both_stay(pair: tuple[str, str]) -> None:
    """A warning replaces none, also where only one of the two refuses the thing."""
    assert [relation(*pair, "avoid", "fail"), relation(*pair[::-1], "fail", "avoid")] == [UNRELATED, UNRELATED]


@pytest.mark.parametrize("pair", REPLACED)
def test_of_two_decisions_on_one_subject_the_newer_holds(pair: tuple[str, str]) -> None:
    """Also where the newer goes back to what the older had left."""
    assert [relation(*pair, DECISION), relation(*pair[::-1], DECISION)] == [NEWER, NEWER]


@pytest.mark.parametrize("pair", OUTDATED)
def test_a_lesson_with_another_value_or_the_opposite_order_replaces_the_older(pair: tuple[str, str]) -> None:
    """Never both, and never one merged into the other."""
    assert [relation(*pair), relation(*pair[::-1])] == [NEWER, NEWER]


@pytest.mark.parametrize("pair", APART)
def test_near_misses_stay_apart(pair: tuple[str, str]) -> None:
    """A few words make another lesson of the same sentence."""
    assert [relation(*pair), relation(*pair[::-1])] == [UNRELATED, UNRELATED]


def test_notes_about_different_things_are_unrelated() -> None:
    """Every two notes of the lists that are no pair."""
    rows = [pair for pairs in (ALIKE, SAID_TWICE, OUTDATED, APART) for pair in pairs]
    wrong = [
        (one, other)
        for number, mine in enumerate(rows)
        for yours in rows[number + 1 :]
        for one in mine
        for other in yours
        if one != other and relation(one, other) == SAME
    ]
    assert wrong == []


def test_a_note_without_words_is_like_itself_only() -> None:
    """Notes may be in any script, or empty."""
    assert relation("漢字", "漢字") == SAME
    assert relation("???", "the") == UNRELATED


def test_the_nearest_lesson_is_found_among_hundreds() -> None:
    """The one with the same meaning, and no other."""
    known, dice = Lessons(), random.Random(3)
    for number in range(600):
        known.add(number, "lesson", " ".join(f"w{dice.randrange(900)}" for _ in range(8)))
    for number, (one, _) in enumerate(ALIKE, 1000):
        known.add(number, "lesson", one)
    assert [known.relations("lesson", other)[0] for _, other in ALIKE] == list(range(1000, 1000 + len(ALIKE)))


def test_a_removed_note_is_not_found() -> None:
    """Nor do its words count; another note of the same owner stays."""
    index = Index()
    for text in ("run setup first", "setup runs first of all"):
        index.add(text, 7)
    index.remove("run setup first")
    index.remove("never added")
    assert [index.texts[number] for _, number in index.near(words("run setup first"))] == ["setup runs first of all"]
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


def test_own_words_decide_where_most_words_differ() -> None:
    """A paraphrase has distinct words; two notes that share several rare words are still one lesson."""
    one = "use a key prefix in the teardown of valkeyd where FLUSHALL_ASYNC was called"
    two = "my login disappeared after each test run: FLUSHALL_ASYNC of valkeyd in the teardown was the reason"
    assert relation(one, two) == SAME
    three = "open the settings page and read the name of the current user before a release is made"
    four = "the nightly import writes a list with each name on the server, where an old user gets lost"
    assert relation(three, four) == UNRELATED


def test_longer_and_rather_deny_nothing_by_themselves() -> None:
    """Only "rather than", "instead of" and "no longer" do."""
    assert not words("the suite took 11 minutes longer and is rather flaky").denied
    assert (
        words("use locators rather than sleeps").denied == words("use locators instead of sleeps").denied != frozenset()
    )
    assert words("instead use locators").denied == frozenset()
