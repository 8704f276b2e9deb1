"""Setup: when it runs again in a tree, and when what it made counts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.base.errors import RunCut
from harness.mission.check_environment import CheckEnvironment
from harness.mission.contract import Contract
from harness.proof import check_runs
from harness.workplace import confine
from tests.missions import House
from tests.proof.cheats import Cheat, does
from tests.proof.test_gallery import play

COUNTING = "mkdir -p made/bin && echo >made/bin/tool && echo x >>ran"
KNOWN = Contract(setup=COUNTING, setup_inputs=["web/lock", "kinds", "absent"])


@pytest.fixture
def mission(house: House) -> House:
    """A repository with two inputs of a setup, whose results git ignores."""
    house.write(".gitignore", "made/\nran\n")
    for name in ("web/lock", "kinds/a"):
        house.write(name)
    commit(house)
    return house


def commit(house: House) -> None:
    """Commit everything."""
    house.git("add", "-A")
    house.git("commit", "-q", "--allow-empty", "-m", "next")


def runs(house: House, known: Contract = KNOWN, where: Path | None = None) -> int:
    """How often the setup has run in this tree, after it was asked for at HEAD."""
    place = CheckEnvironment(directory=str(where or house.project), head=house.head())
    check_runs.setup_once(house.layout, known, place)
    return ((where or house.project) / "ran").read_text().count("x")


def test_a_commit_without_a_change_of_an_input_needs_no_setup(mission: House) -> None:
    """Without inputs each commit needs it, as before."""
    assert [runs(mission), runs(mission)] == [1, 1]
    mission.write("main.py", "print(2)\n")
    commit(mission)
    assert runs(mission) == 1
    whole = KNOWN.replace(setup_inputs=[])
    assert [runs(mission, whole), runs(mission, whole)] == [2, 2]
    commit(mission)
    assert runs(mission, whole) == 3


@pytest.mark.parametrize("name", ["web/lock", "kinds/a", "kinds/new", "absent"])
def test_a_changed_new_or_absent_input_needs_it(mission: House, name: str) -> None:
    """A folder as an input means all files in it; a file that does not exist yet may come, and go."""
    runs(mission)
    before = (mission.project / name).read_text() if (mission.project / name).exists() else None
    mission.write(name, "other\n")
    assert runs(mission) == 1  # what counts is committed
    commit(mission)
    assert runs(mission) == 2
    if before is None:
        (mission.project / name).unlink()
    else:
        mission.write(name, before)
    commit(mission)
    assert runs(mission) == 3  # the tree has what the setup made of the other content


def test_another_command_or_other_inputs_need_it(mission: House) -> None:
    """The same command again, too: the tree is as the other one left it."""
    runs(mission)
    assert runs(mission, KNOWN.replace(setup=COUNTING + "; true")) == 2
    assert runs(mission, KNOWN.replace(setup_inputs=["web/lock"])) == 3
    assert runs(mission) == 4


@pytest.mark.parametrize("gone", ["made", "made/bin"])
def test_what_it_made_and_an_agent_removed_is_made_again(mission: House, gone: str) -> None:
    """A folder, or what is right in it."""
    runs(mission)
    shutil.rmtree(mission.project / gone)
    assert runs(mission) == 2
    assert (mission.project / "made/bin/tool").exists()


def test_a_setup_that_ended_red_or_not_at_all_forgets_the_green_one(mission: House) -> None:
    """Both may have left the tree half changed, also where a later commit goes back to what was green."""
    runs(mission)
    for number, command in enumerate(["rm made/bin/tool; exit 3", "rm made/bin/tool; sleep 30"]):
        place = CheckEnvironment(directory=str(mission.project), head=mission.head(), until=[float("inf"), 0.0][number])
        try:
            assert "exit 3" in check_runs.setup_once(mission.layout, KNOWN.replace(setup=command), place)
        except RunCut:
            assert number == 1
        assert runs(mission) == 2 + number


def test_each_tree_remembers_its_own(mission: House) -> None:
    """Lanes that work at the same time do not make each other forget; results of one tree say nothing of another."""
    other = mission.folder / "tree-2"
    mission.git("worktree", "add", "-q", "--detach", str(other))
    assert [runs(mission), runs(mission, where=other)] == [1, 1]
    assert [runs(mission), runs(mission, where=other)] == [1, 1]


# the packages of a mission


CACHE = ".npm/_cacache"
FETCHES = f"mkdir -p ~/{CACHE}; cat ~/{CACHE}/from >had || echo the network >had; echo the first setup >~/{CACHE}/from"
AGENT = f"for at in ../tree-1.home ../packages ~; do (mkdir -p $at/{CACHE}; echo an agent >$at/{CACHE}/from) || :; done"
CHECK = f"echo the code of a worker >~/{CACHE}/from; cat had"


def test_the_first_clone_begins_with_the_packages_of_the_first_setup_and_the_plain_one_without(tmp_path: Path) -> None:
    """So does another tree. Neither an agent nor the code of a worker, which a check runs, gets anything into them."""
    books = {"worker.md": does(AGENT, f"echo '{CHECK}' >check.sh")}
    plan: dict[str, list[object]] = {"F-001": ["bash check.sh"]}
    played = play(
        Cheat(name="", plan=plan, books=books, runs=9, files={".gitignore": "had\n"}, setup=FETCHES), tmp_path
    )
    assert played.done, played.ended
    had = {one.phase: one.output for one in played.receipts() if one.green}
    assert had == {"after": "the first setup\n", "sweep": "the first setup\n", "outside": "the network\n"}
    (state,) = (tmp_path / "state" / "harness").glob("*/tree-1.home")
    assert (state / CACHE / "from").read_text() == "the code of a worker\n"
    other = confine.home_of_checks(str(played.house.project), str(state.parent / "tree-2.home"))
    assert (Path(other) / CACHE / "from").read_text() == "the first setup\n"
