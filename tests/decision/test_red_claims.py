"""Proof is by receipts of commits in the mission's branch: every screen says the same of what passed, is proven, and is DONE."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.mission import receipts
from harness.state import names
from tests.missions import House, copied, enter
from tests.planned import reseal, role


def done(house: House) -> None:
    """Two features that were red, built and validated, and the final sweep."""
    house.config('agent = "scripted"', "curate_after = 1000")
    house.script("validator", {"say": "fine"})
    house.script("curator", {"say": "nothing"})
    for number, name in enumerate(("F-001", "F-002"), start=1):
        role(house, "validator", name)
        house.work({"run": f"echo {number} > {number}.txt"}, feature=name)
        role(house, "validator", name)
    role(house, "validator")
    assert house.result()["verdict"] == "green"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, template: Path) -> Path:
    """Such a mission; tests work on copies."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("finished")
        done(copied(template, folder, enter(patch, folder)))
        return folder


@pytest.fixture
def proven(bare: House, finished: Path) -> House:
    """A copy of it."""
    made = copied(finished, bare.folder, bare.env)
    made.config('agent = "scripted"', "curate_after = 1000")
    made.script("validator", {"say": "fine"})
    return made


def screens(house: House) -> dict[str, tuple[int, int]]:
    """Features that passed and claims that are proven, as each screen says it; -1 where it says nothing of it."""
    rows = house.harness("status").out
    ending = house.harness("ending", "STOPPED").out
    page = (house.harness("report"), Path(house.layout.path(names.REPORT)).read_text())[1]
    tile = r"<dt>{}</dt><dd>(\d+) of"
    proven = [int(found[1]) for text in (rows, ending) if (found := re.search(r"proven +(\d+) of 3 claims", text))]
    return {
        "status": (len(re.findall(r"^F-00\d +passed", rows, re.M)), proven[0]),
        "ending": (number(r"(\d+) of 2 features passed", ending), proven[1]),
        "report": (number(tile.format("features passed"), page), number(tile.format("claims proven"), page)),
        "watch": (number(r"(\d+) of 2 passed", house.harness("watch", "--once").out), -1),
        "feature list": (len(re.findall(r"F-00\d +passed", house.harness("feature", "list").out)), -1),
        "feature show": (
            sum("\npassed after" in house.harness("feature", "show", name).out for name in ("F-001", "F-002")),
            -1,
        ),
    }


def number(pattern: str, text: str) -> int:
    """The number that the pattern finds."""
    found = re.search(pattern, text)
    assert found, (pattern, text)
    return int(found[1])


def agree(house: House, passed: int, proven: int) -> None:
    """Every screen says so."""
    assert {
        name: found for name, found in screens(house).items() if found not in ((passed, proven), (passed, -1))
    } == {}


def test_after_a_restore_what_runs_found_on_the_branch_that_was_left_does_not_count(proven: House) -> None:
    """Red receipts at commits that are not in the branch any more: all is proven as it was, and DONE is what `next` says."""
    sweep = proven.result()["run"]
    agree(proven, 2, 2)
    due = proven.harness("next").out
    proven.script("worker", {"run": "rm -f 1.txt 2.txt; echo 3 > 3.txt"})
    assert proven.role("worker", "F-001", "--again").code == 0
    role(proven, "validator", "F-001")
    assert proven.result()["verdict"] == "red"
    agree(proven, 1, 1)
    assert proven.program("snapshot", "restore", sweep).code == 0
    agree(proven, 2, 2)
    assert proven.harness("next").out == due
    kept = next(Path(proven.layout.path(names.SNAPSHOTS)).glob("*-before-restore*.json")).stem
    assert proven.program("snapshot", "restore", kept).code == 0
    agree(proven, 1, 1)


def test_a_feature_that_a_neighbour_broke_has_not_passed(house: House) -> None:
    """Its status is passed on disk until it is judged again; no screen shows or counts it so."""
    house.script("validator", {"say": "fine"})
    role(house, "validator", "F-001")
    house.work({"run": "echo 1 > 1.txt"})
    role(house, "validator", "F-001")
    agree(house, 1, 1)
    house.work({"run": "rm 1.txt; echo 2 > 2.txt"}, feature="F-002")
    role(house, "validator", "F-002")
    assert [house.feature(name).status for name in ("F-001", "F-002")] == ["passed", "failing"]
    agree(house, 0, 0)
    assert house.harness("next").out == "NEXT worker F-002\n"


def test_a_claim_that_is_red_since_the_final_sweep_makes_it_due_again(proven: House) -> None:
    """Also at the same commit, where a check that is green once more proves nothing: it was red and green at one tree."""
    role(proven, "validator", "F-001")
    run = proven.layout.run(proven.result()["run"])
    found = [one.replace(exit=1) if one.claim == "VAL-1" else one for one in receipts.load(run.receipts)]
    Path(run.receipts).write_bytes(receipts.render(found))
    reseal(proven)
    agree(proven, 1, 1)
    assert proven.harness("next").out == "NEXT validator\n"
    role(proven, "validator")
    agree(proven, 1, 1)
    assert proven.harness("next").out != "NEXT validator\n"
