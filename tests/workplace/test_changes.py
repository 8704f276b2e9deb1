"""What a mission, a feature and a run changed."""

from __future__ import annotations

from typing import Any

import pytest

from harness.base.errors import UsageFault
from harness.workplace import changes
from tests.missions import House, until


def text(house: House, name: str = "") -> list[str]:
    """The changes, each part as its title and its diff."""
    return [part for part in changes.text(house.layout, name).decode().split("# ") if part]


def again(house: House, command: str) -> dict[str, Any]:
    """One more run of the worker on the first feature."""
    house.script("worker", {"run": command})
    return house.work_again()


def test_a_feature_is_one_diff_of_its_commits_in_a_row(house: House) -> None:
    """Not a diff for each try; another feature's commit between two begins a new one. A run is its own commit."""
    first = house.work({"run": "echo one >1.txt"})["run"]
    second = again(house, "echo two >>1.txt")["run"]
    (both,) = text(house, "F-001")
    assert [f"F-001: {first} {second}\n" in both, "+one\n+two\n" in both] == [True, True]
    house.work({"run": "echo other >2.txt"}, feature="F-002")
    again(house, "echo three >>1.txt")
    assert ["+three" in one for one in text(house, "F-001")] == [False, True]
    (one,) = text(house, second)
    assert [" one\n+two\n" in one, "other" in one] == [True, False]


def test_the_mission_is_one_diff_against_its_start(house: House) -> None:
    """With what a person committed meanwhile."""
    house.work({"run": "echo one >1.txt"})
    house.write("main.py", "print('changed')\n")
    house.git("commit", "-qam", "mine")
    house.work({"run": "echo other >2.txt"}, feature="F-002")
    (whole,) = text(house)
    assert ["+one" in whole, "+other" in whole, "+print('changed')" in whole] == [True] * 3


def test_work_that_could_not_land_is_shown_as_such(unconfined: House) -> None:
    """Until later work of the feature landed."""
    house, begun, go = unconfined, unconfined.folder / "begun", unconfined.folder / "go"
    wait = f"touch '{begun}'; until [ -e '{go}' ]; do sleep 0.02; done"
    house.script("worker-F-001", {"run": f"{wait}; echo ours >main.py"})
    run = house.begin_role("worker", "F-001")
    until(begun.exists)
    house.script("worker-F-002", {"run": "echo theirs >main.py"})
    house.role("worker", "F-002")
    go.touch()
    run.wait()
    assert house.result()["outcome"] == "conflict"
    (kept,) = text(house, "F-001")
    assert [", not landed\n" in kept, "+ours" in kept] == [True, True]
    house.script("worker-F-001", {"run": "echo again >>main.py"})
    house.role("worker", "F-001")
    (now,) = text(house, "F-001")
    assert ["not landed" in now, "+again" in now] == [False, True]


def test_an_unknown_name_is_refused_and_nothing_is_no_diff(house: House) -> None:
    """A feature without work has no changes; a word that names nothing is a fault."""
    assert text(house, "F-001") == ["F-001 changed nothing\n"]
    with pytest.raises(UsageFault, match="There is no run 'F-9'"):
        changes.text(house.layout, "F-9")
