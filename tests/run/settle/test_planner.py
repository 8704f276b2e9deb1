"""Plans: how a bad plan is rejected, what a patch may and may never change, and how a plan lands."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import RequestRefused
from harness.mission import contract_log, features, issues, receipts, replies, runs
from harness.mission.check_environment import CheckEnvironment
from harness.mission.contract import Check, Contract, Service
from harness.mission.contract_log import ContractChange
from harness.mission.features import Feature
from harness.mission.receipts import Receipt
from harness.proof import index
from harness.run.settle import planner
from harness.run.settle.planner import Draft
from harness.state import files, journal, names
from tests.helpers import Name, growth
from tests.missions import House
from tests.planned import claim, contract_of, feature, lay, log_of, prompt_of, reply, role, worked

LIVE = ("features.json", "validation-contract.md", "spec.md", "contract-log.jsonl", "issues.jsonl")


def row(name: str = "F-001", **fields: Any) -> dict[str, Any]:
    """A feature as a planner writes it."""
    return {"id": name, "title": f"Feature {name}", "claims": [f"VAL-{name[2:]}"], **fields}


def told(name: str = "VAL-001", *checks: Any, **fields: Any) -> dict[str, Any]:
    """A claim as a planner writes it, by default with one good check."""
    if "manual" not in fields:
        fields = {"checks": list(checks or [f"test -f {name}"]), **fields}
    return {"id": name, "claim": f"{name} holds", **fields}


def patch(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A reply: features, with a claim for each unless `contract` is given."""
    claims = [told(name) for one in rows for name in one["claims"]]
    return {"features": list(rows), "contract": claims, **more}


def drafted(
    value: dict[str, Any],
    found: list[Feature] | None = None,
    known: Contract | None = None,
    retired: set[str] | None = None,
) -> tuple[Draft, list[str]]:
    """The draft of a reply that has the right shape."""
    assert replies.faults("plans", value) == []
    found = found or []
    known = known or Contract(claims=[claim(name) for one in found for name in one.claims])
    return planner.draft(
        value, found, known, [ContractChange(verb="drop", claim=name, why="") for name in retired or ()]
    )


def faults(value: dict[str, Any], *found: Feature, retired: str = "") -> str:
    """The plan's errors, in one text."""
    return "\n".join(drafted(value, list(found), retired=set(retired.split()))[1])


def large(number: int) -> dict[str, Any]:
    """A plan in which each feature has two claims and depends on the one before it."""
    ids = [Name(f"F-{index}") for index in range(number)]
    pairs = zip(ids, [[], *([one] for one in ids)], strict=False)
    return patch(
        *(row(name, claims=[Name(f"VAL-{name}"), Name(f"{name}b")], depends_on=after) for name, after in pairs)
    )


def landed(number: int) -> Draft:
    """The draft of a large plan, with commands whose comparisons are steps."""
    made = planner.draft(large(number), [], Contract(), [])[0]
    made.new_checks = [Name(command) for command in made.new_checks]
    for check in (check for one in made.contract.claims for check in one.checks):
        check.run = Name(check.run)
    return made


def first_plan(number: int) -> Callable[[], object]:
    """The lint of a first plan."""
    value = large(number)
    return lambda: planner.draft(value, [], Contract(), [])


def plan_again(number: int) -> Callable[[], object]:
    """The lint of a plan that changes every claim."""
    value, made = large(number), landed(number)
    for one in value["contract"]:
        one.update(checks=["make test"], reason="one suite")
    return lambda: planner.draft(value, made.features, made.contract, [])


