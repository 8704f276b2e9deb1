"""roles/worker.py on its own does what run.sh does: one commit, and the feature goes on to validation."""

from __future__ import annotations

from tests.missions import House


def test_its_tree_becomes_one_commit_and_nothing_is_believed_yet(house: House) -> None:
    """The feature is validating, not passed."""
    house.work({"run": "touch 1.txt"})
    assert house.git("log", "-1", "--format=%s") == "F-001: Part one"
    assert house.feature().status == "validating"


def test_without_a_feature_it_takes_the_next(house: House) -> None:
    """It takes the one that `harness next` names."""
    house.script("worker", {"run": "touch 1.txt"})
    assert house.role("worker").code == 0
    assert house.result()["feature"] == "F-001"
