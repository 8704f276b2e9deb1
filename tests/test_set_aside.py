"""A feature that stays red is set aside, and the mission goes on with the others: whole missions by run.sh.

In the suite the first tries are behind the features when run.sh begins; HARNESS_TORTURE=1 plays those, too."""

from __future__ import annotations

import pytest

from harness.mission import features
from tests.crash import TORTURE, sampled
from tests.missions import House
from tests.planned import reply
from tests.test_lanes import RUN_SH


def planned(house: House, checks: dict[str, str], *limits: str) -> None:
    """A mission of features F-1, F-2 …, each with one check; the worker of one whose check is a file makes that file."""
    house.harness("init")
    house.config('agent = "scripted"', "curate_after = 500", *limits)
    rows = [{"id": f"VAL-{n}", "claim": f"Part {n} works", "checks": [check]} for n, check in checks.items()]
    found = [{"id": f"F-{n}", "title": f"Part {n}", "claims": [f"VAL-{n}"], "priority": int(n)} for n in checks]
    house.script("planner", reply(features=found, contract=rows))
    house.script("worker", {"run": "date +%N >>tried.txt"})
    for n, check in checks.items():
        if check == f"test -f {n}.txt":
            house.script(f"worker-F-{n}", {"run": f"echo {n} >{n}.txt"})


def tired(house: House, attempts: int, *names: str, replanned: bool = False) -> None:
    """The planner has run, and these features have used so many tries, and their repair plan if `replanned`."""
    if TORTURE:
        return
    assert house.role("planner").code == 0
    found = features.load(house.layout)
    house.lay(*(one.replace(attempts=attempts, replanned=replanned) if one.id in names else one for one in found))


def statuses(house: House) -> dict[str, str]:
    """{feature: its status}."""
    return {one.id: one.status for one in features.load(house.layout)}


def worked_on(house: House) -> list[str]:
    """The features that a worker took, in the order in which they began."""
    return list(dict.fromkeys(line["feature"] for line in house.ran() if line["role"] == "worker"))


@pytest.mark.parametrize("lanes", sampled(["1", "2"], "2".__eq__))
def test_one_red_feature_of_three_does_not_keep_the_others_from_being_proven(unbegun: House, lanes: str) -> None:
    """It uses its tries and its repair plan, then the others are worked on; what is left is a person's."""
    planned(unbegun, {"1": "grep -q never tried.txt", "2": "test -f 2.txt", "3": "test -f 3.txt"})
    tired(unbegun, features.TRIES - 1, "F-1")
    done = unbegun.run([RUN_SH, "--lanes", lanes])
    assert done.code == 3, done
    assert "ESCALATE stuck" in done.out
    assert statuses(unbegun) == {"F-1": "failing", "F-2": "passed", "F-3": "passed"}
    text = unbegun.read("escalation.md")
    assert "- F-1 failing after 5 tries" in text
    good = next(line["run"] for line in unbegun.ran()[::-1] if line["newly_green"])
    assert f"run.sh snapshot restore {good} " in text
    assert unbegun.program("snapshot", "restore", good).code == 0


@pytest.mark.parametrize(("lanes", "most"), sampled([("1", 3), ("2", 2), ("2", 3)], lambda row: row != ("2", 3)))
def test_features_set_aside_in_a_row_are_a_standstill(unbegun: House, lanes: str, most: int) -> None:
    """Three by default, also where different checks say the same: that is no fault of the machine. The next one begins at most
    where a lane had already taken it; its work is judged after the answer."""
    red = {n: f"echo 'AssertionError: 1 != 0'; grep -q never-{n} tried.txt" for n in "12345"}
    planned(unbegun, red, *(() if most == 3 else ("[limits]", f"stall_after = {most}")))
    tired(unbegun, features.TRIES_REPLANNED - 1, *(f"F-{n}" for n in red), replanned=True)
    done = unbegun.run([RUN_SH, "--lanes", lanes])
    assert done.code == 3, done
    assert "ESCALATE stalled" in done.out
    found = features.load(unbegun.layout)
    aside = [one.id for one in found if one.attempts == features.TRIES_REPLANNED and one.replanned]
    assert len(aside) >= most
    assert len(worked_on(unbegun)) <= most + int(lanes)  # a lane may have taken the next one as the last one ended
    under_way = [*statuses(unbegun).values()].count("validating")
    assert under_way < int(lanes)
    assert "in_progress" not in statuses(unbegun).values()
    assert "run.sh snapshot restore " in unbegun.read("escalation.md")
    assert unbegun.program("next").out == "ESCALATE stalled\n"
    assert unbegun.program("escalation", "answer", "try again").code == 0
    assert unbegun.program("next").out.startswith("NEXT validator F-" if under_way else "NEXT worker F-")