STEPS: dict[str, Callable[[int], Callable[[], object]]] = {
    "lint of a first plan": first_plan,
    "lint of a plan that changes all": plan_again,
    "reading the contract back": lambda number: partial(planner.write_faults, landed(number).contract),
    "picking the new checks": lambda number: partial(landed(number).untried, set()),
    "features that are green already": lambda number: partial(planner.move_green, landed(number), []),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_plan_four_times_as_large_takes_four_times_the_steps(name: str) -> None:
    """So a plan of thousands of features is settled in seconds."""
    assert growth(STEPS[name], 50) < 4.1


# lint


def test_a_good_plan_has_no_fault() -> None:
    """The plan uses everything that the schema allows."""
    value = patch(
        row(description="d", spec_refs=["Part"], priority=3),
        row("F-002", depends_on=["F-001"], claims=["VAL-002", "VAL-LOOK"]),
        contract=[
            told("VAL-001", "make test", {"run": "test -f x\ntest -f y\n", "seconds": 60, "guard": True}),
            told("VAL-002"),
            told("VAL-LOOK", manual=True),
        ],
        setup="make build\n",
        services=[{"name": "web", "run": "serve", "ready": 'curl -fs "localhost:$PORT"', "seconds": 5}],
    )
    made, found = drafted(value)
    assert found == []
    assert [one.id for one in made.features] == ["F-001", "F-002"]
    assert made.features[0].replace(claims=[]) == Feature(
        id="F-001", title="Feature F-001", claims=[], description="d", spec_refs=["Part"], priority=3
    )
    assert made.contract.setup == "make build"
    assert made.contract.services == [Service(name="web", run="serve", ready='curl -fs "localhost:$PORT"', seconds=5)]
    assert made.contract.claims[0].checks == [
        Check(run="make test"),
        Check(run="test -f x\ntest -f y", seconds=60, guard=True),
    ]
    assert made.contract.claims[2].manual


OLD = feature("F-001")
LINT: list[tuple[str, str]] = [
    ("a feature id twice", "feature 'F-001' appears twice"),
    ("a feature id twice but for case", "feature 'f-001' appears twice"),
    ("a claim id twice", "claim 'VAL-001' appears twice"),
    ("a name that is none", "invalid feature 'F 1'"),
    ("no claim", "F-001 has no claim"),
    ("an unknown claim", "F-001 names the claim 'VAL-404', which does not exist"),
    ("an orphan claim", "no feature has the claim VAL-002"),
    ("neither checks nor manual", 'VAL-001 needs checks, or "manual": true'),
    ("both checks and manual", 'VAL-001 needs checks, or "manual": true'),
    ("manual: false and no check", 'VAL-001 needs checks, or "manual": true'),
    ("an unknown dependency", "F-001 depends on 'F-404', which does not exist"),
    ("itself as a dependency", "in a circle: F-001"),
    ("a circle of two", "in a circle: F-001, F-002"),
    ("no feature", "the plan has no feature"),
    ("drop what is not there", "'F-404' cannot be dropped: there is none"),
]
VALUES: dict[str, dict[str, Any]] = {
    "a feature id twice": patch(row(), row(claims=[])),
    "a feature id twice but for case": patch(row(), row("f-001", claims=["VAL-001"]), contract=[told()]),
    "a claim id twice": patch(row(), contract=[told(), told()]),
    "a name that is none": patch(row(), {**row("F-002"), "id": "F 1"}),
    "no claim": patch(row(claims=[])),
    "an unknown claim": patch(row(claims=["VAL-001", "VAL-404"]), contract=[told()]),
    "an orphan claim": patch(row(), contract=[told(), told("VAL-002")]),
    "neither checks nor manual": patch(row(), contract=[{"id": "VAL-001", "claim": "c"}]),
    "both checks and manual": patch(row(), contract=[{**told(), "manual": True}]),
    "manual: false and no check": patch(row(), contract=[told(manual=False)]),
    "an unknown dependency": patch(row(depends_on=["F-404"])),
    "itself as a dependency": patch(row(depends_on=["F-001"])),
    "a circle of two": patch(row(depends_on=["F-002"]), row("F-002", depends_on=["F-001"]), row("F-003")),
    "no feature": {"features": [], "contract": []},
    "drop what is not there": patch(row(), drop=[{"id": "F-404", "reason": "r"}]),
}


@pytest.mark.parametrize(("name", "expected"), LINT, ids=[case[0] for case in LINT])
def test_what_is_wrong_with_a_plan_is_named(name: str, expected: str) -> None:
    """Each error has a sentence that says where it is."""
    found = faults(VALUES[name])
    assert expected in found
    assert found.count("\n") <= 2, "and hardly anything else is said"


def test_all_faults_are_told_at_once() -> None:
    """A planner that fixes one error at a time would need a run for each."""
    value = patch(row(claims=[]), row("F-002", depends_on=["F-404"]), contract=[told("VAL-002", "x || true")])
    assert faults(value).count("\n") == 2


def test_a_circle_names_only_those_that_turn_in_it_or_wait_for_it() -> None:
    """Features whose dependencies can be met are not blamed."""
    value = patch(
        row("F-001"),
        row("F-002", depends_on=["F-001", "F-003"]),
        row("F-003", depends_on=["F-002"]),
    )
    assert "in a circle: F-002, F-003" in faults(value)


def test_an_id_differs_from_every_other_by_more_than_case() -> None:
    """Existing ids count too: on some disks both ids would be one file."""
    assert "feature 'f-001' appears twice" in faults(patch(row("f-001"), contract=[]), OLD)
    value = {"features": [], "contract": [told("val-001")]}
    assert "claim 'val-001' appears twice" in faults(value, OLD)


# refused shell forms, and their near misses


REFUSED = [
    "./greet | grep -q hello",
    "./greet 2>&1 |& egrep -i --quiet hello",
    "! ./greet | grep -iq bye",
    "make test || true",
    "make test||true",
    "make test || :",
    "(make test || true) && x",
    "a || true; b",
    "a || : # never mind",
    "first\nmake test || true\nlast",
    "sh -c 'a || true'",
    'sh -c "a || :"',
    "a || true | cat",
    "serve &",
    "serve & ",
    "serve &\nsleep 1\ncurl localhost",
    "sudo make install",
    "a && sudo b",
    "a | sudo tee x",
    "(sudo a)",
    "test -f /home/me/x",
    "cat '/home/me/x'",
    'cat "/Users/me/x"',
    "X=/root/x make",
    "a >/home/me/log",
    "a </home/me/in",
    "PATH=$PATH:/home/me/bin a",
]
ALLOWED = [
    "grep -q hello README",
    "./greet | grep hello >/dev/null",
    "./greet | ./grep-q x",
    "a && b",
    "a &&\nb",
    "a && b\nc",
    "a || b",
    "cmd || exit 1",
    "a || truely",
    "a || true-ish",
    "a || ./true.sh",
    "! cmd",
    "cmd 2>&1",
    "cmd >&2",
    "cmd &>log",
    "cmd &>> log",
    "cmd 2>&1 | grep x >/dev/null",
    "cmd >/dev/null 2>&1",
    "serve & pid=$!; sleep 1; kill $pid",
    "test true = x",
    "[[ $a == true || $b == x ]]",
    'curl -fs "http://localhost:$PORT/?a=1&b=2"',
    "echo 'R&D' | ./shout",
    "echo R\\&",
    "./visudo --check",
    "test -x /bin/sh",
    "/usr/bin/env python3 --version",
    "ls ./home/me",
    "test -f src/root/x",
    'test -f "$TMPDIR/home/x"',
    "curl -fs localhost:8000/home/me",
    ': "${X:?}"; test -f x',
]


@pytest.mark.parametrize("command", REFUSED)
def test_a_shell_form_that_hides_or_leaves_something_is_refused(command: str) -> None:
    """The error names the check, what it does, and what to write instead."""
    found = faults(patch(row(), contract=[told("VAL-001", command)]))
    assert found.startswith("the check `")
    assert ": " in found.split("`")[-1]


@pytest.mark.parametrize("command", ALLOWED)
def test_what_only_looks_like_it_is_allowed(command: str) -> None:
    """Correct shell passes."""
    assert planner.form_faults(command) == []


def test_a_long_check_is_named_by_its_beginning() -> None:
    """The message stays short."""
    (found,) = planner.form_faults("test -f " + "x" * 500 + " || true")
    assert len(found) < 200


# a later plan is a patch by id


def test_what_a_patch_does_not_list_stays() -> None:
    """Old features, claims, setup and services keep their order; new ones follow."""
    known = Contract(
        setup="make", services=[Service(name="w", run="r", ready="q")], claims=[claim("VAL-001"), claim("VAL-002")]
    )
    old = [feature("F-001", attempts=2, status="failing"), feature("F-002")]
    made, found = drafted(patch(row("F-003")), old, known)
    assert found == []
    assert made.features[:2] == old
    assert [one.id for one in made.features] == ["F-001", "F-002", "F-003"]
    assert made.contract.claims[:2] == known.claims
    assert (made.contract.setup, made.contract.services) == (known.setup, known.services)


def test_what_it_lists_is_laid_over_and_keeps_its_tries() -> None:
    """Title, order and claims come from the plan; status, attempts and notes come from the past."""
    old = feature("F-001", attempts=2, status="failing", description="kept", priority=5)
    old.note("t", "r", "reason", text="n")
    made, found = drafted(patch(row(title="New", claims=["VAL-001", "VAL-009"])), [old])
    assert found == []
    assert made.features == [old.replace(title="New", claims=["VAL-001", "VAL-009"])]


def test_what_has_passed_is_immutable() -> None:
    """Neither the feature nor its claims can be changed or dropped; repeating them is not a change."""
    done = feature("F-001", status="passed", attempts=1)
    assert "F-001 has passed and cannot be changed" in faults(patch(row(title="Other")), done)
    assert "F-001 has passed and cannot be changed" in faults(
        patch(row("F-002"), drop=[{"id": "F-001", "reason": "r"}]), done
    )
    weaker = {"features": [], "contract": [told("VAL-001", "test -e VAL-001")]}
    assert "VAL-001 belongs to a feature that has passed and cannot be changed" in faults(weaker, done)
    gone = patch(row("F-002"), drop=[{"id": "VAL-001", "reason": "r"}])
    assert "VAL-001 belongs to a feature that has passed" in faults(gone, done)
    assert faults(patch(row()), done) == ""


def test_dropping_needs_a_reason_and_is_logged() -> None:
    """A dropped item is removed, with its reason in the log; a reply without a reason does not fit the schema."""
    value = patch(row("F-002"), drop=[{"id": "F-001", "reason": "too big"}, {"id": "VAL-001", "reason": "split"}])
    made, found = drafted(value, [OLD])
    assert found == []
    assert [one.id for one in made.features] == ["F-002"]
    assert [one.id for one in made.contract.claims] == ["VAL-002"]
    assert {(one.verb, one.claim, one.why) for one in made.log} == {
        ("drop", "VAL-001", "split"),
        ("drop feature", "F-001", "too big"),
        ("add", "VAL-002", "planned"),
    }
    assert replies.faults("plans", {**value, "drop": [{"id": "F-001"}]}) != []


def test_dropping_leaves_no_loose_ends() -> None:
    """The error names its claims and the features that depend on it."""
    value = {"features": [], "contract": [], "drop": [{"id": "F-001", "reason": "r"}]}
    found = faults(value, OLD, feature("F-002", depends_on=["F-001"]))
    assert "no feature has the claim VAL-001" in found
    assert "F-002 depends on 'F-001', which does not exist" in found


@pytest.mark.parametrize("name", ["F-009", "f-009"])
def test_an_id_is_never_used_again(name: str) -> None:
    """Otherwise run log, commits and notes of the dropped feature would refer to another one."""
    value = patch(row(name, claims=["VAL-1"]))
    assert f"the id '{name}' was dropped before; ids are never reused" in faults(value, retired="F-009")


def test_dropping_and_giving_the_same_id_is_a_contradiction() -> None:
    """Neither happens silently."""
    value = patch(row(title="New"), row("F-002"), drop=[{"id": "F-001", "reason": "r"}])
    assert "the id 'F-001' was dropped" in faults(value, OLD)


def test_every_change_of_a_check_is_logged_with_old_and_new() -> None:
    """A weakened contract is visible: the log works as a ratchet."""
    made, _ = drafted(patch(row(), contract=[told("VAL-001", "test -f other")]), [OLD])
    (change,) = made.log
    assert (change.verb, change.claim) == ("change", "VAL-001")
    assert change.old is not None
    assert change.old.checks == [Check(run="test -f VAL-001")]
    assert change.new is not None
    assert change.new.checks == [Check(run="test -f other")]
    same, _ = drafted(patch(row()), [OLD])
    assert same.log == []


def test_only_new_checks_are_tried() -> None:
    """Existing checks were tried when they were added."""
    known = Contract(claims=[claim("VAL-001", "test -f a", "test -f b")])
    value = patch(row(), contract=[told("VAL-001", "test -f a", "test -f c")])
    assert drafted(value, [OLD], known)[0].new_checks == ["test -f c"]


def test_drafting_changes_nothing_that_it_was_given() -> None:
    """A rejected plan leaves features and contract as they were, also in memory."""
    old, known = [feature("F-001", status="failing", attempts=1)], Contract(setup="s", claims=[claim("VAL-001")])
    before = copy.deepcopy((features.render(old), known))
    value = patch(row(title="New"), contract=[told("VAL-001", "x || true")], setup="t")
    drafted(value, old, known)
    assert (features.render(old), known) == before


def place(house: House) -> CheckEnvironment:
    """Where the checks of this mission run."""
    return CheckEnvironment(directory=str(house.tree), seconds=9)


def test_the_missions_own_folder_is_a_path_of_this_machine(house: House) -> None:
    """A check that names it, or the tree, would test that folder while the sweep tests a fresh clone."""
    lay(house, [OLD])
    for folder in (house.project, house.tree):
        value = patch(row(), contract=[told("VAL-001", f"test -f '{folder}/x'")])
        with pytest.raises(RequestRefused, match="names this folder"):
            planner.examined(house.layout, value, place(house))


# a plan that cannot be written down is refused


UNWRITABLE: list[dict[str, Any]] = [
    patch(row(), services=[{"name": "two words", "run": "r", "ready": "q"}]),
    patch(row(), services=[{"name": "w", "run": "r", "ready": "a\nb"}]),
    patch(row(), contract=[told("VAL-001", "test -f a\r\ntest -f b", reason="it was wrong")]),
    patch(row(), contract=[told("VAL-001", "test -f \0", reason="it was wrong")]),
    patch(row(), contract=[told("VAL-001", "test -f \ud800", reason="it was wrong")]),
]


@pytest.mark.parametrize("value", UNWRITABLE, ids=range(len(UNWRITABLE)))
def test_a_contract_that_would_not_read_back_is_refused(house: House, value: dict[str, Any]) -> None:
    """Every later run can read what lands, and it reads the same."""
    lay(house, [OLD])
    with pytest.raises(
        RequestRefused, match=r"cannot be written down|has characters that control a terminal or hide text"
    ):
        planner.examined(house.layout, value, place(house))


def test_a_command_with_a_secret_or_hidden_characters_is_refused(house: House) -> None:
    """It would stand in contract, receipts and prompts, and masked it would be another command; the reason has no secret."""
    lay(house, [OLD])
    token = "gh" + "p_a8Kd93jfLs02LqPz7Xc1Vb5Nm4Qw6Er8Ty2Ui0"
    kept = patch(row(), contract=[told("VAL-001", "curl -u user:s3cretPw93x localhost", reason="it was wrong")])
    planner.examined(house.layout, kept, place(house))
    service = {"name": "w", "run": f"serve {token}", "ready": "true"}
    value = patch(
        row(), services=[service], contract=[told("VAL-001", f"curl -H {token} \x1b[8m", reason="it was wrong")]
    )
    with pytest.raises(RequestRefused) as fault:
        planner.examined(house.layout, value, place(house))
    assert str(fault.value).count("contains a secret (github-token): use a made-up value") == 2
    assert token not in str(fault.value)


# landing


def state(house: House) -> dict[str, bytes | None]:
    """The files that a plan may change."""
    return {name: files.read(str(house.state / name)) for name in LIVE}


def planned(house: House, name: str = "", **value: Any) -> dict[str, Any]:
    """A planner's run with this reply; its result."""
    house.script("planner", reply(**{"features": [], "contract": [], **value}))
    role(house, "planner", *([name] if name else []))
    return house.result()


def test_a_plan_lands_whole_with_the_spec_it_was_made_from(house: House) -> None:
    """Features, contract, spec and log land in one run; the log names the run."""
    lay(house, [OLD])
    house.write("SPEC.md", "# Other\n")
    result = planned(house, **patch(row("F-002")))
    assert (result["accepted"], result["totals"]["rejected"]) == (True, 0)
    assert [one.id for one in features.load(house.layout)] == ["F-001", "F-002"]
    assert [one.id for one in contract_of(house).claims] == ["VAL-001", "VAL-002"]
    assert house.read("spec.md") == "# Other\n"
    log = log_of(house)
    assert [(line["verb"], line["claim"]) for line in log] == [("setup", ""), ("add", "VAL-001"), ("add", "VAL-002")]
    assert {line["by"] for line in log} == {result["run"]}


def test_a_rejected_plan_leaves_the_disk_and_its_reasons_reach_the_next_planner(house: House) -> None:
    """The reasons are in the result and in the next prompt; nothing else changes."""
    lay(house, [OLD])
    house.write("SPEC.md", "# Other\n")
    before = state(house)
    result = planned(house, **patch(row("F-002", claims=[]), contract=[]))
    assert (result["accepted"], result["outcome"], result["totals"]["rejected"]) == (False, "ok", 1)
    assert state(house) == before
    prompt = prompt_of(house, "planner")
    assert "### How your role's last run here ended" in prompt
    assert "- F-002 has no claim: nothing would show that it works" in prompt


def test_a_check_that_is_green_on_nothing_is_refused(house: House) -> None:
    """The harness runs it in an empty folder and does not guess."""
    lay(house, [OLD])
    value = patch(row("F-002"), contract=[told("VAL-002", "echo fine")])
    result = planned(house, **value)
    assert result["accepted"] is False
    assert "the check `echo fine` passes in an empty folder" in result["reason"]


def test_a_guard_that_passes_where_there_are_no_tests_is_refused_with_how_to_write_it(house: House) -> None:
    """The planner's words say it beforehand, and the next plan, written so, is accepted."""
    lay(house, [OLD])
    tests = "command -v bash >/dev/null"  # as a runner of tests that finds none
    guarded = {**told("VAL-002", "test -f two.txt"), "checks": ["test -f two.txt", {"run": tests, "guard": True}]}
    reason = planned(house, **patch(row("F-002"), contract=[guarded]))["reason"]
    assert f"the check `{tests}` passes in an empty folder" in reason
    assert "such as `test -d tests && python3 -m unittest -q`" in reason
    assert "test -d tests && python3 -m unittest -q" in house.prompt()
    (house.project / "tests").mkdir()
    house.write("tests/__init__.py", "")
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "tests")
    guarded["checks"][1]["run"] = f"test -d tests && {tests}"
    assert planned(house, **patch(row("F-002"), contract=[guarded]))["accepted"] is True


