"""`remove`: a mission goes for good, and nothing else does; `doctor` names what missions that are gone left."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from harness.mission import mission
from tests.missions import DISPOSABLE, PROGRAM, Done, House, differences, listing, until
from tests.planned import reply, worked

ENDS = {"run": 'touch 1.txt; touch "$TMPDIR/x"'}


@pytest.fixture
def ran(house: House) -> House:
    """A mission with a finished run, a tree, and refs."""
    worked(house, ENDS, reply(status="implemented"))
    assert house.tree.exists()
    return house


def refs(house: House) -> list[str]:
    """The names of the harness's refs."""
    return house.git("for-each-ref", "--format=%(refname)", "refs/harness").split()


def test_the_mission_of_the_folder_goes_after_a_question(ran: House) -> None:
    """Its sizes are shown; its branch, config.toml and another mission's archive stay; the next one can begin."""
    made, before = mission.load(ran.layout), listing(ran.project, *DISPOSABLE)
    run, tree = ran.result()["run"], ran.tree
    asked = ran.harness("remove", made.id)
    assert (asked.code, f"Confirm with: run.sh remove {made.id} --yes" in asked.err) == (64, True)
    assert all(text in asked.out for text in (f"{made.id}: 2 folders, ", str(ran.tree.parent), f"{made.branch} stays"))
    assert differences(before, listing(ran.project, *DISPOSABLE)) == []
    assert f"refs/harness/keep/{run}" in refs(ran)
    assert ran.harness("remove", made.id, "--yes").code == 0
    assert (refs(ran), tree.exists(), os.listdir(ran.state / "archive")) == ([], False, [])
    assert (ran.state / "config.toml").exists()
    assert (ran.git("branch", "--show-current"), ran.git("worktree", "list").count("\n")) == (made.branch, 0)
    assert ran.harness("init").code == 0
    assert ran.harness("doctor").code == 0


def test_an_archived_mission_goes_and_the_present_one_stays_as_it_is(ran: House) -> None:
    """With its refs; those of the present one's runs are kept. The commit that no branch has is named before."""
    old = mission.load(ran.layout)
    assert ran.harness("init", "--abandon", "--quietly").code == 0
    ran.git("branch", "-q", "-D", old.branch, check=False)
    ran.git("switch", "-q", "-C", old.branch, "main")
    before = listing(ran.state, "cache", "locks", "git-config")
    done = ran.harness("remove", old.id, "--yes")
    assert (done.code, "is its newest commit, and not on" in done.out) == (0, True), done
    after = listing(ran.state, "cache", "locks", "git-config")
    assert {name for name in differences(before, after) if not name.startswith(f"archive/{old.id}")} == set()
    assert (ran.state / "archive" / old.id).exists() is False
    assert not [ref for ref in refs(ran) if old.id in ref or "/keep/" in ref]
    assert ran.harness("status").code == 0


def test_a_mission_that_runs_is_refused_and_so_is_an_unknown_one(house: House) -> None:
    """75 and 64; nothing changes. No name leads to another folder or to the present mission."""
    house.script("worker", {"say": "here"}, {"sleep": 60})
    house.begin_role("worker", "F-001")
    until(lambda: "here" in house.harness("log").out)
    made = house.harness("remove", mission.load(house.layout).id, "--yes")
    assert (made.code, "is under way" in made.err) == (75, True), made
    for name in ("", "other", "../state", "other-0a1b2c"):
        assert house.harness("remove", name, "--yes").code == 64
    assert house.tree.exists()


def test_doctor_names_what_a_mission_left_whose_folder_is_gone(ran: House) -> None:
    """With the command that removes it; a mission that is in another folder is none of that."""
    old, top = mission.load(ran.layout).id, ran.tree.parent
    here = House(ran.folder, ran.env, "other")
    here.repository()
    here.begin()
    assert not [text for text in ("left by", "leftovers") if text in here.harness("doctor").out]
    elsewhere = here.harness("remove", old, "--yes")
    assert (elsewhere.code, f"is in another folder: run.sh remove {old} there, in {ran.project}" in elsewhere.err) == (
        64,
        True,
    )
    shutil.rmtree(ran.state)

    def alone(*words: str) -> Done:
        return here.run([sys.executable, "-P", str(PROGRAM), *words])

    left = Path(ran.env["TMPDIR"]) / f"harness-{old}-check-1"
    left.mkdir()
    shown = alone("doctor").out
    assert f"left by the mission {old}, which is gone: 2 folders, " in shown
    assert f"To remove it: run.sh remove {old}" in shown
    assert alone("remove", old, "--yes").code == 0
    assert (top.exists(), left.exists(), ran.git("worktree", "list").count("\n")) == (False, False, 0)
    assert not [ref for ref in refs(ran) if old in ref]
    assert "left by" not in here.harness("doctor").out


def test_a_temporary_folder_of_an_unknown_mission_is_named_after_a_day(house: House) -> None:
    """Until then it may belong to a mission that has only begun."""
    left = Path(house.env["TMPDIR"]) / "harness-other-0a1b2c-check-1"
    left.mkdir()
    assert "left by" not in house.harness("doctor").out
    os.utime(left, (0, 0))
    assert "left by the mission other-0a1b2c, which is gone: 1 folders" in house.harness("doctor").out
