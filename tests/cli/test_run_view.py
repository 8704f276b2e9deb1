"""How past runs look to a person."""

from __future__ import annotations

from tests.cli.test_tables import on_a_terminal
from tests.missions import House


def test_the_sections_are_a_table(house: House) -> None:
    """Size, section, source, digest and since when, a line each."""
    run_id = house.work({"say": "hello"})["run"]
    lines = house.harness("replay", run_id, "--explain").out.split("\n")
    assert lines[0].startswith(f"{run_id}: worker F-001, ")
    assert lines[1].split() == ["bytes", "tokens", "section", "source", "digest", "unchanged", "since"]
    assert any(line.split()[2:3] == ["roles/common.md"] for line in lines)
    assert lines[-2] == "cacheable  nothing: this is the first run of the worker"


def test_a_prompt_cannot_steer_a_terminal(house: House) -> None:
    """Its bytes go to a pipe only."""
    house.write(".harness/spec.md", "\x1b[2J wipe\n")
    run_id = house.work({"say": "hello"})["run"]
    assert r"\x1b[2J wipe" in on_a_terminal(house, "runs", "show", run_id, "--prompt")
    assert "\x1b[2J wipe" in house.program("runs", "show", run_id, "--prompt").out
