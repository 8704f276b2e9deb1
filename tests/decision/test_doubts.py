"""What waits for a person before DONE, and how a person ends it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from harness.decision import doubts, views
from harness.mission import contract_log, runs
from harness.mission.contract import Check, Claim, Contract
from harness.state import names
from tests.missions import CHECKOUT, House, copied, enter
from tests.planned import contract_of, due, feature, lay, log_of, planned_from, role

GUARD = Claim(id="VAL-2", text="It stays", checks=[Check(run="test -f main.py", guard=True)])
WORK = Claim(id="VAL-1", text="It works", checks=[Check(run="test -f one")])


def done(house: House, *claims: Claim, setup: str = "") -> House:
    """A mission whose plan is accepted, whose only feature is built and has passed, and the final sweep."""
    planned_from(house, Contract(setup=setup, claims=list(claims)))
    house.script("worker", {"run": "touch one"}, {"say": '```json harness\n{"status": "implemented"}\n```'})
    if house.feature().status == "todo":  # its checks were not green already
        role(house, "worker", "F-001")
    assert role(house, "validator", "F-001") == 0
    assert role(house, "validator") == 0
    assert house.role("curator").code == 0
    return house


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, template: Path) -> Path:
    """A mission whose claims are proven, to the end; tests work on copies."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("finished")
        done(copied(template, folder, enter(patch, folder)), WORK.replace(checks=[*WORK.checks, *GUARD.checks]))
        return folder


@pytest.fixture
def proven(bare: House, finished: Path) -> House:
    """A copy of that mission."""
    return copied(finished, bare.folder, bare.env)


def doubted(house: House) -> list[str]:
    """What is in the way of DONE."""
    return [one.text for one in doubts.find(house.layout, runs.answered(house.layout))]


def test_proven_claims_are_done(proven: House) -> None:
    """A guard beside a check in one claim needs no person."""
    assert (due(proven), doubted(proven)) == ("DONE", [])


def test_a_guarded_claim_waits_for_a_person(house: House) -> None:
    """The escalation has the ready command; accepted, the mission is DONE and the question is archived. What the checks prove
    nobody accepts."""
    done(house, WORK, GUARD)
    refused = house.harness("claim", "accept", "VAL-1")
    assert (refused.code, "VAL-1 is proven by its checks" in refused.err) == (64, True)
    assert due(house) == "ESCALATE proof"
    asked = house.read("escalation.md")
    assert "kind: proof" in asked
    assert "- VAL-2: its checks are guards, which may be green without the work" in asked
    assert "    harness claim accept VAL-2  # " in asked.replace("run.sh", "harness")
    assert "VAL-2" in house.harness("status").out
    assert house.harness("claim", "accept", "VAL-2", "--note", "looked").code == 0
    assert due(house) == "DONE"
    assert not Path(house.layout.path(names.ESCALATION)).exists()
    (archived,) = Path(house.layout.path(names.ESCALATIONS)).iterdir()
    assert "VAL-2 is accepted. looked" in archived.read_text()


def test_where_nothing_is_proven_a_person_must_accept_all(house: House) -> None:
    """`proven 0 of 2` is never DONE by itself; one acceptance is not enough."""
    done(house, GUARD, Claim(id="VAL-3", text="It looks right", manual=True))
    assert (due(house), doubted(house)) == ("ESCALATE proof", ["none of 2 claims is proven"])
    assert house.harness("claim", "accept", "VAL-2").code == 0
    assert due(house) == "ESCALATE proof"
    assert house.harness("claim", "accept", "VAL-3").code == 0
    assert due(house) == "DONE"


EDITS = {
    "a check": ("test -f one", "test -f main.py", "VAL-1"),
    "the sentence of a claim": ("It works", "It works a bit", "VAL-1"),
    "the setup": ("touch built", "touch two", "setup"),
    "a new claim": ("### VAL-1", "### VAL-9: More\n\n```sh check\ntrue\n```\n\n### VAL-1", "VAL-9"),
}


@pytest.mark.parametrize("what", EDITS)
def test_a_contract_that_is_not_what_its_log_says_waits_for_a_person(house: House, what: str) -> None:
    """Whatever was edited by hand; status and doctor name it; one command takes it as it is, into the log."""
    old, new, name = EDITS[what]
    done(house, WORK, setup="touch built")
    assert doubts.edited(contract_of(house), contract_log.load(house.layout)) == []
    path = Path(house.layout.path(names.CONTRACT))
    path.write_text(path.read_text().replace(old, new))
    assert f"differs from its log: {name}" in house.harness("status").out
    assert f"the contract differs from its log: {name}" in house.harness("doctor").out
    assert house.harness("doctor").code == 10
    assert f"the contract differs from its log: {name}" in doubted(house)
    before = log_of(house)
    assert house.harness("claim", "adopt").code == 0
    assert [(row["by"], row["why"]) for row in log_of(house)[len(before) :]] == [("person", "taken as it is")]
    assert doubted(house) in ([], ["none of 2 claims is proven"], ["none of 1 claims is proven"])
    assert house.harness("doctor").code == 0
    refused = house.harness("claim", "adopt")
    assert (refused.code, "There is nothing to take" in refused.err) == (64, True)


