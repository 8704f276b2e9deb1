"""What a mission knows: lessons with wordings and evidence, kept in a file that is only believed where it fits."""

from __future__ import annotations

import random

import pytest

from harness.memory import lessons
from harness.memory.lessons import DECISION, Lesson, Lessons
from tests.helpers import nasty
from tests.memory.curating import SERVER, SERVER_TOO


def known(count: int) -> Lessons:
    """So many lessons of each kind."""
    made, dice = Lessons(), random.Random(1)
    for number in range(count):
        kind = (*lessons.ADVICE, DECISION, "other")[number % 6]
        one = made.add(number, kind, f"{nasty(dice)} about thing{number}")
        made.say(one, kind, f"thing{number} in other words")
    return made


def test_the_file_comes_back_as_written() -> None:
    """Lessons, the lines of the pages, what is owed; and what is found is the same."""
    made = known(60)
    made.written, made.others, made.owed = {"memory": {"- x": 1}}, {"- F-1": 5}, [{"seq": 1}]
    made.pages = {"memory": "abc"}
    data = lessons.render(made, 60, 3)
    back = lessons.parse(data, 60, 3)
    assert back is not None
    assert back.all == made.all
    assert (back.written, back.others, back.owed) == (made.written, made.others, made.owed)
    assert back.pages == made.pages
    assert lessons.render(back, 60, 3) == data
    for number in range(60):
        for kind in ("lesson", DECISION):
            assert back.relations(kind, f"thing{number} in words") == made.relations(kind, f"thing{number} in words")


def test_a_file_that_does_not_fit_is_as_good_as_none() -> None:
    """Of another state of the archive, of another format, torn, or not ours."""
    data = lessons.render(known(6), 6, 3)
    assert lessons.parse(data, 7, 3) is None
    assert lessons.parse(data, 6, 4) is None
    assert lessons.parse(None, 6, 3) is None
    for broken in (
        b"",
        b"{}\n",
        b"[]\n",
        b"\xff",
        data[: len(data) // 2],
        data + b"{}\n",
        data.replace(b'"format":%d' % lessons.FORMAT, b'"format":9'),
    ):
        assert lessons.parse(broken, 6, 3) is None


def test_a_lesson_shows_its_fullest_words_and_a_decision_its_newest() -> None:
    """Of two that tell as much the shorter; unless an agent gave it words."""
    made = Lessons()
    lesson = made.add(0, "lesson", SERVER_TOO)
    for text in (f"{SERVER}!", SERVER, SERVER_TOO):
        made.say(lesson, "lesson", text)
    assert lesson.text == SERVER
    decision = made.add(1, DECISION, "plain files only")
    made.say(decision, DECISION, "only plain files are written")
    assert decision.text == "only plain files are written"
    made.say(decision, DECISION, "plain files only")
    assert decision.text == "plain files only"
    lesson.said = "given words"
    assert lesson.text == "given words"


def test_wordings_are_bounded_and_each_is_found() -> None:
    """Of advice the one that says least leaves, of a decision the oldest."""
    full = "wording 0 of a thing with parts"
    for kind, kept in (("lesson", full), (DECISION, "wording 19 of thing")):
        made = Lessons()
        one = made.add(0, kind, full)
        for number in range(1, 20):
            made.say(one, kind, f"wording {number} of thing")
        assert len(one.texts) == lessons.MAX_WORDINGS
        assert kept in one.texts and one.text == kept
        assert all(made.relations(kind, text) == (0, []) for text in one.texts)
        assert made.relations(kind, "wording 1 of thing") == (None, [])


@pytest.mark.parametrize("kind", ["lesson", "avoid", DECISION])
def test_the_same_words_are_the_same_lesson(kind: str) -> None:
    """Also where none of them tells anything, or where they differ in space, backticks and a full stop."""
    made = Lessons()
    made.add(7, kind, "keep `it` as it is.")
    for text in ("keep `it` as it is.", "keep it  as it is"):
        assert made.relations(kind, text) == (7, [])
    assert made.relations(kind, "keep it as it is, always") == (None, [])
    assert kind == "avoid" or made.relations(kind, "Keep it as it is") == (7, [])


def test_what_was_replaced_comes_back_in_its_own_words_only() -> None:
    """In others, or on new terms, it is a lesson of its own."""
    made = Lessons()
    old = made.add(0, "lesson", "materialize fct_orders as incremental")
    made.supersede(old, made.add(1, "lesson", "materialize fct_orders as a table rather than as incremental"))
    again, anew = old.text, ("materialize fct_orders as incremental again", f"{old.text}, lookback 3")
    assert [made.relations("lesson", text)[0] for text in (again, *anew)] == [0, None, None]


def test_a_correction_that_is_repeated_corrects_what_was_noted_in_between() -> None:
    """Word for word; it stays one lesson."""
    made, new = Lessons(), "uploads are no longer limited to 5 MB but to 20 MB"
    made.add(0, "lesson", new)
    between = made.add(1, "lesson", "uploads are limited to 5 MB")
    assert made.relations("lesson", new) == (0, [1])
    made.supersede(between, made.all[0])
    assert made.relations("lesson", new) == (0, [])


def test_a_deleted_lesson_does_not_return_in_other_words() -> None:
    """As advice; with another fact, or as a failure, it is another lesson."""
    made = Lessons()
    made.add(0, "lesson", SERVER).state = lessons.FORGOTTEN
    assert [made.relations(kind, SERVER_TOO)[0] for kind in ("lesson", "context", "avoid")] == [0, 0, None]
    assert made.relations("lesson", SERVER_TOO.replace("3000", "4000")) == (None, [])
    made.add(1, "lesson", SERVER_TOO)
    assert made.relations("lesson", SERVER_TOO) == (1, [])


def test_a_fact_that_is_noted_as_advice_is_advice() -> None:
    """And stays so; nothing becomes a decision that way."""
    made = Lessons()
    one = made.add(0, "fail", SERVER)
    for kind, wanted in (
        ("other", "fail"),
        ("context", "context"),
        ("avoid", "avoid"),
        ("lesson", "avoid"),
        ("fail", "avoid"),
    ):
        made.retag(one, kind)
        assert one.kind == wanted
    assert made.relations("avoid", SERVER)[0] == 0
    made.retag(one, DECISION)
    assert one.kind == "avoid"


def test_two_lessons_become_one_with_the_evidence_of_both() -> None:
    """And the one that left is found in its words."""
    made = Lessons()
    one, two = made.add(0, "lesson", SERVER), made.add(1, "lesson", "port 3000 is shared by e2e and dev")
    one.count, two.count, two.voices = 2, 3, ["worker F-2"]
    made.merge(two, one)
    assert ([*made.all], one.count, one.voices) == ([0], 5, ["worker F-2"])
    assert made.relations("lesson", "port 3000 is shared by e2e and dev")[0] == 0


def test_of_too_many_lessons_the_weakest_are_forgotten() -> None:
    """First invalid ones without a second note; a person's deletions stay known."""
    made = Lessons()
    for number in range(lessons.MAX_LESSONS + 50):
        made.all[number] = Lesson(id=number, kind="other", texts=["x"], last=number)
    made.all[0].state = lessons.FORGOTTEN
    made.all[4000].state = lessons.SUPERSEDED
    made.all[1].voices = ["a", "b"]
    made.prune()
    assert len(made.all) == lessons.MAX_LESSONS
    assert {0, 1} <= made.all.keys()
    assert 4000 not in made.all