def test_three_planners_without_a_plan_end_the_mission(house: House) -> None:
    """For every reason: a bad plan, no plan, a reply that does not parse. Exit 7, and escalation.md says so."""
    Path(house.layout.path(names.FEATURES)).unlink()
    Path(house.layout.path(names.CONTRACT)).unlink()
    bad: list[dict[str, str]] = [
        reply(features=[], contract=[]),
        {"say": "I would rather not."},
        reply(features="many"),
    ]
    for number, step in enumerate(bad, start=1):
        house.script("planner", step)
        role(house, "planner", HARNESS_LOOP=str(os.getpid()))
        assert house.result()["totals"]["rejected"] == number
    assert "kind: plan" in house.read("escalation.md")
    assert house.harness("next").code == 7


def test_a_planner_without_a_reply_is_not_accepted(house: House) -> None:
    """Prose alone is not a plan."""
    house.script("planner", {"say": "Here is my plan: all of it."})
    role(house, "planner")
    result = house.result()
    assert (result["accepted"], result["outcome"]) == (False, "agent_error")


def test_issues_that_a_planner_has_seen_are_planned(house: House) -> None:
    """Critical and major issues are shown once; smaller ones stay open."""
    lay(house, [OLD])
    given = [{"title": name, "severity": name} for name in issues.SEVERITIES]
    changes = journal.Journal(house.layout)
    changes.append(house.layout.path(names.ISSUES), issues.render(issues.new([], given, "person")))
    changes.commit()
    assert "[critical] critical" in prompt_of(house, "planner")
    planned(house, **patch(row("F-002")))
    assert [one.state for one in issues.load(house.layout)] == ["planned", "planned", "open", "open"]


