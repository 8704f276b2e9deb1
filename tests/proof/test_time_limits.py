"""No check outlasts what a person allows: its own seconds, `--for` and max_hours."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from harness.mission import receipts
from harness.mission.contract import Check, Claim, Contract
from tests.missions import CHECKOUT, House
from tests.planned import contract_of, feature, lay, planned_from, reply, role

RUN_SH = str(CHECKOUT / "run.sh")
HERE = ("[machines.here]", "command = []")


def waiting(house: House, seconds: int) -> House:
    """A feature whose validation is due, with one check that takes these seconds and asks for an hour."""
    check = Check(run=f"sleep {seconds}; test -f main.py", seconds=3600)
    lay(
        house,
        [feature("F-001", status="validating")],
        Contract(claims=[Claim(id="VAL-001", text="Slow", checks=[check])]),
    )
    house.script("validator", {"say": "fine"})
    house.script("curator", {"say": "nothing"})
    return house


def interrupted(house: House) -> dict[str, Any]:
    """The result of the only validation, which decided nothing and used no try."""
    (found,) = [house.result(row["run"]) for row in house.ran() if row["role"] == "validator"]
    assert (found["outcome"], found["verdict"]) == ("killed", "")
    assert found["reason"].startswith("interrupted: the time of --for or max_hours is over")
    assert receipts.of_run(house.layout, found["run"]) == []
    assert (house.feature().status, house.feature().attempts) == ("validating", 0)
    return found


@pytest.mark.parametrize("words", [[], ["--on", "here"]])
def test_a_running_check_ends_with_the_time_of_its_start(house: House, words: list[str]) -> None:
    """It is neither red nor green; the start ends as any that is out of time, and the next one runs the check again."""
    house.config('agent = "scripted"', *HERE)
    waiting(house, 170)
    for seconds in (6, 20, 60):  # a machine with other work may need more than 6 s to begin it
        began = time.monotonic()
        done = house.run([RUN_SH, "--for", f"{seconds}s", *words])
        assert time.monotonic() - began < 100
        assert (done.code, "TIME  " in done.out) == (75, True), done
        if house.ran():
            break
    interrupted(house)
    assert house.harness("next").out == "NEXT validator F-001\n"


def test_a_running_check_ends_at_the_cap_on_hours(house: House) -> None:
    """run.sh ends as for any cap, and a person who raises it goes on from there."""
    waiting(house, 100)
    house.config('agent = "scripted"', "[limits]", "max_hours = 0.0005")
    done = house.run([RUN_SH])
    assert (done.code, "\nBUDGET hours  " in done.out) == (5, True), done
    assert interrupted(house)["seconds"] < 60
    waiting(house, 0)
    house.config('agent = "scripted"')
    assert house.role("validator", "F-001").code == 0
    assert house.feature().status == "passed"


def test_by_hand_a_run_behind_the_cap_still_runs_its_checks(house: House) -> None:
    """The cap stops the loop; a person who starts a run by hand wants it."""
    waiting(house, 0)
    house.config('agent = "scripted"', "[limits]", "max_hours = 0.00000001")
    role(house, "validator", "F-001")
    house.config('agent = "scripted"', "[limits]", "max_hours = 0.00000001")
    role(house, "validator", "F-001")
    assert house.result()["verdict"] == "green"


def test_a_plan_may_not_ask_for_more_seconds_than_a_person_allows(house: House) -> None:
    """At most check_seconds, or 900 if that is less; the planner is told the number."""
    check = {"run": "test -f one", "seconds": 901}
    plan = reply(
        features=[{"id": "F-009", "title": "Nine", "claims": ["VAL-9"]}],
        contract=[{"id": "VAL-9", "claim": "Nine", "checks": [check]}],
    )
    house.script("planner", plan)
    role(house, "planner")
    assert house.result()["accepted"] is False
    assert (
        "a check asks for 901 seconds, and 900 are the most (check_seconds in config.toml)" in house.result()["reason"]
    )
    house.config('agent = "scripted"', "check_seconds = 1000")
    role(house, "planner")
    assert house.result()["accepted"], house.result()


def test_a_person_may_not_set_more_either(house: House) -> None:
    """One answer for whoever writes the contract; what it has already stays."""
    planned_from(house, Contract(claims=[Claim(id="VAL-1", text="It works", checks=[Check(run="test -f one")])]))
    refused = house.harness("claim", "set", "VAL-1", "--seconds", "5000")
    assert refused.code != 0
    assert re.search(r"asks for 5000 seconds, and 900 are the most", refused.err), refused
    assert house.harness("claim", "set", "VAL-1", "--seconds", "900").code == 0
    assert contract_of(house).claims[0].checks[0].seconds == 900
