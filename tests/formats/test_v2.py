"""Golden missions of format 2 (v2/README.md): their facts hold, dead runs are settled, and they go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.base import clock
from harness.mission import features, runs
from harness.state import files, names
from tests.crash import TORTURE, contents
from tests.formats.golden import Golden
from tests.missions import CHECKOUT

ARCHIVES = Path(__file__).parent / "v2"
WORK = {"main.py": "print('parts')\n# cut", "two.txt": "tw", "new.txt": "new"}
NAMES = ("done", "middle", "escalated", "journal", "waiting")
NOTED = ("parts are plain text", "cat >file reads standard input to its end")


def facts(name: str) -> dict[str, Any]:
    """The facts of a golden mission."""
    return dict(json.loads((ARCHIVES / f"{name}.json").read_text()))


def at_that_time(name: str) -> tuple[Golden, dict[str, Any]]:
    """A golden mission whose clock stands where its facts were collected, and these."""
    golden, said = Golden(name, ARCHIVES), facts(name)
    path = golden.folder / "clock"
    path.write_bytes(clock.shown(said["at"], 0, clock.SETTLES))
    golden.env[clock.RECORDED] = str(path)
    return golden, said


def known(golden: Golden) -> dict[str, bytes]:
    """The files of the state, except what is disposable."""
    return {path: data for path, data in contents(str(golden.state)).items() if "/cache/" not in path}


@pytest.mark.parametrize("name", NAMES)
def test_what_reads_a_mission_says_what_was_said_and_changes_nothing(name: str) -> None:
    """`next`, `status`, `usage`, `memory show` and `doctor`."""
    golden, said = at_that_time(name)
    before = known(golden)
    done = golden.program("next")
    assert {"code": done.code, "out": done.out, "err": done.err} == said["next"]
    assert json.loads(golden.program("status", "--json").out) == said["status"]
    assert json.loads(golden.program("usage", "--json").out) == said["usage"]
    assert golden.program("memory", "show").out == said["memory"]
    assert golden.program("doctor").code == said["doctor"]
    assert known(golden) == before


@pytest.mark.parametrize("name", NAMES)
def test_a_start_settles_what_it_settled(name: str) -> None:
    """Runs, features and spending are as before; every prompt is made of its manifest byte for byte."""
    golden, wanted = at_that_time(name)
    settled = wanted["settled"]
    done = golden.start()
    assert (done.code, done.out) == (settled["said"]["code"], settled["said"]["out"]), done
    assert golden.program("next").out == settled["next"]["out"]
    found = {one.id: [one.status, one.attempts] for one in features.load(golden.layout)}
    assert found == settled["features"]
    assert json.loads(golden.program("usage", "--json").out)["total"] == settled["total"]
    assert golden.program("doctor").code == 0
    assert runs.broken_seals(golden.layout, 10**6) == []
    prompts = {row["run"]: row["prompt"] for row in wanted["runs"] if row["prompt"]}
    assert prompts == {run: rebuilt(golden, run) for run in prompts}
    assert golden.program("replay", "--all").code == 0


def rebuilt(golden: Golden, run: str) -> str:
    """The digest of a run's prompt, made of the parts that its manifest names."""
    parts = json.loads(Path(golden.layout.run(run).manifest).read_text())
    return files.digest(b"".join(part["text"].encode() if "text" in part else kept(golden, part) for part in parts))


def kept(golden: Golden, part: dict[str, str]) -> bytes:
    """The bytes of an object."""
    name = part["object"]
    return (golden.state / "objects" / name[:2] / name[2:]).read_bytes()


def test_a_mission_that_was_stopped_by_hand_goes_on() -> None:
    """Notes of every kind are read; the waiting role is started, and a second start changes nothing."""
    golden, wanted = Golden("middle", ARCHIVES), facts("middle")
    assert golden.start().code == 0
    notes = {note["kind"] for one in features.load(golden.layout) for note in one.notes}
    assert notes == {note["kind"] for one in wanted["features"].values() for note in one["notes"]}
    before = known(golden)
    assert golden.start().out == ""
    assert known(golden) == before
    done = golden.run([str(CHECKOUT / "run.sh"), "--once"])
    assert (done.code, wanted["settled"]["next"]["out"] in done.out.replace("> ", "")) == (0, True), done
    assert len(golden.ran()) == len(wanted["runs"]) + 1
    assert golden.program("doctor").code == 0


def died(golden: Golden) -> str:
    """The run that has no line in the run log."""
    (name,) = {path.name for path in (golden.state / "runs").iterdir()} - {row["run"] for row in golden.ran()}
    return name


def go_on(golden: Golden) -> None:
    """Today's run.sh, with an agent that works the feature of the dead run; it reaches DONE with what was noted."""
    reply = json.dumps({"status": "implemented", "summary": "Two."})
    golden.script("worker-F-002", {"run": "echo two >two.txt"}, {"say": f"```json harness\n{reply}\n```"})
    done = golden.run([str(CHECKOUT / "run.sh")])
    assert (done.code, "DONE  " in done.out) == (0, True), done
    assert [(row["role"], row["feature"], row["outcome"], row["verdict"]) for row in golden.ran()[3:]] == [
        ("worker", "F-002", "killed", ""),
        ("worker", "F-002", "ok", ""),
        ("validator", "F-002", "ok", "green"),
        ("validator", "", "ok", "green"),
        ("curator", "", "ok", ""),
    ]
    assert "two.txt has no heading" in golden.read("issues.jsonl")
    memory = golden.program("memory", "show").out
    assert all(text in memory for text in NOTED), memory
    assert golden.program("doctor").code == 0


def settled(golden: Golden, run: str) -> dict[str, Any]:
    """The line of the dead run: what it spent counts, and no file is refused."""
    row = golden.ran()[3]
    assert (row["run"], row["outcome"], row["refused"], row["usage"]["cost_usd"]) == (run, "killed", [], 0.5)
    return row


def test_a_mission_that_was_killed_in_the_middle_of_a_run_goes_on_to_done() -> None:
    """The run is settled as killed with all that it left; its feature is worked again, and no other."""
    golden = Golden("tree", ARCHIVES)
    run, before = died(golden), golden.ran()
    go_on(golden)
    assert golden.ran()[:3] == before
    work = [golden.git("show", f"{settled(golden, run)['commit']}:{name}") for name in WORK]
    assert work == list(WORK.values())
    assert (golden.project / "two.txt").read_text() == "two\n"


def test_a_run_in_the_project_folder_is_settled_before_the_start_ends_with_65() -> None:
    """Its work stays in the folder as if it were a person's; with that put aside, and without the line, its feature is due."""
    golden = Golden("folder", ARCHIVES)
    run, line = died(golden), 'workplace = "project"'
    for _ in range(2):
        done = golden.run([str(CHECKOUT / "run.sh")])
        assert (done.code, line in done.err, len(golden.ran())) == (65, True, 4), done
    assert settled(golden, run)["commit"] == ""
    assert {name: (golden.project / name).read_text().rstrip("\n") for name in WORK} == WORK
    Path(golden.layout.path(names.CONFIG)).write_text(golden.read("config.toml").replace(f"{line}\n", ""))
    golden.git("stash", "-q", "-u")
    assert golden.program("next").out == "NEXT worker F-002\n"
    if TORTURE:
        go_on(golden)
        assert (golden.project / "two.txt").read_text() == "two\n"
    assert golden.git("show", "stash@{0}^3:new.txt") == "new"
