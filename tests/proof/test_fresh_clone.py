"""A clone as a place for checks: its own HOME and git, and neither the project nor a mission's tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.git import settings
from harness.mission import receipts
from harness.mission.check_environment import CheckEnvironment
from harness.process.confine import Confinement
from harness.proof import check_runs, fresh_clone
from harness.proof._outputs import OutputDigest
from harness.state.layout import state_home
from harness.workplace import confine
from tests.missions import House


def said(place: CheckEnvironment, command: str) -> str:
    """What a check with this command prints there."""
    output = OutputDigest()
    check_runs.run_shell(command, place, 20, output)
    return output.text()


def made(house: House, glass: Confinement | None, room: str = "temporary") -> CheckEnvironment:
    """A clone of the house, in a folder of its own."""
    place = CheckEnvironment(directory=str(house.project), head=house.head(), confinement=glass)
    (house.folder / room).mkdir(exist_ok=True)
    return fresh_clone.clone(house.layout, str(house.folder / room), place, settings.record(str(house.project)))


@pytest.fixture
def tree(house: House) -> Path:
    """A file in the tree of some mission."""
    path = Path(state_home()) / "other" / "tree-1" / "said"
    path.parent.mkdir(parents=True)
    path.write_text("hello\n")
    return path


def test_neither_the_project_nor_a_tree_is_there(house: House, tree: Path) -> None:
    """By any name; the clone itself is, and so is the rest of the machine."""
    place = made(house, confine.of_stranger())
    assert said(place, f"cat '{house.project}/main.py' '{tree}' '{house.project}/.git/HEAD' 2>&1").count("No such") == 3
    assert said(place, f"ls -A '{house.project}' '{state_home()}' | grep -v :$") == "\n"
    assert said(place, "cat main.py; command -v git >/dev/null && echo git") == "print('hello')\ngit\n"
    assert place.notes == []


def test_without_mounts_a_tracked_file_that_names_such_a_folder_is_a_sign(house: House, tree: Path) -> None:
    """Some files are named, the rest is counted; a receipt of the sweep has it among its signs."""
    assert made(house, None).notes == []
    for name in ("a", "b", "c", "d"):
        house.write(name, f"cat {tree}\n")
    house.write("e", f"cat '{house.project}/main.py'\n")
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "paths")
    (note,) = made(house, None, "again").notes
    assert note == receipts.OWN_FOLDER + "a, b, c, and 2 more"


def test_git_reads_the_recorded_configuration_and_no_variable_leads_it_elsewhere(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person's global configuration was recorded; what came later is not there, nor is what the project has, or no run may
    see."""
    config = house.write("../global", "[alias]\n\tfirst = one\n[words]\n\tfirst = one\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    recorded = settings.record(str(house.project))
    config.write_text("[alias]\n\tsecond = two\n")
    house.git("config", "alias.third", "three")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "alias.fourth")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "four")
    place = CheckEnvironment(directory=str(house.project), head=house.head())
    clone = fresh_clone.clone(house.layout, str(house.folder / "temporary"), place, recorded)
    assert said(clone, "git config --get-regexp '^(alias|words)'; git config safe.directory") == "alias.first one\n*\n"
    assert said(clone, "echo ~").startswith(str(house.folder / "temporary"))
