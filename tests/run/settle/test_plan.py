"""A plan: which faults are named, what stays, what is logged, and that its cost grows with its size alone."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from harness.mission import features, replies
from harness.mission.contract import Check, Contract, Service
from harness.mission.contract_log import ContractChange
from harness.mission.features import Feature
from harness.mission.mission import SPEC_CHARS
from harness.run.settle import _plan, planner
from harness.run.settle._plan import Draft
from tests.helpers import Name, growth
from tests.planned import claim, feature


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
    return _plan.draft(value, found, known, [ContractChange(verb="drop", claim=name, why="") for name in retired or ()])


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
    made = _plan.draft(large(number), [], Contract(), [])[0]
    made.new_checks = [Name(command) for command in made.new_checks]
    for check in (check for one in made.contract.claims for check in one.checks):
        check.run = Name(check.run)
    return made


def first_plan(number: int) -> Callable[[], object]:
    """The lint of a first plan."""
    value = large(number)
    return lambda: _plan.draft(value, [], Contract(), [])


def plan_again(number: int) -> Callable[[], object]:
    """The lint of a plan that changes every claim."""
    value, made = large(number), landed(number)
    for one in value["contract"]:
        one.update(checks=["make test"], reason="one suite")
    return lambda: _plan.draft(value, made.features, made.contract, [])


STEPS: dict[str, Callable[[int], Callable[[], object]]] = {
    "lint of a first plan": first_plan,
    "lint of a plan that changes all": plan_again,
    "reading the contract back": lambda number: partial(_plan.write_faults, landed(number).contract),
    "picking the new checks": lambda number: partial(landed(number).untried, set()),
    "features that are green already": lambda number: partial(planner.move_green, landed(number), []),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_plan_four_times_as_large_takes_four_times_the_steps(name: str) -> None:
    """So a plan of thousands of features is settled in seconds."""
    assert growth(STEPS[name], 50) < 4.1


# lint


def test_only_a_new_reference_into_a_long_spec_with_headings_must_find_one() -> None:
    """A short spec is shown whole, one without headings has no sections, and what was accepted before stays."""
    long, refs = "# A\n\n## B\n" + "x\n" * SPEC_CHARS, ["b", "gone"]
    value, known = patch(row(spec_refs=refs), row("F-002")), [feature(spec_refs=refs), feature("F-002")]
    assert _plan.ref_faults(value, [], long) == ["SPEC.md has no heading 'gone' of F-001; it has: A; B"]
    for found, spec in (([], long[:9]), ([], long.replace("#", "")), (known, long), ([], "")):
        assert _plan.ref_faults(value, found, spec) == []


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
        setup_inputs=["Makefile", "web/package-lock.json"],
        services=[{"name": "web", "run": "serve", "ready": 'curl -fs "localhost:$PORT"', "seconds": 5}],
    )
    made, found = drafted(value)
    assert found == []
    assert [one.id for one in made.features] == ["F-001", "F-002"]
    assert made.features[0].replace(claims=[]) == Feature(
        id="F-001", title="Feature F-001", claims=[], description="d", spec_refs=["Part"], priority=3
    )
    assert (made.contract.setup, made.contract.setup_inputs) == ("make build", ["Makefile", "web/package-lock.json"])
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
    ("an input of the setup outside", "the setup's input '../lock' is not a plain path in the project"),
    ("an absolute input of the setup", "the setup's input '/etc/pip.conf' is not a plain path in the project"),
    ("inputs without a setup", "the setup has inputs, but no command"),
]
VALUES: dict[str, dict[str, Any]] = {
    "an input of the setup outside": patch(row(), contract=[told()], setup="make", setup_inputs=["lock", "../lock"]),
    "an absolute input of the setup": patch(row(), contract=[told()], setup="make", setup_inputs=["/etc/pip.conf"]),
    "inputs without a setup": patch(row(), contract=[told()], setup_inputs=["lock"]),
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
    assert _plan.form_faults(command) == []


MADE_UP = "echo gh" + "p_abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.mark.parametrize(
    "command",
    ["curl -u a:s3cretPw93x x", "printf '\\x1b[0m'\n\tnext", "test 'naïve' = x", "echo AKIAIOSFODNN7EXAMPLE", MADE_UP],
)
def test_a_command_may_have_an_example_and_escapes_that_the_shell_writes(command: str) -> None:
    """What only looks like a password is none either."""
    assert _plan.form_faults(command) == []


def test_a_long_check_is_named_by_its_beginning() -> None:
    """The message stays short."""
    (found,) = _plan.form_faults("test -f " + "x" * 500 + " || true")
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


@pytest.mark.parametrize(
    ("plan", "inputs"),
    [
        ({}, ["lock"]),
        ({"setup": "make\n"}, ["lock"]),
        ({"setup": "make all"}, []),
        ({"setup": "make", "setup_inputs": []}, []),
        ({"setup_inputs": ["other"]}, ["other"]),
    ],
)
def test_the_inputs_of_a_setup_stay_with_its_command(plan: dict[str, Any], inputs: list[str]) -> None:
    """Another command has those that come with it; a change of either gives its reason."""
    known = Contract(setup="make", setup_inputs=["lock"], claims=[claim("VAL-001")])
    made, found = drafted(patch(row(), **plan), [feature()], known)
    assert made.contract.setup_inputs == inputs
    assert bool(found) == ((made.contract.setup, inputs) != ("make", ["lock"]))
    assert not found or found[0].startswith("setup of the contract is changed or gone; say why")


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