def test_an_issue_that_the_planner_raises_itself_is_not_lost(house: House) -> None:
    """Its own issues land with its plan, as open."""
    lay(house, [OLD])
    planned(house, **patch(row("F-002"), issues=[{"title": "odd", "severity": "major"}]))
    assert [(one.title, one.state) for one in issues.load(house.layout)] == [("odd", "open")]


def test_a_changed_check_says_why(house: House) -> None:
    """Without a reason the change does not land; with one, the log has it. An additional check needs none."""
    lay(house, [feature("F-001", status="failing", attempts=1)])
    assert "say why in 'reason'" in planned(house, contract=[told("VAL-001", "test -f better")])["reason"]
    assert planned(house, contract=[told("VAL-001", "test -f better", reason="better it is")])["accepted"] is True
    assert log_of(house)[-1]["why"] == "better it is"
    assert planned(house, contract=[told("VAL-001", "test -f better", "test -f more")])["accepted"] is True


def test_a_disputed_feature_starts_anew_after_its_planner(house: House) -> None:
    """It becomes todo, counts as replanned, keeps its tries, and the dispute is resolved."""
    old = feature("F-001", status="blocked", attempts=2)
    old.note("t", "r", "dispute", text="the claim is wrong", claims=["VAL-001"])
    lay(house, [old])
    result = planned(house, "F-001", contract=[told("VAL-001", "test -f better", reason="it was wrong")])
    assert result["accepted"] is True, result["reason"]
    made = house.feature()
    assert (made.status, made.attempts, made.replanned) == ("todo", 2, True)
    assert features.disputed(made) == []
    assert contract_of(house).claims[0].checks == [Check(run="test -f better")]


