"""roles/planner.py on its own does what run.sh does: a plan lands whole, or not at all."""

from __future__ import annotations

import json

from tests.missions import CHECKOUT, House

PLAN = {
    "features": [{"id": "F-001", "title": "One", "claims": ["VAL-A"]}],
    "contract": [{"id": "VAL-A", "claim": "There is an a", "checks": ["test -f a.txt"]}],
}


def ask(house: House, plan: object) -> int:
    """A planner with this reply; its exit code by hand."""
    (house.project / "playbooks").mkdir(exist_ok=True)
    (house.project / "playbooks/planner.md").write_text(f"```json harness\n{json.dumps(plan)}\n```\n")
    return house.role("planner").code


def test_it_starts_the_mission_and_its_plan_lands(unbegun: House) -> None:
    """SPEC.md alone gives features, contract and the accepted spec."""
    assert ask(unbegun, PLAN) == 0
    assert unbegun.feature("F-001").status == "todo"
    assert "### VAL-A: There is an a" in unbegun.read("validation-contract.md")
    assert unbegun.read("spec.md") == (unbegun.project / "SPEC.md").read_text()


def test_a_plan_that_is_not_good_lands_nowhere(unbegun: House) -> None:
    """Exit 10 by hand; no feature, no contract."""
    assert ask(unbegun, {**PLAN, "contract": []}) == 10
    assert not (unbegun.state / "features.json").exists()
    assert unbegun.result()["accepted"] is False


def test_the_example_that_planners_are_given_is_a_plan_whose_check_sees_a_failure(unbegun: House) -> None:
    """The right words with a wrong exit status are red."""
    _, _, example = (CHECKOUT / "roles" / "planner.md").read_text().rpartition("\n\n")
    unbegun.write("SPEC.md", "# Greet\n\n## Version\n\nIt says its version.\n")
    unbegun.write("Makefile", "build test:\n\ttrue\n")
    unbegun.git("add", "-A")
    unbegun.git("commit", "-q", "-m", "what there is")
    assert ask(unbegun, json.loads(example)) == 0
    for ends, code in ((3, 10), (0, 0)):
        (unbegun.project / "greet").write_text(f"#!/bin/sh\necho greet 1.0\nexit {ends}\n")
        (unbegun.project / "greet").chmod(0o755)
        assert unbegun.harness("check", "VAL-BUILD-001").code == code
