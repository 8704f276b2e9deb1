"""Golden missions in the middle of a run (v2/README.md): the run is settled, and the mission goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.state import names
from tests.crash import TORTURE
from tests.formats.golden import Golden
from tests.missions import CHECKOUT

ARCHIVES = Path(__file__).parent / "v2"
WORK = {"main.py": "print('parts')\n# cut", "two.txt": "tw", "new.txt": "new"}
NOTED = ("parts are plain text", "cat >file reads standard input to its end")


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
