"""The commands that order something: they go through orders.jsonl, and print what became of it."""

from __future__ import annotations

import json

import pytest

from harness.mission import order_log
from tests.missions import House


def test_the_features_are_listed_a_line_each(house: House) -> None:
    """Id, status, tries, title."""
    assert house.harness("feature", "list").out.split("\n")[:2] == [
        "F-001  todo         0/3  Part one",
        "F-002  todo         0/3  Part two",
    ]


@pytest.mark.parametrize(
    ("words", "verb"),
    [
        (["feature", "set", "F-001", "title=An=other"], "feature set"),
        (["feature", "retry", "F-001"], "feature retry"),
        (["feature", "block", "F-001", "--reason", "later"], "feature block"),
        (["claim", "accept", "VAL-LOOK", "--note", "fine"], "claim accept"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_changes_state_goes_through_an_order(house: House, words: list[str], verb: str) -> None:
    """One line in orders.jsonl, and its result on standard output."""
    done = house.harness(*words)
    assert (done.code, done.err) == (0, "")
    given = json.loads(house.read("orders.jsonl").split("\n")[0])
    assert (given["verb"], given["by"]) == (verb, "person")
    assert order_log.pending(house.layout) == []


def test_an_assignment_needs_its_equals_sign(house: House) -> None:
    """The message has the example; everything after the first equals sign is the value."""
    assert "feature set F-001 priority=1" in house.harness("feature", "set", "F-001", "priority").err
    house.harness("feature", "set", "F-001", "title=a=b")
    assert house.feature().title == "a=b"


def test_an_escalation_is_answered_with_one_command(house: House) -> None:
    """And the mission continues."""
    house.harness("feature", "block", "F-001")
    done = house.harness("escalation", "answer", "go on")
    assert (done.code, done.out) == (0, "answered; the counts start again, and the next run reads it\n")
    assert house.feature().status == "todo"