def test_a_feature_whose_claims_changed_is_todo_again_without_its_planner_asked(house: House) -> None:
    """Its red checks no longer exist; but only the feature that was asked about counts as replanned."""
    lay(house, [feature("F-001", status="failing", attempts=1), feature("F-002", status="failing", attempts=1)])
    planned(house, contract=[told("VAL-001", "test -f better", reason="it was wrong")])
    assert [(one.status, one.attempts, one.replanned) for one in features.load(house.layout)] == [
        ("todo", 1, False),
        ("failing", 1, False),
    ]


def test_ids_that_were_dropped_are_remembered_on_disk(house: House) -> None:
    """The log stores them; the next plan must not use them."""
    lay(house, [OLD])
    drop = [{"id": "F-001", "reason": "r"}, {"id": "VAL-001", "reason": "r"}]
    assert planned(house, **patch(row("F-002"), drop=drop))["accepted"] is True
    assert contract_log.retired(contract_log.load(house.layout)) == {"F-001", "VAL-001"}
    result = planned(house, **patch(row("F-001", claims=["VAL-009"])))
    assert "the id 'F-001' was dropped before" in result["reason"]


def test_a_plan_is_checked_while_its_planner_lives(house: House) -> None:
    """`harness reply` reports the errors, so the planner can fix them in the same run; the last good plan lands."""
    lay(house, [OLD])
    bad, good = json.dumps(patch(row("F-002", claims=[]), contract=[])), json.dumps(patch(row("F-002")))
    house.script(
        "planner",
        {"run": f"echo '{bad}' | harness reply - >said 2>&1 && exit 9; grep 'F-002 has no claim' said; rm said"},
        {"run": f"echo '{good}' | harness reply -"},
    )
    assert house.role("planner").code == 0, house.result()
    assert house.result()["accepted"] is True
    assert house.feature("F-002").status == "todo"


