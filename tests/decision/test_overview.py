"""The overview: what `next` decides, with what is proven and passed over it."""

from __future__ import annotations

import pytest

from harness.decision import overview
from tests.missions import House


def test_the_decision_is_that_of_next(house: House) -> None:
    """With the features and the status of each claim."""
    found = overview.gather(house.layout)
    assert f"{found.decision.line}\n" == house.harness("next").out
    assert [one.id for one in found.features] == ["F-001", "F-002"]
    assert {one.claim for one in found.proofs.statuses} == {"VAL-1", "VAL-2", "VAL-LOOK"}


@pytest.mark.parametrize(
    ("status", "kinds", "waits"),
    [
        ("blocked", ["reason", "needs"], "needs"),
        ("blocked", ["person"], "person"),
        ("blocked", [], None),
        ("todo", ["needs"], None),
    ],
)
def test_a_blocked_feature_waits_for_what_its_note_says(
    house: House, status: str, kinds: list[str], waits: str | None
) -> None:
    """Features or claims that it needs come first; another status waits for nothing."""
    notes = [{"kind": kind, "text": kind} for kind in kinds]
    note = overview.waits(house.feature("F-001").replace(status=status, notes=notes))
    assert (note["text"] if note else None) == waits