def test_a_proven_claim_between_them_begins_the_count_again(unbegun: House) -> None:
    """Two of three stay red, and the second is proven: nothing but `stuck` ends that, once all have had their turn."""
    red = {n: f"grep -q never-{n} tried.txt" for n in "123"}
    planned(unbegun, {**red, "2": "test -f 2.txt"}, "[limits]", "stall_after = 2")
    done = unbegun.run([RUN_SH])
    assert "ESCALATE stuck" in done.out, done
    assert worked_on(unbegun) == ["F-1", "F-2", "F-3"]


def test_one_fault_in_two_features_is_the_first_thing_that_is_said(unbegun: House) -> None:
    """A program that is missing here is missing for the third feature, too."""
    planned(unbegun, {n: f"no-such-program --part {n}" for n in "123"})
    done = unbegun.run([RUN_SH])
    assert "ESCALATE stalled" in done.out, done
    assert worked_on(unbegun) == ["F-1", "F-2"]
    same = "the same in F-1, F-2: "
    assert unbegun.read("escalation.md").split("---\n")[2].split("\n")[2].startswith(same)
    assert "no-such-program: command not found" in unbegun.read("escalation.md").split(same)[1].split("\n")[0]
    assert same in done.out


def test_workers_that_are_blocked_by_the_same_thing_are_set_aside_too(unbegun: House) -> None:
    """A try is not charged for it, but two of them are enough."""
    planned(unbegun, {n: f"test -f {n}.txt" for n in "1234"})
    for n in "1234":
        unbegun.script(f"worker-F-{n}", reply(status="blocked", reason="docker is not installed here"))
    done = unbegun.run([RUN_SH])
    assert "ESCALATE stalled" in done.out, done
    assert "the same in F-1, F-2: blocked: docker is not installed here" in done.out


def test_disputes_come_to_an_end(unbegun: House) -> None:
    """A dispute of what a repair plan left costs a try: the next feature begins after five."""
    planned(unbegun, {"1": "test -f 1.txt", "2": "test -f 2.txt"})
    unbegun.script("worker-F-1", reply(status="blocked", reason="the claim is wrong", disputes=["VAL-1"]))
    done = unbegun.run([RUN_SH])
    assert "ESCALATE stuck" in done.out, done
    assert statuses(unbegun) == {"F-1": "blocked", "F-2": "passed"}
    assert [line["role"] for line in unbegun.ran()].count("planner") == 2 + features.TRIES_REPLANNED - 1


def test_a_worker_that_needs_what_has_passed_uses_its_tries(unbegun: House) -> None:
    """It goes back to work at once, and from the second time on that costs a try."""
    planned(unbegun, {"1": "test -f 1.txt", "2": "test -f 2.txt"})
    unbegun.script("worker-F-2", reply(status="blocked", reason="more of it", needs=["F-1"]))
    done = unbegun.run([RUN_SH])
    assert "ESCALATE stuck" in done.out, done
    assert unbegun.feature("F-2").attempts == features.TRIES_REPLANNED


def test_a_number_that_was_written_down_is_kept_and_counts_features(unbegun: House) -> None:
    """`stall_after = 1` of an older mission ends it at the first feature that is set aside, and not at the first run."""
    planned(unbegun, {"1": "grep -q never tried.txt", "2": "test -f 2.txt"}, "[limits]", "stall_after = 1")
    done = unbegun.run([RUN_SH])
    assert "ESCALATE stalled" in done.out, done
    assert worked_on(unbegun) == ["F-1"]
    assert unbegun.feature("F-1").attempts == features.TRIES_REPLANNED
