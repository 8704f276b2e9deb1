"""How a replay that fires looks to a person, and its exit codes."""

from __future__ import annotations

import json

from tests.missions import House

SAYS = {"say": '```json harness\n{"status": "implemented", "summary": "done"}\n```'}


def test_it_says_what_it_fires_then_both_sides_then_where_it_is_kept(house: House) -> None:
    """The same work is said to be the same; another one is shown."""
    run = house.work({"run": "echo one > 1.txt"}, SAYS)["run"]
    lines = house.program("replay", run, "--agent", "scripted").out.split("\n")
    assert lines[0].startswith(f"resends the prompt of {run}: ")
    assert lines[1].split() == ["then", "now"]
    assert lines[2].split() == ["agent", "scripted", "scripted"]
    assert lines[3].split() == ["outcome", "ok", "ok"]
    assert "the work is identical" in lines
    assert lines[-2].startswith("kept in .harness/replays/")
    house.script("worker", {"run": "printf 'one\\x1b[2J\\n' > 1.txt"}, SAYS)
    shown = house.program("replay", run, "--agent", "scripted").out
    assert "--- work then" in shown and "\x1b" not in shown


def test_the_exit_code_says_how_it_ended(house: House) -> None:
    """As that of a run by hand; the mission's own wait for a vendor is not touched."""
    run = house.work({"run": "echo one > 1.txt"}, SAYS)["run"]
    due = house.program("next").out
    for step, outcome, code in (
        ({"fail": "limit", "reason": "later"}, "limit", 75),
        ({"fail": "auth", "reason": "who"}, "auth", 69),
        ({"run": "exit 3"}, "agent_error", 10),
    ):
        house.script("worker", step)
        done = house.program("replay", run, "--agent", "scripted", "--json")
        assert (done.code, json.loads(done.out)["samples"][0]["outcome"]) == (code, outcome), done
    assert house.program("next").out == due


def test_an_agent_that_is_not_there_leaves_nothing(house: House) -> None:
    """69 for a program that is missing, 65 for a name that is not known; no folder of a replay."""
    run = house.work(SAYS)["run"]
    house.config('agent = "scripted"', "[agents.mine]", 'command = ["not-there"]')
    assert house.program("replay", run, "--agent", "mine").code == 69
    assert house.program("replay", run, "--agent", "nobody").code == 65
    assert not (house.state / "replays").exists()
