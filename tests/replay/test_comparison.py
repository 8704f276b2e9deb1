"""What is compared when a mission is played back, and what is left aside."""

from __future__ import annotations

from typing import Any

from harness.mission import features
from harness.mission.receipts import Receipt
from harness.replay import _comparison
from harness.replay._replica import Replica
from harness.state import names
from tests.planned import feature


class Known(Replica):
    """A copy of which only the commits are known."""

    def __init__(self) -> None:
        self.commits = {"a" * 40: "b" * 40}


def test_a_text_that_names_a_commit_is_compared_by_both_ids() -> None:
    """Whole, or by its first digits; any other word is a difference, with its line."""
    old, same, other = (f"one\npassed at {name}: x\n".encode() for name in ("a" * 10, "b" * 10, "c" * 10))
    assert list(_comparison._texts("r", names.MEMORY, old, same, Known())) == []
    assert list(_comparison._texts("r", names.MEMORY, b"a" * 40, b"b" * 40, Known())) == []
    (found,) = _comparison._texts("r", names.MEMORY, old, other, Known())
    assert (found.what, found.got) == (f"line 2 of {names.MEMORY}", f"passed at {'c' * 10}: x")
    (found,) = _comparison._texts("r", names.MEMORY, old, b"one\n", Known())
    assert found.got == ""


def test_a_queue_is_compared_without_its_notes() -> None:
    """Status, tries and words of each feature; notes have times and ids."""
    one, two = feature("F-001"), feature("F-001")
    two.note("2026-04-24T10:05:12Z", "r", "judged")
    assert list(_comparison._queue("r", features.render([one]), features.render([two]), set())) == []
    two.attempts = 1
    (found,) = _comparison._queue("r", features.render([one]), features.render([two]), set())
    assert ("0 tries" in found.expected, "1 tries" in found.got) == (True, True)
    (found,) = _comparison._queue("r", features.render([one]), features.render([]), set())
    assert found.got == "not in the queue"


def test_of_a_feature_that_another_run_works_on_the_status_is_not_compared() -> None:
    """Whether it was in progress already when this run settled is not recorded; its tries are."""
    one, two = feature("F-001"), feature("F-001", status="in_progress")
    assert list(_comparison._queue("r", features.render([one]), features.render([two]), {"F-001"})) == []
    assert len(list(_comparison._queue("r", features.render([one]), features.render([two]), {"F-002"}))) == 1
    two.attempts = 1
    assert len(list(_comparison._queue("r", features.render([one]), features.render([two]), {"F-001"}))) == 1


def test_the_exits_of_a_check_are_compared_in_turn() -> None:
    """Also those of a check that ran twice; one that ran out of time has no exit."""
    made = [Receipt(claim="C", command="x", phase="after", exit=code, **_rest()) for code in (1, 0, None)]
    assert _comparison._fired(made) == {("C", "after", "x"): ["1", "0", "out of time"]}


def _rest() -> dict[str, Any]:
    texts = dict.fromkeys(("output", "output_sha256", "head", "tree", "by", "host", "at"), "")
    return {**texts, "seconds": 0.1}
