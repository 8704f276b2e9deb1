"""Orders about claims: an edit meets the claim as it is when it is applied, and waits for a run that works on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import UsageFault
from harness.mission import contract_log, mission
from harness.mission.contract import Check, Claim
from harness.run.requests import claim_orders, orders
from harness.run.requests.claim_orders import CheckSwap, ClaimEdit
from harness.state import names
from tests.helpers import noted
from tests.missions import PROGRAM, House, tagged, until
from tests.planned import contract_of

ONE, TWO, THREE = (Check(run=f"test -f {number}") for number in (1, 2, 3))
CLAIM = Claim(id="VAL-1", text="It holds", checks=[ONE, TWO])


def place(house: House, wanted: ClaimEdit, claim: str = "VAL-1") -> str:
    """The order, whose new checks were not fired."""
    return orders.place(house.layout, "claim set", claim_orders.words(claim, wanted, [], "because"))


def lay(house: House, **fields: Any) -> None:
    """Change F-001 as a run does."""
    house.lay(house.feature().replace(**fields), house.feature("F-002"))


EDITS: list[tuple[dict[str, Any], list[Check]]] = [
    ({"number": 2, "run": "test -f 3\n"}, [ONE, THREE]),
    ({"number": 1, "remove": True}, [TWO]),
    ({"add": True, "run": "test -f 3", "seconds": 5}, [ONE, TWO, THREE.replace(seconds=5)]),
    ({"number": 1, "guard": True}, [ONE.replace(guard=True), TWO]),
    ({"text": "In\nother  words"}, [ONE, TWO]),
]


@pytest.mark.parametrize(("words", "checks"), EDITS)
def test_an_edit_changes_what_it_names_and_nothing_else(words: dict[str, Any], checks: list[Check]) -> None:
    """Place and number of the other checks stay; the claim is not changed by asking."""
    before = CLAIM.replace(checks=[ONE, TWO])
    made = claim_orders.merged(CLAIM, claim_orders.edit(CLAIM, **words))
    assert (made.checks, made.text) == (checks, "In other words" if "text" in words else "It holds")
    assert before == CLAIM


def test_what_others_added_meanwhile_stays() -> None:
    """A validator's check joined the claim before the order was applied; a check that is gone cannot be replaced."""
    wanted = ClaimEdit(swaps=[CheckSwap(old=TWO, new=THREE)])
    later = CLAIM.replace(checks=[TWO, ONE, Check(run="aimed")])
    assert [one.run for one in claim_orders.merged(later, wanted).checks] == ["test -f 3", "test -f 1", "aimed"]
    with pytest.raises(UsageFault, match="A check of VAL-1 has changed since"):
        claim_orders.merged(CLAIM.replace(checks=[ONE]), wanted)


STATUSES = [("todo", "todo"), ("failing", "validating"), ("validating", "validating"), ("passed", "validating")]


@pytest.mark.parametrize(("status", "then"), STATUSES)
def test_the_feature_is_proven_anew_with_all_its_tries(house: House, status: str, then: str) -> None:
    """What has work goes to validation; the rest is built first."""
    lay(house, status=status, attempts=5, replanned=True)
    assert place(house, ClaimEdit(text="Other words")) == f"VAL-1 is set; F-001 is {then}"
    one = house.feature()
    assert (one.status, one.attempts, one.replanned) == (then, 0, False)
    assert one.notes[-1]["text"] == "a person set VAL-1"


@pytest.mark.parametrize(
    ("kind", "then"), [("dispute", "todo"), ("reason", "todo"), ("person", "blocked"), ("needs", "blocked")]
)
def test_a_blocked_feature_is_free_again_where_its_check_was_the_reason(house: House, kind: str, then: str) -> None:
    """Where a person blocked it, or it needs another feature, that still holds."""
    one = noted(house.feature().replace(status="blocked"), kind, "F-002" if kind == "needs" else "VAL-1")
    house.lay(one, house.feature("F-002"))
    place(house, ClaimEdit(text="Other words"))
    assert house.feature().status == then


def test_the_order_waits_for_the_run_that_works_on_the_feature(house: House) -> None:
    """The run ends with the claim as it was when it began; then the order is applied, once."""
    house.script("worker", {"sleep": 60})
    role = house.begin_role("worker", "F-001")
    until(lambda: bool(list(Path(house.layout.path(names.RUNS)).glob("*/stream.jsonl"))))
    done = house.harness("claim", "set", "VAL-1", "--check", "test -s 1.txt")
    assert "noted; it is applied when the current run ends (" in done.out
    assert contract_of(house).claim("VAL-1").checks[0].run == "test -f 1.txt"
    role.terminate()
    assert role.wait() == 143
    assert contract_of(house).claim("VAL-1").checks[0].run == "test -s 1.txt"
    assert [one.exit for one in contract_log.fired(contract_log.load(house.layout))] == [1]
    rows = [json.loads(line) for line in house.read("orders.jsonl").split("\n") if line]
    assert [row.get("state", "asked") for row in rows] == ["asked", "applied"]


def test_a_red_setup_stops_the_order(house: House) -> None:
    """Its checks could not be judged, so nothing is written."""
    path = Path(house.layout.path(names.CONTRACT))
    path.write_text("```sh setup\necho no compiler here; false\n```\n\n" + path.read_text())
    done = house.harness("claim", "set", "VAL-1", "--check", "test -s 1.txt")
    assert (done.code, "no compiler here" in done.err) == (10, True), done
    assert not (house.state / "orders.jsonl").exists() or not house.read("orders.jsonl")


def test_what_a_killed_command_left_goes_with_the_next_one(house: House) -> None:
    """Its processes, its folder and its worktree; nothing was written."""
    words = [sys.executable, "-P", str(PROGRAM), "claim", "set", "VAL-1", "--check", "sleep 61; test -f 1.txt"]
    made = subprocess.Popen(words, cwd=house.project, env=house.env, stdout=subprocess.DEVNULL)
    until(lambda: any("check-" in name for name in os.listdir(house.env["TMPDIR"])))
    made.kill()
    made.wait()
    assert not (house.state / "orders.jsonl").exists()
    assert house.harness("claim", "set", "VAL-1", "--check", "test -s 1.txt").code == 0
    assert os.listdir(house.env["TMPDIR"]) == []
    assert not [name for name in os.listdir(house.project / ".git" / "worktrees") if "harness-" in name]
    assert tagged(mission.load(house.layout).id) == []