def test_the_books_say_which_plan_was_taken(house: House) -> None:
    """`accepted` is null for roles that do not plan."""
    lay(house, [OLD])
    planned(house, **patch(row("F-002")))
    worked(house, {"run": "touch VAL-001"})
    assert [one.accepted for one in runs.finished(house.layout)] == [None, True]


# red before green


EARLY = told("VAL-002", "test -f main.py")


def before(house: House) -> list[Receipt]:
    """The receipts of the newest run."""
    return receipts.load(house.layout.run(house.result()["run"]).receipts)


def word(house: House, name: str = "VAL-002") -> str:
    """The claim status that its receipts give."""
    return index.claim_status(contract_of(house).claim(name), index.load(house.layout), set(), set()).word


def test_new_checks_are_seen_red_before_the_work(house: House) -> None:
    """Each has a `before` receipt in the planner's run; checks that were already in the contract do not run."""
    lay(house, [OLD])
    result = planned(house, **patch(row("F-002", claims=["VAL-002", "VAL-003"])))
    assert result["accepted"] is True
    assert [(one.claim, one.phase, one.exit, one.head, one.by) for one in before(house)] == [
        ("VAL-002", "before", 1, house.head(), result["run"]),
        ("VAL-003", "before", 1, house.head(), result["run"]),
    ]