SET = {
    "a text": ["set", "VAL-1", "--text", "It works  well"],
    "a check of several lines": ["set", "VAL-1", "--file", "check.sh"],
    "one more check": ["set", "VAL-1", "--add", "--check", "test -f main.py && test -f one", "--seconds", "7"],
    "a guard": ["set", "VAL-1", "--number", "1", "--guard"],
    "no claim": ["drop", "VAL-2", "--reason", "too much"],
}


def test_what_a_person_sets_by_a_command_is_in_the_log(house: House) -> None:
    """Replayed, it gives the contract, however the check is written."""
    planned_from(house, Contract(setup="touch built", claims=[WORK, GUARD]))
    house.write("check.sh", "\n# that it works\ntest -f one\n\ntest -s main.py\n\n")
    for words in SET.values():
        made = house.harness("claim", *words)
        assert made.code == 0, made
        assert doubts.edited(contract_of(house), contract_log.load(house.layout)) == []
    assert [row["verb"] for row in log_of(house) if row["by"] == "person"] == ["change"] * 4 + ["drop"]


def test_a_log_of_an_older_version_is_not_called_broken(house: House) -> None:
    """It has neither setup nor services; the next plan, or a person's command, begins to hold all of it."""
    lay(house, [feature("F-001", "VAL-1")], Contract(setup="touch built", claims=[WORK]))
    assert doubts.edited(contract_of(house), contract_log.load(house.layout)) == []
    assert house.harness("claim", "adopt").code == 0
    assert [row["verb"] for row in log_of(house)] == ["setup", "add"]
    path = Path(house.layout.path(names.CONTRACT))
    path.write_text(path.read_text().replace("touch built", "touch two"))
    assert doubts.edited(contract_of(house), contract_log.load(house.layout)) == ["setup"]


def test_a_run_that_was_changed_afterwards_waits_for_a_person(proven: House) -> None:
    """However old it is: its receipts count as none, and DONE says so after the answer, too."""
    for _ in range(6):
        assert proven.role("curator").code == 0
    assert due(proven) == "DONE"
    first = proven.ran()[0]["run"]
    assert len(proven.ran()) > 10
    with open(proven.layout.run(first).receipts, "a") as file:
        file.write("\n")
    assert due(proven) == "ESCALATE proof"
    assert any("finished runs were changed afterwards" in text and first in text for text in doubted(proven))
    assert "none of 1 claims is proven" in doubted(proven)
    assert proven.harness("claim", "accept", "VAL-1").code == 0
    assert proven.harness("escalation", "answer", "a tool of mine did it").code == 0
    assert due(proven) == "DONE"
    assert "warning   finished runs were changed afterwards" in proven.harness("ending", "DONE").out


def test_lost_objects_are_in_the_way_and_the_next_start_restores_them(proven: House) -> None:
    """From the prompts that hold their bytes."""
    shutil.rmtree(proven.layout.path(names.OBJECTS))
    assert due(proven) == "ESCALATE proof"
    assert "objects of prompts are missing or changed" in doubted(proven)[0]
    started = proven.program("init", "--quietly")
    assert started.code == 0, started
    assert due(proven) == "DONE"


def test_one_object_that_was_changed_is_named_and_restored(proven: House) -> None:
    """Doctor names it, and --fix restores it."""
    folder = next(one for one in sorted(Path(proven.layout.path(names.OBJECTS)).iterdir()) if len(one.name) == 2)
    path = next(folder.iterdir())
    for change in (path.unlink, lambda: path.write_bytes(b"forged")):
        if path.exists():
            os.chmod(path, 0o600)
        change()
        looked = proven.harness("doctor")
        if looked.code == 0:
            continue  # a copy of a managed file, which no prompt is made of
        assert f"the object {folder.name}{path.name} is missing" in looked.out
        proven.harness("doctor", "--fix")
    assert views.gather(proven.layout).swept


def test_what_a_last_look_costs_is_measured(house: House) -> None:
    """`bench/seals.py` has as many runs as it says, and all of them are as they closed."""
    done = house.run([sys.executable, str(CHECKOUT / "bench" / "seals.py"), "--runs", "20", "--rounds", "1"])
    assert (done.code, "20 runs" in done.out, "both, as before DONE" in done.out) == (0, True, True), done


def test_nothing_is_judged_without_a_plan(house: House) -> None:
    """Zero checks prove nothing, so a run by hand is refused, and leaves nothing."""
    lay(house, [])
    Path(house.layout.path(names.CONTRACT)).unlink()
    refused = house.role("validator")
    assert (refused.code, "There is no plan yet" in refused.err) == (64, True)
    assert house.ran() == []
