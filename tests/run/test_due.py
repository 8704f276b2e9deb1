"""What is due: the last words of a prompt, for each role and cause."""

from __future__ import annotations

import pytest

from harness.mission.contract import Contract
from tests.missions import House
from tests.planned import claim, feature, lay, reply, worked
from tests.run.test_inputs import gathered, validated


@pytest.fixture
def one(house: House) -> House:
    """A mission with one feature to do; the file `made` decides its claim."""
    lay(house, [feature("F-001", "VAL-1")], Contract(claims=[claim("VAL-1", "test -f made")]))
    return house


def due(house: House, name: str, about: str = "F-001") -> str:
    """The last words of the prompt of such a run."""
    return gathered(house, name, about).due


def test_the_last_words_of_a_prompt_say_what_is_due(one: House) -> None:
    """For each role; of a worker with what was red last."""
    assert (
        due(one, "worker")
        == "Build F-001 now (attempt 1 of 3), as SPEC.md says, and leave nothing out. Each check above must become green."
    )
    assert due(one, "validator").startswith("Try to break F-001 now")
    assert due(one, "curator").startswith("Answer with the operations")
    worked(one, {"run": "touch other"})
    validated(one)
    assert due(one, "worker").startswith("Build F-001 now (attempt 2 of 3), as")
    assert due(one, "worker").endswith("The last time VAL-1 was red. Each check above must become green.")


def test_a_worker_mends_a_red_setup_first(house: House) -> None:
    """Before anything else can be green."""
    lay(house, [feature("F-001", "VAL-1")], Contract(claims=[claim("VAL-1", "test -f made")], setup="test -f lib"))
    worked(house, {"run": "touch other"})
    prompt = (house.state / "runs" / str(house.result()["run"]) / "prompt.md").read_text()
    assert "## What is due now\n\nMend the red setup first. Build F-001 now" in prompt


def test_a_disputed_claim_is_named(one: House) -> None:
    """The planner reads which."""
    worked(one, reply(status="blocked", reason="it cannot be", disputes=["VAL-1"]))
    assert due(one, "planner").startswith("F-001 cannot pass, for VAL-1 is disputed: plan it again")


def test_a_planner_reads_why_it_was_called(house: House) -> None:
    """No plan, a changed spec, a feature that failed, an open issue."""
    lay(house, [])
    assert due(house, "planner", "") == "There is no plan yet: plan all of SPEC.md."
    lay(house, [feature("F-001", "VAL-1", status="failing", attempts=3)])
    assert due(house, "planner").startswith("F-001 is failing: plan it again")
    house.write("SPEC.md", "# Another\n")
    house.git("commit", "-q", "-am", "spec")
    assert due(house, "planner", "").startswith("SPEC.md has changed: change the plan where it differs")
    assert house.harness("issue", "It hangs", "--severity", "major", "--evidence", "I saw it").code == 0
    assert "; plan what ends these issues: I-001." in due(house, "planner", "")
