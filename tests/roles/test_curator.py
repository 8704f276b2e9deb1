"""roles/curator.py on its own does what run.sh does: code alone compacts the waiting notes."""

from __future__ import annotations

import json

from tests.missions import House


def test_it_folds_what_waits_without_an_agent(house: House) -> None:
    """The entry of raw.md is in memory, and counted."""
    assert house.harness("note", "--tag", "TRICK", "wc -l < file prints no name").code == 0
    assert house.role("curator").code == 0
    assert "wc -l < file prints no name" in house.read("memory/MEMORY.md")
    assert json.loads(house.read("memory/curated.json"))["folded"] == 1


def test_it_asks_nobody_whose_answer_it_would_not_use(house: House) -> None:
    """A configured agent neither starts nor costs money."""
    house.script("curator", {"usage": {"cost_usd": 1.5}}, {"run": "touch asked"})
    house.harness("note", "--tag", "TRICK", "wc -l < file prints no name")
    house.role("curator")
    assert (house.result()["usage"], house.result()["agents"]) == (None, [])
    assert not (house.project / "asked").exists()


def test_nothing_waiting_changes_nothing(house: House) -> None:
    """A second run changes nothing."""
    house.harness("note", "--tag", "TRICK", "wc -l < file prints no name")
    house.role("curator")
    before = house.read("memory/MEMORY.md")
    assert house.role("curator").code == 0
    assert house.read("memory/MEMORY.md") == before
