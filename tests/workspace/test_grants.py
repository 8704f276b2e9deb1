"""What a repository brings, and what a person has accepted of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.base.errors import Unavailable
from harness.state.layout import Layout
from harness.workspace import grants
from tests.missions import CHECKOUT, House
from tests.workspace.workspaces import accepted, person, ran, shown, skill

SERVER = {"mcpServers": {"own": {"command": "python", "args": ["-m", "own", "a b"], "env": {"K": "v"}}}}


def test_what_is_accepted_is_of_one_folder_and_of_one_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept outside the folder, for its owner alone; a damaged record is a record of nothing."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    one, two = Layout(str(tmp_path / "one")), Layout(str(tmp_path / "two"))
    first, second = grants.Grants(rows=["a"], digest="1"), grants.Grants(rows=["b"], digest="2")
    first.accept(one)
    second.accept(one)
    assert first.is_accepted(one) and second.is_accepted(one) and not first.is_accepted(two)
    assert grants.Grants().is_accepted(two)  # nothing is brought
    path = Path(grants.path(one))
    assert path.stat().st_mode & 0o077 == 0 and (tmp_path / "state") in path.parents
    path.write_text('{"accepted": 5}')
    assert not first.is_accepted(one)


def test_a_run_leaves_out_what_was_not_accepted_and_says_so(house: House) -> None:
    """Servers and skills with files; a skill of words and every rule count at once. Each word of a server is shown."""
    house.write("tools.json", json.dumps({**SERVER, "deny": ["execute(git push*)"]}))
    house.write("skills/x/SKILL.md", skill("x"))
    house.write("skills/x/run.sh", "true\n")
    house.write("skills/words/SKILL.md", skill("words"))
    house.git("add", "-A")
    house.git("commit", "-qm", "theirs")
    assert "- words: " in ran(house) and "- x: " not in ran(house)
    found = shown(house)
    assert found["tools"]["servers"] == [] and found["tools"]["deny"] == ["execute(git push*)"]
    [line] = found["left_out"]
    assert line.endswith("MCP server own: python -m own 'a b' (K=v); skill x: run.sh") and "workspace accept" in line
    accepted(house.layout)
    assert "- x: " in ran(house)


def test_a_change_of_a_run_that_waits_is_no_other_content(house: House) -> None:
    """What counts is what was accepted; accepting the change of the run accepts what it brings."""
    person(house, {"skills/x/SKILL.md": skill("x"), "skills/x/run.sh": "one\n"})
    ran(house, "echo two > skills/x/run.sh")
    assert [one["name"] for one in shown(house)["skills"]] == ["x"]
    assert house.harness("workspace", "accept", "skills/x/run.sh").code == 0
    assert [one["name"] for one in shown(house)["skills"]] == ["x"]


def test_a_mission_does_not_run_with_a_harness_folder_of_the_repository(house: House) -> None:
    """Its hooks and roles are not its person's; where they accept it, it goes on until its configuration changes."""
    shutil.rmtree(house.state / ".git")  # with it git adds nothing of the folder
    record, elsewhere = json.loads(house.read("git.json")), str(house.folder / "other.git")
    shutil.copytree(house.project / ".git", elsewhere)
    house.git("add", "-f", ".harness/config.toml")
    house.git("commit", "-qm", "theirs")
    done = house.role("worker", "F-001")
    assert done.code == 69 and "The repository has a .harness of its own" in done.err
    assert house.harness("ending", "done").code == 69
    house.write(".harness/git.json", json.dumps({**record, "git_dir": elsewhere, "common": elsewhere}))
    assert house.harness("ask", "hi").code == 69  # whatever repository the folder names
    house.write(".harness/git.json", json.dumps(record))
    assert ".harness/config.toml: agent" in house.harness("workspace", "accept").out
    assert "The repository" not in house.role("worker", "F-001").err
    house.config('agent = "scripted"', "curate_after = 3")
    with pytest.raises(Unavailable):
        grants.check_state(house.layout)


def test_no_script_of_a_harness_folder_of_the_repository_runs_before_it_is_accepted(unbegun: House) -> None:
    """Whoever starts it, in a folder below the top, too; a change of any file is asked about again."""
    house, run_sh = unbegun, str(CHECKOUT / "run.sh")
    made, below = house.folder / "made", house.project / "below"
    for name, text in {"planner.py": f"open({str(made)!r}, 'w')\n", "other.md": "words\n"}.items():
        house.write(f"below/.harness/roles/{name}", text)
    house.write("below/SPEC.md", "# A\n")

    def committed() -> None:
        house.git("add", "-f", "below")
        house.git("commit", "-qm", "theirs")

    committed()
    for words in (["--once"], ["planner"], ["doctor"], ["status"]):
        done = house.run([run_sh, *words], below)
        assert done.code == 69 and ".harness: roles/other.md, roles/planner.py. Look at it" in done.err, (words, done)
    assert house.run([run_sh, "workspace", "show"], below).code == 69
    assert not made.exists()
    assert "accepted: .harness: roles/other.md" in house.run([run_sh, "workspace", "accept"], below).out
    house.run([run_sh, "planner"], below)
    assert made.exists()
    house.write("below/.harness/roles/other.md", "others\n")
    committed()
    assert house.run([run_sh, "planner"], below).code == 69
