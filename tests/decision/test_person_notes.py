"""What a person says to one prompt alone is in one prompt, and not lost with a run that was cut short."""

from __future__ import annotations

import json

from harness.decision import person_notes
from tests.missions import House


def test_one_prompt_has_it_and_the_next_has_not(house: House) -> None:
    """It stays in the file, as taken by that run."""
    house.harness("steer", "--once", "look", "at the race")
    house.work({"run": "touch 1.txt"})
    assert "### What a person says to this run alone\n\n```\nlook at the race\n```" in house.prompt()
    assert house.harness("steer", "--list").out == "There are no notes yet.\n"
    house.work_again()
    assert "look at the race" not in house.prompt()
    assert [row.run for row in person_notes.rows(house.layout)] == ["", house.ran()[0]["run"]]


def test_a_run_at_its_limit_gives_it_back(house: House) -> None:
    """Its agent may not have read it; one that failed by its own fault has."""
    house.harness("steer", "--once", "be quick")
    house.work({"fail": "auth"})
    assert "be quick" in house.prompt()
    house.work({"fail": "agent_error"})
    assert "be quick" in house.prompt()
    house.work({"run": "touch 1.txt"})
    assert "be quick" not in house.prompt()


def test_both_kinds_have_numbers_and_can_be_taken_back(house: House) -> None:
    """Paragraphs of STEER.md first; a number that is not there is 64."""
    for words in (("use make",), ("keep it small",), ("--once", "now")):
        house.harness("steer", *words)
    rows = json.loads(house.harness("steer", "--list", "--json").out)
    assert [(row["number"], row["until"], row["text"]) for row in rows] == [
        (1, "until removed", "use make"),
        (2, "until removed", "keep it small"),
        (3, "once", "now"),
    ]
    assert house.harness("steer", "--remove", "4").code == 64
    assert house.harness("steer", "--remove", "3").out == "Removed: now\n"
    assert house.harness("steer", "--remove", "1").out == "Removed: use make\n"
    house.work({"run": "touch 1.txt"})
    assert ("keep it small" in house.prompt(), "use make" in house.prompt(), "now\n```" in house.prompt()) == (
        True,
        False,
        False,
    )
