"""The temporary place: the run's commit and nothing newer, at the paths in the prompt."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.base import encoding
from harness.mission import config
from harness.process import confine
from harness.process.confine import BUBBLEWRAP
from harness.replay import _staging
from harness.replay.resends import state_at_run
from harness.state import names, objects
from tests.missions import CHECKOUT, House

SAYS = {"say": '```json harness\n{"status": "implemented", "summary": "done"}\n```'}
MOUNTS = confine.available() == BUBBLEWRAP


def staged(house: House, run_id: str, folder: Path) -> _staging.Stage:
    """The place of a run."""
    folder.mkdir()
    past = state_at_run.of_run(house.layout, run_id)
    return _staging.make(house.layout, past, config.load(house.layout), str(folder))


def git(stage: _staging.Stage, *words: str) -> str:
    """What git says in the clone."""
    words = ("git", "-c", "safe.directory=*", *words)
    return subprocess.run(
        words, cwd=stage.place.layout.folders.top, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_clone_has_what_was_there_and_nothing_later(house: House, tmp_path: Path) -> None:
    """The commit, work that had been interrupted by then; no later commit, tag or branch."""
    cut = str(house.work({"run": "echo half > half.txt; exit 1"})["run"])
    run = str(house.work_again("F-001")["run"])
    house.work({"run": "echo later > later.txt"}, SAYS, feature="F-002")
    house.git("tag", "later")
    house.git("branch", "later")
    stage = staged(house, run, tmp_path / "place")
    head = json.loads(house.read(f"runs/{run}/context.json"))["head"]
    assert git(stage, "rev-parse", "HEAD") == head
    assert f"refs/harness/partial/{cut}" in git(stage, "for-each-ref", "--format=%(refname)")
    assert "later" not in git(stage, "log", "--all", "--name-only") + git(stage, "for-each-ref")
    assert git(stage, "status", "--porcelain") == ""


def test_uncommitted_changes_of_a_person_are_there_again(house: House, tmp_path: Path) -> None:
    """Where a run of an older version worked in the project folder beside them: what was changed, and what was removed."""
    house.script("planner", {"say": "nothing"})
    house.role("planner")
    run = str(house.result()["run"])
    path = house.state / "runs" / run / "context.json"
    edited = objects.put(house.layout, b"print('edited')\n")
    row = json.loads(path.read_text()) | {"folder": "", "dirty": {"main.py": edited, "SPEC.md": ""}}
    path.write_text(json.dumps(row))
    (house.state / "runs" / run / "result.json").unlink()  # whose digest covers the context
    stage = staged(house, run, tmp_path / "place")
    assert (Path(stage.place.tree) / "main.py").read_text() == "print('edited')\n"
    assert not (Path(stage.place.tree) / "SPEC.md").exists()


def test_a_project_in_a_folder_of_a_repository_is_in_its_place(bare: House) -> None:
    """The clone is of the whole repository, and has no remote; the agent starts in the folder, where the checks find it."""
    bare.repository()
    inner = bare.project / "services" / "api"
    inner.mkdir(parents=True)
    (inner / "SPEC.md").write_text("# An api\n\nIt works.\n")
    bare.git("add", "-A")
    bare.git("commit", "-qm", "api")
    bare.git("remote", "add", "origin", "https://example.org/there")
    house = House(bare.folder, bare.env, "my project/services/api")
    house.begin()
    run = str(house.work({"run": "echo one > 1.txt"}, SAYS)["run"])
    house.script("worker", {"run": "test -f SPEC.md; (pwd; git remote -v) > 1.txt; harness note from-inside"}, SAYS)
    done = house.program("replay", run, "--agent", "scripted", "--json")
    assert (done.code, done.err) == (0, ""), done
    value: dict[str, Any] = json.loads(done.out)
    assert value["now"][0]["checks"] == [["VAL-1", "green"]]
    tree = json.loads(house.read(f"runs/{run}/context.json"))["folder"]
    assert not MOUNTS or f"+{tree}/services/api" in value["now"][0]["patch"]
    assert "example.org" not in value["now"][0]["patch"]
    assert "from-inside" in (house.state / "replays" / value["replay"]["id"] / "1" / "notes.jsonl").read_text()


def test_a_mission_that_was_moved_has_its_paths_rewritten(house: House, tmp_path: Path) -> None:
    """The prompt names a folder that is not this one: its Runtime context leads to the place, and the rest is byte for byte."""
    run = str(house.work({"run": "echo one > 1.txt"}, SAYS)["run"])
    old, before = str(house.state), house.prompt(run)
    house.project.rename(house.folder / "moved")
    house = House(house.folder, house.env, "moved")
    stage = staged(house, run, tmp_path / "place")
    assert not stage.mounted
    text = b"".join(part.data for part in stage.parts).decode()
    assert old not in text and stage.place.layout.state in text and stage.place.tree in text
    led = before.split("## Runtime context")[0].replace(old, stage.place.layout.state)
    assert text.split("## Runtime context")[0] == led
    assert (
        f"HARNESS_PROJECT={encoding.shell_word(stage.place.layout.folders.project)}"
        in Path(stage.place.layout.path(names.SHIM)).read_text()
    )
    assert os.readlink(f"{stage.place.tree}/.harness/bin/harness") == stage.place.layout.path(names.SHIM)


@pytest.mark.skipif(not MOUNTS, reason="bubblewrap does not work here")
def test_what_cannot_be_cloned_any_more_is_said(house: House) -> None:
    """64 with the commit; nothing is left but the folder of the replay."""
    run = str(house.work({"run": "echo one > 1.txt"}, SAYS)["run"])
    path = house.state / "runs" / run / "context.json"
    row = json.loads(path.read_text())
    gone = "0123456789" * 4
    path.write_text(json.dumps({**row, "head": gone}))
    (house.state / "runs" / run / "result.json").unlink()  # whose digest covers the context
    done = house.program("replay", run, "--agent", "scripted")
    assert done.code == 64 and gone[:12] in done.err, done
    assert CHECKOUT and not [name for name in os.listdir(house.env["TMPDIR"]) if "replay" in name]