def test_a_check_that_is_green_too_early_goes_back_once_and_lands_unproven(house: House) -> None:
    """It proves nothing; the planner learns which check it is and may keep it; DONE still reports the claim as unproven."""
    lay(house, [OLD])
    value = patch(row("F-002"), contract=[EARLY])
    result = planned(house, **value)
    assert result["accepted"] is False
    assert "a check of VAL-002 is green already, on today's tree: make it a guard" in result["reason"]
    assert "is green already" in prompt_of(house, "planner")
    assert [one.id for one in features.load(house.layout)] == ["F-001"]
    assert planned(house, **value)["accepted"] is True
    assert (word(house), house.feature("F-002").status) == ("unproven", "validating")


def test_one_round_is_for_the_check_that_was_told_and_for_no_other(house: House) -> None:
    """A new check that is green goes back too; an accepted plan resets the round."""
    lay(house, [OLD])
    planned(house, **patch(row("F-002"), contract=[EARLY]))
    other = patch(row("F-002"), contract=[told("VAL-002", "grep hello main.py")])
    assert "grep hello main.py" in planned(house, **other)["reason"]
    planned(house, **patch(row("F-003")))
    assert planned(house, **patch(row("F-002"), contract=[EARLY]))["accepted"] is False


def test_a_guard_may_be_green(house: House) -> None:
    """A guard is always green: for example the project's own tests."""
    lay(house, [OLD])
    value = patch(row("F-002"), contract=[told("VAL-002", {"run": "test -f main.py", "guard": True}, "test -f new")])
    assert planned(house, **value)["accepted"] is True
    assert [(one.guard, one.green) for one in before(house)] == [(True, True), (False, False)]
    assert house.feature("F-002").status == "todo"


def test_a_feature_whose_every_check_is_green_goes_straight_to_its_validation(house: House) -> None:
    """A worker has nothing to do."""
    lay(house, [OLD])
    value = patch(
        row("F-002"),
        row("F-003"),
        contract=[told("VAL-002", {"run": "test -f main.py", "guard": True}), told("VAL-003")],
    )
    assert planned(house, **value)["accepted"] is True
    assert [one.status for one in features.load(house.layout)] == ["todo", "validating", "todo"]
    assert house.feature("F-002").attempts == 0


