"""A feature passes by a claim that its checks prove, or that a person accepts: nothing else reaches DONE."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.state import names
from tests.missions import House
from tests.planned import contract_of, due, log_of, reply, role

IMPLEMENTED = reply(status="implemented")
GREEN = "test -s SPEC.md"  # before any work
GUARD = {"run": GREEN, "guard": True}
MANUAL = {"id": "VAL-9", "claim": "It looks right", "manual": True}


def planned(house: House, *checks: list[Any], **more: Any) -> dict[str, Any]:
    """A planner's run: F-001 with VAL-1 and the first checks, F-002 with VAL-2 and the second, and so on; returns its result."""
    claims = [{"id": f"VAL-{n}", "claim": f"Part {n} works", "checks": one} for n, one in enumerate(checks, start=1)]
    found = [{"id": f"F-00{n}", "title": f"Part {n}", "claims": [f"VAL-{n}"]} for n in range(1, len(checks) + 1)]
    house.script("planner", reply(features=found, contract=claims, **more))
    role(house, "planner")
    return house.result()


def begun(house: House) -> House:
    """The mission before its first plan, in which nothing else is due than what the tests look at."""
    house.lay()
    Path(house.layout.path(names.CONTRACT)).unlink()
    house.script("validator", {"say": "fine"})
    house.script("curator", {"say": "nothing"})
    house.script("worker", {"run": "touch one"}, IMPLEMENTED)
    return house


def built(house: House, *names: str, idle: tuple[str, ...] = ()) -> str:
    """Work on these features, then validations of all and the final sweep; returns the decision."""
    for name in names:
        role(house, "worker", name)
        role(house, "validator", name)
    for name in idle:
        role(house, "validator", name)
    role(house, "validator")
    assert house.result()["verdict"] == "green", house.result()
    assert house.role("curator").code == 0
    return due(house)


def states(house: House) -> dict[str, str]:
    """{feature: its status, as people see it}."""
    return {row["id"]: row["status"] for row in json.loads(house.harness("status", "--json").out)["features"]}


def test_a_feature_that_no_worker_touched_does_not_pass_beside_one_that_is_proven(house: House) -> None:
    """Its check was green from the start, and its plan came twice: a person decides before DONE, with one command."""
    begun(house)
    refused = planned(house, ["test -f one"], [GREEN])
    assert (refused["accepted"], "is green already" in refused["reason"]) == (False, True)
    assert "sent again" not in refused["reason"]
    assert planned(house, ["test -f one"], [GREEN])["accepted"]
    assert built(house, "F-001", idle=("F-002",)) == "ESCALATE proof"
    assert house.harness("next").code == 3
    assert states(house) == {"F-001": "passed", "F-002": "unproven"}
    ending = house.harness("ending", "ESCALATE proof").out
    assert "1 of 2 features passed" in ending
    assert "F-002: no claim is proven" in ending
    assert "claim accept VAL-2" in ending
    assert house.harness("claim", "accept", "VAL-2").code == 0
    assert (due(house), states(house)["F-002"]) == ("DONE", "passed")
    assert "accepted  VAL-2" in house.harness("ending", "DONE").out


def test_what_a_validator_proposes_proves_no_claim(house: House) -> None:
    """It can make a claim red, and stays in the contract as a guard; a claim that was green from the start stays unproven."""
    begun(house)
    planned(house, [GREEN])
    assert planned(house, [GREEN])["accepted"]
    house.script("validator", reply(checks=[{"claim": "VAL-1", "run": "test -f one", "why": "no file"}]))
    role(house, "validator", "F-001")
    assert house.feature().status == "failing"
    house.script("validator", {"say": "fine"})
    assert built(house, "F-001") == "ESCALATE proof"
    assert [one.guard for one in contract_of(house).claims[0].checks] == [False, True]
    assert states(house) == {"F-001": "unproven"}


def test_a_proposal_that_repeats_a_planned_check_changes_nothing(house: House) -> None:
    """Whatever its other fields: the planned check still proves its claim."""
    begun(house)
    assert planned(house, [{"run": "test -f one", "seconds": 30}])["accepted"]
    role(house, "worker", "F-001")
    house.script("validator", reply(checks=[{"claim": "VAL-1", "run": "test -f one", "why": "again"}]))
    role(house, "validator", "F-001")
    assert len(contract_of(house).claims[0].checks) == 1
    assert [row["verb"] for row in log_of(house)] == ["add", "setup"]


def test_guards_pass_a_feature_by_a_persons_word_and_done_says_so(house: House) -> None:
    """`[proof] guards` is for a pure refactoring; without it a person is asked."""
    begun(house)
    assert planned(house, [GUARD])["accepted"]
    assert built(house, idle=("F-001",)) == "ESCALATE proof"
    assert states(house) == {"F-001": "unproven"}
    house.config('agent = "scripted"', "[proof]", 'guards = "accept"')
    assert house.harness("escalation", "answer", "a refactoring").code == 0
    assert (due(house), states(house)) == ("DONE", {"F-001": "passed"})
    assert "guards    VAL-1   (accepted without proof, by [proof] guards)" in house.harness("ending", "DONE").out
    house.config('agent = "scripted"', "[proof]", 'guards = "yes"')
    refused = house.harness("next")
    assert (refused.code, "'guards' must be one of ask, accept" in refused.err) == (65, True)


def test_by_that_word_a_check_that_was_never_red_passes_nothing(house: House) -> None:
    """It accepts guards, not checks that should have been red."""
    begun(house)
    house.config('agent = "scripted"', "[proof]", 'guards = "accept"')
    planned(house, [GUARD], [GREEN])
    assert planned(house, [GUARD], [GREEN])["accepted"]
    assert built(house, idle=("F-001", "F-002")) == "ESCALATE proof"
    assert states(house) == {"F-001": "passed", "F-002": "unproven"}


@pytest.mark.parametrize("way", ["accept", "drop"])
def test_a_feature_with_nothing_but_manual_claims_waits_for_one_of_them(house: House, way: str) -> None:
    """Also after a person dropped the claim that was proven; beside a proven claim a manual one blocks nothing."""
    begun(house)
    rows = [{"id": f"VAL-{n}", "claim": f"{n}", "checks": ["test -f one"]} for n in (1, 2)]
    found = [
        {"id": "F-001", "title": "One", "claims": ["VAL-1"]},
        {"id": "F-002", "title": "Two", "claims": ["VAL-2", "VAL-8", "VAL-9"]},
    ]
    manual = [MANUAL, {**MANUAL, "id": "VAL-8"}]
    house.script("planner", reply(features=found, contract=[*rows, *manual]))
    role(house, "planner")
    assert built(house, "F-001", idle=()) in ("NEXT worker F-002", "NEXT validator F-002")
    assert built(house, "F-002") == "DONE"
    assert house.harness("claim", "drop", "VAL-2", "--reason", "nobody needs it").code == 0
    role(house, "validator")
    assert (due(house), states(house)["F-002"]) == ("ESCALATE proof", "unproven")
    words = ("accept", "VAL-8") if way == "accept" else ("set", "VAL-9", "--check", GREEN, "--guard")
    assert house.harness("claim", *words).code == 0
    if way == "accept":
        assert (due(house), states(house)["F-002"]) == ("DONE", "passed")
    else:
        assert states(house)["F-002"] == "validating"
