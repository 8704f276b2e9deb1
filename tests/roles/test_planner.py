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


FILLED = {
    "F-…": "F-001",
    "VAL-…": "VAL-BUILD-001",
    "HEADING": "Version",
    "SHELL THAT IS RED NOW": r"out=$(./greet); test \"$out\" = \"greet 1.0\"",
    "SHELL THAT IS GREEN NOW": "make test",
}


def test_the_shape_that_planners_are_given_is_a_plan_once_its_words_are_replaced(unbegun: House) -> None:
    """With a check as the rules have it, which sees that the right words come with a wrong exit status."""
    words = (CHECKOUT / "roles" / "planner.md").read_text()
    example = words.rpartition("\n\n")[2]
    for word, meant in FILLED.items():
        assert word in example
        example = example.replace(word, meant)
    assert 'out=$(prog); test "$out" = x' in words
    unbegun.write("SPEC.md", "# Greet\n\n## Version\n\nIt says its version.\n")
    unbegun.write("Makefile", "build test:\n\ttrue\n")
    unbegun.git("add", "-A")
    unbegun.git("commit", "-q", "-m", "what there is")
    assert ask(unbegun, json.loads(example)) == 0
    for ends, code in ((3, 10), (0, 0)):
        (unbegun.project / "greet").write_text(f"#!/bin/sh\necho greet 1.0\nexit {ends}\n")
        (unbegun.project / "greet").chmod(0o755)
        assert unbegun.harness("check", "VAL-BUILD-001").code == code
