"""The contract log reads back as it was written, in every past format, and an invalid line is reported."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import BrokenFile
from harness.mission import contract_log
from harness.mission.contract import Check, Claim, Contract, Service
from harness.mission.contract_log import ContractChange
from harness.state import names
from tests.helpers import mission, nasty, put
from tests.missions import House

OLD = Claim(id="VAL-1", text="It holds", checks=[Check(run="test -f one"), Check(run="true", seconds=5, guard=True)])
NEW = Claim(id="VAL-1", text="A person looks", manual=True)
TOLD = {"at": "t", "by": "r", "claim": "VAL-1", "why": "w"}
PLAIN = {"id": "VAL-1", "text": "t", "checks": [{"run": "true", "seconds": None, "guard": False}], "manual": False}


def entry(verb: str, **fields: Any) -> ContractChange:
    """An entry about VAL-1."""
    return ContractChange(verb=verb, **{**TOLD, **fields})


def row(verb: str = "change", **fields: Any) -> dict[str, Any]:
    """A line about VAL-1 as it is on disk."""
    return {**TOLD, "verb": verb, "old": PLAIN, "new": PLAIN, **fields}


def test_every_entry_comes_back() -> None:
    """This holds for every verb and for any reason that people and agents wrote."""
    dice = random.Random(7)
    made = [
        entry("add", new=OLD),
        entry("change", old=OLD, new=NEW),
        entry("drop", old=NEW),
        entry("drop feature", claim="F-001"),
        entry("aim", check=Check(run="a\nb", seconds=9)),
        entry("accept", commit="c0ffee"),
        *(entry("accept", why=nasty(dice), by=nasty(dice)) for _ in range(50)),
    ]
    assert contract_log.parse(contract_log.render(made), "log") == made


def test_a_mission_without_a_log_has_no_entries(tmp_path: Path) -> None:
    """A mission with an empty log has none either."""
    layout = mission(tmp_path)
    assert contract_log.load(layout) == []
    put(layout.path(names.CONTRACT_LOG), "")
    assert contract_log.load(layout) == []


def test_what_an_older_version_wrote_is_read() -> None:
    """The old field held the adversarial check or the accepted commit, where the new claim is now."""
    check = {"run": "test -f three", "seconds": 9, "guard": False}
    rows = [row("aim", old=None, new=check), row("accept", old=None, new="c0ffee"), row("add", old=None)]
    aimed, accepted, added = contract_log.parse("".join(json.dumps(one) + "\n" for one in rows).encode(), "log")
    assert (aimed.check, aimed.new) == (Check(run="test -f three", seconds=9), None)
    assert (accepted.commit, accepted.new) == ("c0ffee", None)
    assert (added.new, added.check, added.commit) == (Claim(id="VAL-1", text="t", checks=[Check(run="true")]), None, "")


WRONG: list[tuple[Any, str]] = [
    ("{", "the line is not JSON"),
    ("[" * 100_000, "the line is not JSON"),
    ([], "the entry must be an object"),
    ({}, "the entry lacks 'verb'"),
    (row(by=5), "the entry: 'by' must be text"),
    (row(surprise=1), "unknown key 'surprise'"),
    (row("forget"), "the verb 'forget' is not one of add, change"),
    (row(old=None), "a change needs the old and the new claim"),
    (row("add", new=5), "'new' must be an object"),
    (row("add", new="c0ffee"), "'new' must be an object"),
    (row(old={**PLAIN, "checks": "true"}), "'old': 'checks' must be a list"),
    (row(old={**PLAIN, "checks": [1]}), "'old'.checks[0] must be an object"),
    (row(new={**PLAIN, "checks": [{"run": "x", "seconds": "9", "guard": False}]}), "'seconds' must be a whole number"),
    (row("aim", old=None, new={"seconds": 9}), "'check' lacks 'run'"),
    (row("accept", commit=5), "'commit' must be text"),
]


@pytest.mark.parametrize(("line", "words"), WRONG, ids=[words for _, words in WRONG])
def test_a_line_that_is_no_entry_is_named(line: Any, words: str) -> None:
    """The error has its number, the fault, and the remedy."""
    data = line if isinstance(line, str) else json.dumps(line)
    with pytest.raises(BrokenFile, match=r"log, line 3: .*Correct that line, or remove it") as caught:
        contract_log.parse(contract_log.render([entry("add", new=OLD)]) + b"\n" + data.encode() + b"\n", "log")
    assert words in caught.value.fault


def test_a_line_that_is_just_being_written_is_passed_over() -> None:
    """A concurrent reader sees the state from before."""
    data = contract_log.render([entry("add", new=OLD), entry("drop", old=OLD)])
    assert contract_log.parse(data[:-9], "log") == [entry("add", new=OLD)]


def test_what_was_dropped_weakened_and_accepted_is_told_from_the_log() -> None:
    """A dropped feature is not a claim, and an adversarial check removes nothing."""
    log = [
        entry("drop", old=OLD),
        entry("drop feature", claim="F-001"),
        entry("change", claim="VAL-2", old=OLD, new=NEW),
        entry("change", claim="VAL-3", old=OLD, new=OLD.replace(text="In other words")),
        entry("aim", claim="VAL-4", check=Check(run="true")),
        entry("accept", claim="VAL-5"),
    ]
    assert contract_log.retired(log) == {"VAL-1", "F-001"}
    assert contract_log.weakened(log) == {"VAL-1", "VAL-2"}
    assert contract_log.accepted(log) == {"VAL-5"}


def test_every_door_names_a_broken_line(house: House) -> None:
    """No command reports it as a bug in the harness, and doctor reports the mission as damaged; once fixed, all is well."""
    house.harness("claim", "accept", "VAL-LOOK")
    good = house.read("contract-log.jsonl")
    for line in ("{", "{}", '{"verb": "change", "old": 5}'):
        Path(house.layout.path(names.CONTRACT_LOG)).write_text(f"{good}{line}\n{good}")
        for words in (["status"], ["why", "VAL-1"], ["ending", "DONE"]):
            done = house.harness(*words)
            assert (done.code, "contract-log.jsonl, line 2: " in done.err) == (65, True), done
    done = house.harness("doctor")
    assert (done.code, "contract-log.jsonl, line 2: " in done.out) == (10, True)
    Path(house.layout.path(names.CONTRACT_LOG)).write_text(good)
    assert house.harness("status").code == house.harness("doctor").code == 0


# replayed

WEB = Service(name="web", run="serve", ready="curl x")


def test_replayed_the_log_gives_the_contract() -> None:
    """Claims with what a validator added, setup and services as they were changed last, and nothing that was dropped."""
    log = [
        *contract_log.changes({}, contract_log.blocks(Contract(setup="make", services=[WEB])), "planned"),
        entry("add", new=OLD),
        entry("add", claim="VAL-2", new=NEW.replace(id="VAL-2")),
        entry("aim", check=Check(run="test -f three")),
        entry("drop", claim="VAL-2", old=NEW),
        entry("setup", claim="", old_block="x", new_block=contract_log.blocks(Contract(setup="make all"))["setup"]),
    ]
    claims = [OLD.replace(checks=[*OLD.checks, Check(run="test -f three")])]
    known = Contract(setup="make all", services=[WEB], claims=claims)
    assert contract_log.missing(log, known, "") == []
    assert contract_log.parse(contract_log.render(log), "log") == log
    gone = contract_log.missing(log, known.replace(services=[]), "why")
    assert [(one.block, one.why, one.new_block) for one in gone] == [("service web", "why", "")]
    assert contract_log.missing([*log, *gone], known.replace(services=[]), "") == []


def test_a_log_of_an_older_version_is_begun_with_what_is_there() -> None:
    """Until then it is not replayed; from then on it is, and what it had of a claim is not repeated."""
    known = Contract(setup="make", claims=[OLD, NEW.replace(id="VAL-2")])
    log = [entry("add", new=OLD)]
    assert contract_log.missing(log, known, "") == []
    begun = contract_log.begun(log, known)
    assert [(one.verb, one.claim) for one in begun] == [("setup", ""), ("add", "VAL-2")]
    assert contract_log.missing([*log, *begun], known, "") == []
    assert contract_log.begun([*log, *begun], known) == contract_log.begun([], Contract()) == []
    assert len(contract_log.missing([*log, *begun], known.replace(setup="rm"), "")) == 1


def test_a_setup_or_a_sentence_that_an_agent_changed_is_marked() -> None:
    """What is new is not, nor what a person changed."""
    moved = {"old_block": "a", "new_block": "b"}
    log = [
        entry("setup", claim="", new_block="a"),
        entry("service", claim="db", new_block="a"),
        entry("service", claim="web", **moved),
        entry("setup", claim="", **moved, by="person"),
        entry("change", old=OLD, new=OLD.replace(text="In other words")),
        entry("change", claim="VAL-2", old=OLD, new=OLD.replace(text="In other words"), by="person"),
        entry("change", claim="VAL-3", old=OLD, new=NEW.replace(text=OLD.text)),
    ]
    assert contract_log.changed(log) == {"service web", "VAL-1"}


@pytest.mark.parametrize("before", [Contract(claims=[OLD]), Contract(setup="make", claims=[OLD])], ids=["none", "make"])
def test_a_setup_or_service_that_a_later_plan_adds_is_marked_as_changed(before: Contract) -> None:
    """It decides what checks find as much as one that was there; so where the log begins with that plan. A person's is not."""
    old, setup = contract_log.blocks(before), before.setup or "make"
    new = contract_log.blocks(before.replace(setup=setup, services=[WEB]))
    first, later = {"at": "1", "by": "1-planner"}, {"at": "2", "by": "2-planner"}
    planned = [one.replace(**first) for one in contract_log.changes({}, old, "planned")]
    added = contract_log.changes(old, new, "planned")
    marked = {"service web", *({"setup"} if not before.setup else ())}
    assert contract_log.changed(planned) == set()
    assert contract_log.changed([*planned, *(one.replace(**later) for one in added)]) == marked
    assert contract_log.changed([*planned, *(one.replace(at="2", by="person") for one in added)]) == set()
    begun = [one.replace(**later) for one in [*contract_log.begun([], before), *added]]
    assert contract_log.changed(begun) == marked


def test_an_acceptance_ends_where_the_claim_changes() -> None:
    """A person accepted something else."""
    log = [entry("accept"), entry("accept", claim="VAL-2"), entry("change", old=OLD, new=NEW)]
    assert contract_log.accepted(log) == {"VAL-2"}
    assert contract_log.accepted([*log, entry("accept")]) == {"VAL-1", "VAL-2"}
