"""`pause`, `stop`, `resume` and `steer` as a person types them."""

from __future__ import annotations

import json

import pytest

from tests.missions import CHECKOUT, House

RUN_SH = str(CHECKOUT / "run.sh")


@pytest.mark.parametrize(("verb", "name", "word"), [("pause", "PAUSE", "PAUSED"), ("stop", "STOP", "STOPPED")])
def test_a_mission_is_halted_and_goes_on_by_commands(house: House, verb: str, name: str, word: str) -> None:
    """Each says what comes next; run.sh ends with 9 meanwhile."""
    done = house.run([RUN_SH, verb, "--why", "for lunch"])
    assert (done.code, done.out.endswith(". No run is under way, and none starts. To continue: run.sh resume\n")) == (
        0,
        True,
    )
    assert house.read(name).endswith(": for lunch\n")
    ended = house.run([RUN_SH])
    assert (ended.code, ended.out.split()[0]) == (9, word)
    assert "to continue: run.sh resume" in ended.out
    done = house.run([RUN_SH, "resume"])
    assert (done.code, done.out.startswith(f"Removed {name} ({verb} by "), "Start it: run.sh" in done.out) == (
        0,
        True,
        True,
    )
    assert house.harness("next").out == "NEXT worker F-001\n"


def test_what_a_person_says_is_in_the_next_prompt(house: House) -> None:
    """And shown by the command without words; a second one is added."""
    assert house.harness("steer").out == "There are no notes yet.\n"
    done = house.harness("steer", "use", "the standard library")
    assert done.out.startswith("Added to .harness/STEER.md. Every next run of planner, worker reads it")
    house.harness("steer", "--", "-- and no threads")
    assert house.harness("steer").out == "use the standard library\n-- and no threads\n"
    assert json.loads(house.harness("steer", "--json").out) == {"text": "use the standard library\n-- and no threads\n"}
    house.work({"run": "touch 1.txt"})
    assert "use the standard library\n-- and no threads\n" in house.prompt()


@pytest.mark.parametrize("words", [("pause",), ("stop",), ("resume",), ("steer", "do less")])
def test_inside_a_run_nobody_steers(house: House, words: tuple[str, ...]) -> None:
    """Exit code 64, and nothing is written; looking is allowed."""
    (house.state / "STOP").write_text("stop\n") if words == ("resume",) else None
    before = {name: (house.state / name).exists() for name in ("PAUSE", "STOP", "STEER.md")}
    (house.state / "runs" / "r").mkdir(parents=True)
    done = house.program(*words, HARNESS_INSIDE="r")
    assert (done.code, "is not for the inside of a run" in done.err) == (64, True), done
    assert before == {name: (house.state / name).exists() for name in before}
    assert house.program("steer", HARNESS_INSIDE="r").code == 0
