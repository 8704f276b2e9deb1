"""Runs at once do not spend one remainder twice."""

from __future__ import annotations

import json

import pytest

from harness.mission import lease
from harness.mission.lease import Terms
from harness.mission.runs import Totals
from harness.run import reservations
from tests.missions import House, until

SLOW = "touch begun-{0}; for i in $(seq 1200); do [ -e '{1}/go' ] && break; sleep 0.05; done"


def spender(house: House, number: int, *steps: dict[str, object]) -> None:
    """A worker whose agent takes these steps, in the background."""
    house.script("worker", *steps, {"run": SLOW.format(number, house.project)})
    house.begin_role("worker", f"F-00{number}")
    until(lambda: [*house.tree.parent.glob(f"tree-*/begun-{number}")] != [])


def go(house: House) -> list[int]:
    """Let all end."""
    (house.project / "go").touch()
    return [role.wait(60) for role in house.begun]


def terms(**reserved: float) -> Terms:
    """A live run that reserves this."""
    return Terms(run="7-worker", role="worker", pid=1, since="now", **reserved)  # type: ignore[arg-type]  # of numbers


def test_totals_count_what_open_runs_reserve() -> None:
    """Each is a run; unknown stays unknown where nothing is reserved."""
    assert reservations.with_reserved(Totals(), []) == Totals()
    assert reservations.with_reserved(Totals(runs=2), [terms()]) == Totals(runs=3)
    found = reservations.with_reserved(Totals(runs=2, cost_usd=1.0), [terms(cost_usd=0.5), terms(tokens=7)])
    assert (found.runs, found.cost_usd, found.tokens) == (4, 1.5, 7)


def test_the_last_run_below_a_cap_is_started_once(house: House) -> None:
    """The second start is told what is reserved and by whom, may try later, and changes nothing."""
    house.config('agent = "scripted"', "[limits]", "max_runs = 1")
    spender(house, 1)
    second = house.role("worker", "F-002")
    assert second.code == 75, second
    assert "What is left of the cap is reserved by" in second.err
    assert house.feature("F-002").status == "todo"
    assert go(house) == [0]


def test_a_run_reserves_what_it_has_used_where_that_is_more(house: House) -> None:
    """The lease says it while the run lives, and it is gone when the result counts it."""
    house.config('agent = "scripted"', "[limits]", "max_cost_usd = 5.0")
    spender(house, 1, {"usage": {"cost_usd": 2.5, "input": 10}})
    found = lease.alive(house.layout)
    assert [(one.cost_usd, one.tokens) for one in found] == [(2.5, 10)]
    assert go(house) == [0]
    assert lease.alive(house.layout) == []
    assert house.result()["totals"]["cost_usd"] == pytest.approx(2.5)


def test_two_runs_at_once_stay_below_the_cap_together(house: House) -> None:
    """The second agent is ended where both together have used it up, though it alone has not."""
    house.config('agent = "scripted"', "[limits]", "max_cost_usd = 1.0")
    spender(house, 1, {"usage": {"cost_usd": 0.6, "input": 1}})
    house.script("worker", {"usage": {"cost_usd": 0.5, "input": 1}}, {"did": "more"}, {"run": "touch never"})
    done = house.role("worker", "F-002")
    result = house.result()
    assert (result["outcome"], "ended at its cap: cost" in result["reason"]) == ("killed", True), (
        done,
        json.dumps(result),
    )
    assert go(house) == [0]
