"""Events: what a finished run is, and what the decision is with which run.sh ends, each under an id of its own."""

from __future__ import annotations

import pytest

from harness.base import clock
from harness.mission import runs
from harness.run.notice import _events
from tests.missions import House


def names(house: House) -> list[str]:
    """The events of the newest run."""
    newest, *before = runs.finished(house.layout)
    return [event.name for event in _events.of_run(newest, next(iter(before), None))]


def test_a_validation_passed_or_failed(house: House) -> None:
    """And is a run, too."""
    house.work({"run": "touch 1.txt"})
    assert names(house) == ["run"]
    house.role("validator", "F-001")
    assert names(house) == ["run", "passed"]
    house.work({"run": "echo >other.txt"}, feature="F-002")
    house.role("validator", "F-002")
    assert names(house) == ["run", "failed"]


def test_a_missing_login_is_said_once(house: House) -> None:
    """Until an agent answered again."""
    house.work({"fail": "auth"})
    assert names(house) == ["run", "auth"]
    house.work({"fail": "auth"})
    assert names(house) == ["run"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("DONE", ["done"]),
        ("ESCALATE stuck", ["escalated", "stuck"]),
        ("ESCALATE proof", ["escalated"]),
        ("CHECKPOINT look", ["checkpoint"]),
        ("PAUSED", []),
        ("STOPPED", []),
    ],
)
def test_the_end_of_run_sh(house: House, line: str, expected: list[str]) -> None:
    """The same id however often it is looked at."""
    (house.state / "checkpoints").mkdir()
    (house.state / "checkpoints/look.md").write_text("Look.\n")
    found = _events.of_decision(house.layout, line, clock.now())
    assert [event.name for event in found] == expected
    assert [event.id for event in _events.of_decision(house.layout, line, clock.now())] == [event.id for event in found]


def test_a_checkpoint_that_is_asked_again_is_said_again(house: House) -> None:
    """As before a feature, behind a plan that a denial brought, or by the same file; while it waits the id stays."""
    look = house.state / "checkpoints" / "look.md"
    look.parent.mkdir()
    seen = []
    for _ in range(2):
        look.touch()
        found = [_events.of_decision(house.layout, "CHECKPOINT look", clock.now())[0].id for _ in range(2)]
        assert found[0] == found[1]
        seen.append(found[0])
        assert house.program("checkpoint", "grant", "look").code == 0
    assert len(set(seen)) == 2, seen


def test_a_cap_that_is_raised_is_said_again(house: House) -> None:
    """The id has the cap."""
    house.work({"run": "touch 1.txt"})
    found = []
    for most in (1, 1, 2):
        house.config('agent = "scripted"', "[limits]", f"max_runs = {most}")
        found += [event.id for event in _events.of_decision(house.layout, "BUDGET runs", clock.now())]
    assert found == ["budget-runs-1"] * 2
