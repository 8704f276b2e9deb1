"""roles/validator.py on its own does what run.sh does: receipts decide, and without an agent it proposes nothing."""

from __future__ import annotations

from harness.mission.features import Feature
from tests.missions import House


def test_without_a_playbook_the_checks_alone_decide(house: House) -> None:
    """Green passes."""
    house.lay(Feature(id="F-001", title="Part one", claims=["VAL-1"], status="validating"))
    house.write("1.txt")
    house.git("add", "1.txt")
    house.git("commit", "-q", "-m", "part one")
    assert house.role("validator", "F-001").code == 0
    assert house.feature().status == "passed"


def test_an_agents_word_passes_nothing(house: House) -> None:
    """The agent's confidence does not matter."""
    house.lay(Feature(id="F-001", title="Part one", claims=["VAL-1"], status="validating"))
    house.script("validator", {"say": "All is well.\n```json harness\n{}\n```\n"})
    assert house.role("validator", "F-001").code == 10
    assert house.feature().status == "failing"