def test_a_check_that_takes_too_long_is_red(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is 60 s at most, whatever the check's own; such a check may be right for an unbuilt feature."""
    assert planner.BEFORE_SECONDS == 60
    monkeypatch.setattr(planner, "BEFORE_SECONDS", 1)  # the test does not wait a minute
    lay(house, [OLD])
    slow = told("VAL-002", {"run": "test -f main.py && sleep 30", "seconds": 900})
    assert planned(house, **patch(row("F-002"), contract=[slow]))["accepted"] is True
    assert [(one.exit, one.verdict) for one in before(house)] == [(None, "red (timed out)")]
    assert contract_of(house).claims[1].checks[0].seconds == 900


def test_a_live_planner_is_told_too_and_mends_its_plan_in_the_same_run(house: House) -> None:
    """`harness reply` runs the checks that settle runs: it refuses once, and the better check is accepted."""
    lay(house, [OLD])
    early, good = (json.dumps(patch(row("F-002"), contract=[one])) for one in (EARLY, told("VAL-002")))
    told_early = f"echo '{early}' | harness reply - >$TMPDIR/said 2>&1 && exit 9; grep 'is green already' $TMPDIR/said"
    house.script("planner", {"run": told_early}, {"run": f"echo '{good}' | harness reply -"})
    assert house.role("planner").code == 0, house.result()
    assert house.result()["accepted"] is True
    assert [(one.command, one.green) for one in before(house)] == [("test -f VAL-002", False)]


def test_a_live_planner_that_stands_by_its_check_has_it_unproven(house: House) -> None:
    """The second identical reply in a run lands; its feature waits for its validation."""
    lay(house, [OLD])
    send = f"echo '{json.dumps(patch(row('F-002'), contract=[EARLY]))}' | harness reply -"
    house.script("planner", {"run": f"{send} && exit 9; {send}"})
    assert house.role("planner").code == 0, house.result()
    assert (house.result()["accepted"], word(house)) == (True, "unproven")


@pytest.mark.parametrize("confine", ["auto", "off"])
def test_a_planner_cannot_write_its_own_receipts(house: House, confine: str) -> None:
    """The agent plants a red receipt for a check that never ran: the harness runs what lands after the agent is gone."""
    house.config('agent = "scripted"', f'confine = "{confine}"')
    lay(house, [OLD])
    planned(house, **patch(row("F-003")))
    forged = before(house)[0].replace(claim="VAL-002", command="test -f main.py")
    line = json.dumps(forged.asdict())
    own = f"test -f $run/result.json || echo '{line}' > $run/receipts.jsonl || true"
    step = f"for run in .harness/runs/*-planner*/; do {own}; done"
    house.script("planner", {"run": step}, reply(**patch(row("F-002"), contract=[EARLY])))
    role(house, "planner")
    assert house.result()["accepted"] is False
    assert "is green already" in house.result()["reason"]


@pytest.mark.parametrize("confine", ["auto", "off"])
def test_garbage_where_receipts_stand_stops_nobody(house: House, confine: str) -> None:
    """The harness did not write it, and it counts for nothing."""
    house.config('agent = "scripted"', f'confine = "{confine}"')
    lay(house, [OLD])
    step = "for run in .harness/runs/*-planner*/; do echo garbage > $run/receipts.jsonl || true; done"
    house.script("planner", {"run": step}, reply(**patch(row("F-002"))))
    role(house, "planner")
    assert house.result()["accepted"] is True
    assert [one.phase for one in before(house)] == ["before"]


def test_checks_before_the_work_have_their_services(house: House) -> None:
    """This also holds for services that the plan adds."""
    lay(house, [OLD])
    web = {"name": "web", "run": "echo $PORT >port; sleep 60", "ready": "test -s port", "seconds": 20}
    value = patch(row("F-002"), contract=[told("VAL-002", "cmp port <(echo $PORT) && exit 7")], services=[web])
    assert planned(house, **value)["accepted"] is True
    assert [one.exit for one in before(house)] == [7]


def test_a_red_setup_calls_a_person_and_lands_nothing(house: House) -> None:
    """The first plan's setup runs on the current tree; no feature uses a try."""
    lay(house, [OLD])
    was = state(house)
    result = planned(house, **patch(row("F-002")), setup="echo no compiler here; exit 4")
    assert (result["accepted"], before(house)) == (False, [])
    assert "kind: setup" in house.read("escalation.md")
    assert "setup ended with exit 4:\nno compiler here" in house.read("escalation.md")
    assert state(house) == was
    assert house.harness("next").code == 3


def test_the_setup_of_a_plan_is_run_before_its_checks(house: House) -> None:
    """Its output is present, and is not part of the project."""
    lay(house, [OLD])
    value = patch(row("F-002"), contract=[told("VAL-002", "cat made; test -f new")])
    assert planned(house, **value, setup="echo ready >made")["accepted"] is True
    assert [one.output for one in before(house)] == ["ready\n"]


def test_a_refused_reply_is_the_reason_of_a_run_that_brings_no_better_one(house: House) -> None:
    """Not 'gave no reply': what was wrong with it is on the run line, and the next planner reads it."""
    lay(house, [OLD])
    bad = json.dumps({"features": [{"id": "F-002", "title": "x", "claims": []}], "contract": []})
    house.script("planner", {"run": f"echo '{bad}' | harness reply - || true"})
    done = house.role("planner")
    said = "its reply was refused: The plan is rejected:"
    assert house.result()["reason"] == f"{said}\n- F-002 has no claim: nothing would show that it works"
    assert f"{said} F-002 has no claim" in done.out
    assert "gave no reply" not in house.read("runs.jsonl")
    assert "F-002 has no claim" in prompt_of(house, "planner")


def test_a_good_reply_after_a_refused_one_leaves_nothing_of_it(house: House) -> None:
    """In whichever way it comes."""
    lay(house, [OLD])
    good, bad = patch(row("F-002")), json.dumps({"features": "many"})
    send = f"echo '{bad}' | harness reply - || true"
    house.script("planner", {"run": f"{send}; echo '{json.dumps(good)}' | harness reply -"})
    house.role("planner")
    assert (house.result()["accepted"], house.result()["reason"]) == (True, "")
    assert not Path(house.layout.run(house.result()["run"]).reply_fault).exists()
    house.script("planner", {"run": send}, reply(**patch(row("F-003"))))
    house.role("planner")
    assert (house.result()["accepted"], house.result()["reason"]) == (True, "")
