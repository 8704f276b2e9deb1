"""Plans: how a bad plan is rejected, what a patch may and may never change, and how a plan lands."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import RequestRefused
from harness.commands import why
from harness.mission import contract_log, features, issues, receipts, runs
from harness.mission.check_environment import CheckEnvironment
from harness.mission.contract import Check, Contract
from harness.mission.receipts import Receipt
from harness.proof import index
from harness.run.settle import planner
from harness.state import files, journal, names
from tests.missions import House
from tests.planned import claim, contract_of, feature, lay, log_of, prompt_of, reply, role, worked
from tests.run.settle.test_plan import OLD, patch, row, told

LIVE = ("features.json", "validation-contract.md", "spec.md", "contract-log.jsonl", "issues.jsonl")


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


LONG = "# Tool\n\n## 2. Output formats\n\nJSON.\n\n## Errors\n\n" + "More of it.\n" * 2_200


def test_of_a_long_spec_a_section_that_does_not_exist_is_refused_with_those_that_do(house: House) -> None:
    """In the conversation too: a worker would not see what it is to build. A heading of another form is found."""
    lay(house, [OLD])
    house.write("SPEC.md", LONG)
    refused = planned(house, **patch(row("F-002", spec_refs=["Formats", "errors"])))
    assert refused["accepted"] is False
    assert "SPEC.md has no heading 'Formats' of F-002; it has: Tool; 2. Output formats; Errors" in refused["reason"]
    lost, good = (json.dumps(patch(row("F-002", spec_refs=[ref]))) for ref in ("gone", "Output formats"))
    told_lost = f"echo '{lost}' | harness reply - >$TMPDIR/said 2>&1 && exit 9; grep \"no heading 'gone'\" $TMPDIR/said"
    house.script("planner", {"run": told_lost}, {"run": f"echo '{good}' | harness reply -"})
    assert house.role("planner").code == 0, house.result()
    assert house.result()["accepted"] is True
    house.script("worker", reply(status="blocked", reason="x"))
    role(house, "worker", "F-002")
    prompt = house.prompt()
    assert "## 2. Output formats\n\nJSON.\n" in prompt and "More of it." not in prompt


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


GUARD = {"run": "echo the suite is broken; test -f fixed", "guard": True}


def test_a_guard_that_is_red_before_any_work_goes_back_once_with_its_reason(house: House) -> None:
    """The planner may narrow it, drop it or plan its repair; sent again it lands, and `why` says since when it is red."""
    lay(house, [OLD])
    value = patch(row("F-002"), contract=[told("VAL-002", GUARD, "test -f new")])
    result = planned(house, **value)
    assert result["accepted"] is False
    said = "a guard of VAL-002 is red on today's tree: narrow it, drop it, or plan its repair"
    assert f"{said}\n    {GUARD['run']}\n    the suite is broken" in result["reason"]
    assert said in prompt_of(house, "planner")
    assert planned(house, **value)["accepted"] is True
    assert [(one.guard, one.exit) for one in before(house)] == [(True, 1), (False, 1)]
    red, check = (line for line in why.explain(house.layout, "VAL-002") if line.startswith("    red "))
    assert (red.endswith(", red since before the plan"), "since" in check) == (True, False)
    worked(house, {"run": "touch fixed"}, reply(status="implemented", summary="s"))
    role(house, "validator", "F-002")
    assert not any("red since" in line for line in why.explain(house.layout, "VAL-002"))


@pytest.mark.parametrize("run", ["test -f .once || { touch .once; exit 1; }", "test -f main.py && sleep 30"])
def test_a_guard_that_is_red_once_or_runs_out_of_time_does_not_go_back(
    house: House, monkeypatch: pytest.MonkeyPatch, run: str
) -> None:
    """It may depend on chance, or be good in its own time."""
    monkeypatch.setattr(planner, "BEFORE_SECONDS", 1)
    lay(house, [OLD])
    value = patch(row("F-002"), contract=[told("VAL-002", {"run": run, "guard": True}, "test -f new")])
    assert planned(house, **value)["accepted"] is True


def test_a_live_planner_learns_of_a_red_guard_and_may_stand_by_it(house: House) -> None:
    """The second identical reply in a run lands."""
    lay(house, [OLD])
    value = patch(row("F-002"), contract=[told("VAL-002", GUARD, "test -f new")])
    send = f"echo '{json.dumps(value)}' | harness reply -"
    house.script("planner", {"run": f"{send} >$TMPDIR/said 2>&1 && exit 9; grep 'is red on' $TMPDIR/said; {send}"})
    assert house.role("planner").code == 0, house.result()
    assert house.result()["accepted"] is True


@pytest.mark.parametrize(("guards", "shown"), [("ask", True), ("accept", False)])
def test_claims_with_guards_alone_are_named_when_the_plan_comes(house: House, guards: str, shown: bool) -> None:
    """In the result and in the line that run.sh prints, unless the configuration accepts them; others are not."""
    lay(house, [OLD])
    house.config('agent = "scripted"', f'[proof]\nguards = "{guards}"')
    alone, manual = told("VAL-002", {"run": "test -f main.py", "guard": True}), told("VAL-004", manual=True)
    both = told("VAL-003", {"run": "test -f main.py", "guard": True}, "test -f new")
    house.script(
        "planner",
        reply(**patch(row("F-002", claims=["VAL-002", "VAL-003", "VAL-004"]), contract=[alone, both, manual])),
    )
    said = "guards alone prove nothing, so DONE will wait until a person accepts VAL-002"
    assert (said in house.role("planner").out) == shown
    assert house.result()["accepted"] is True
    assert house.result()["reason"] == said * shown


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


RED = "echo no compiler here; exit 4"
SAID = "setup ended with exit 4:\nno compiler here"


def test_a_red_setup_that_a_plan_brings_refuses_it_and_the_third_calls_a_person(house: House) -> None:
    """Nothing lands, no check runs; each refusal has the output, and the escalation the command."""
    lay(house, [OLD])
    house.write("SPEC.md", "# Other\n")
    was = state(house)
    for number in (1, 2, 3):
        assert not (house.state / "escalation.md").exists()
        result = planned(house, **patch(row("F-002")), setup=RED)
        assert (result["accepted"], result["totals"]["rejected"], before(house)) == (False, number, [])
        assert result["reason"].startswith("The plan is rejected for the setup that it brings")
        assert SAID in result["reason"]
        assert "no compiler here" in prompt_of(house, "planner")
    text = house.read("escalation.md")
    assert "kind: setup" in text and SAID in text and f"    {RED}\n" in text
    assert "run it again, with every check" not in text  # those are the contract's, which has no setup
    assert state(house) == was
    assert (house.harness("next").out, house.harness("next").code) == ("ESCALATE setup\n", 3)


def test_a_red_setup_is_told_in_the_conversation_and_a_plan_without_it_lands(house: House) -> None:
    """`harness reply` refuses the plan with the output of its setup."""
    lay(house, [OLD])
    bad, good = (json.dumps(patch(row("F-002"), **more)) for more in ({"setup": "make build"}, {}))
    refused = f"echo '{bad}' | harness reply - >$TMPDIR/said 2>&1 && exit 9; grep 'No rule to make target' $TMPDIR/said"
    house.script("planner", {"run": refused}, {"run": f"echo '{good}' | harness reply -"})
    assert house.role("planner").code == 0, house.result()
    assert (house.result()["accepted"], contract_of(house).setup) == (True, "")


def test_a_planner_that_gives_up_at_the_last_red_setup_calls_a_person_too(house: House) -> None:
    """Its only plan was refused in the conversation; an escalation of another kind would ask about the spec."""
    lay(house, [OLD])
    for _ in range(2):
        planned(house, **patch(row("F-002", claims=[]), contract=[]))
    house.script("planner", {"run": f"echo '{json.dumps(patch(row('F-002'), setup=RED))}' | harness reply - || true"})
    house.role("planner")
    assert (house.result()["totals"]["rejected"], house.harness("next").out) == (3, "ESCALATE setup\n")
    assert SAID in house.read("escalation.md")


@pytest.mark.parametrize(
    "more", [{}, {"setup": RED}, {"setup": RED + "\n"}], ids=["left out", "repeated", "with a newline"]
)
def test_a_red_setup_of_the_contract_calls_a_person_at_once(house: House, more: dict[str, str]) -> None:
    """No plan brought it, so none can mend it by leaving it out."""
    lay(house, [OLD], Contract(claims=[claim("VAL-001")], setup=RED))
    result = planned(house, **patch(row("F-002")), **more)
    assert (result["accepted"], result["totals"]["rejected"]) == (False, 1)
    text = house.read("escalation.md")
    assert "kind: setup" in text and f"The contract's {SAID}" in text and f"    {RED}\n" in text
    assert "run it again, with every check" in text
    assert house.harness("next").out == "ESCALATE setup\n"


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
