"""The validator's run: receipts decide and nothing else does; what an agent aims is fired, and counts only where it hits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from missions import House
from planned import claim, contract_of, due, feature, lay, log_of, raw_of, reply, role, worked

from harness import contract, features, receipts
from harness.contract import Check, Contract
from harness.features import Feature
from harness.receipts import Receipt

KNOWN = Contract(claims=[claim("VAL-1", "test -f one"), claim("VAL-2", "test -f two", "grep ok two")])


@pytest.fixture
def built(house: House) -> House:
    """A mission whose only feature waits for its validation; the files `one` and `two` decide."""
    lay(house, [feature("F-001", "VAL-1", "VAL-2", status="validating")], KNOWN)
    commit(house, one="", two="ok\n")
    return house


def commit(house: House, **texts: str) -> None:
    """These files in a commit of their own."""
    for name, text in texts.items():
        house.write(name, text)
    house.git("add", *texts)
    house.git("commit", "-q", "-m", "by hand")


def judged(house: House, *names: str, **env: str) -> dict[str, Any]:
    """A validator's run: its result."""
    role(house, "validator", *names, **env)
    return house.result()


def fired(house: House) -> list[Receipt]:
    """The receipts of the newest run."""
    return receipts.load(house.layout.run(house.result()["run"]).receipts)


def aims(*commands: str, name: str = "VAL-1") -> dict[str, str]:
    """A validator's reply that proposes these checks."""
    return reply(checks=[{"claim": name, "run": command, "why": "a user would see it"} for command in commands])


def tries(house: House) -> tuple[str, int]:
    """Status and attempts of the feature."""
    made = house.feature()
    return made.status, made.attempts


# green and red


def test_all_green_passes_the_feature_and_says_so_in_the_raw_memory(built: House) -> None:
    """Every check of every claim was fired in order; the try is counted once, a `-` line appended."""
    result = judged(built, "F-001")
    assert (result["verdict"], result["outcome"], result["newly_green"]) == ("green", "ok", 2)
    assert [(one.claim, one.exit, one.phase, one.by) for one in fired(built)] == [
        ("VAL-1", 0, "after", result["run"]),
        ("VAL-2", 0, "after", result["run"]),
        ("VAL-2", 0, "after", result["run"]),
    ]
    assert {(one.head, one.tree) for one in fired(built)} == {(built.head(), built.git("rev-parse", "HEAD^{tree}"))}
    assert tries(built) == ("passed", 1)
    assert raw_of(built) == [f"validator F-001 - passed at {built.head()[:10]}: VAL-1, VAL-2"]


def test_a_red_receipt_fails_the_feature_whatever_anybody_says(built: House) -> None:
    """One FAIL line a failed claim, with what the check said last; the agent is not even asked."""
    built.git("rm", "-q", "one", "two")
    built.git("commit", "-q", "-m", "gone")
    built.script("validator", {"run": "touch asked"}, reply(checks=[]))
    result = judged(built, "F-001")
    assert (result["verdict"], result["agent"]) == ("red", "")
    assert not (built.project / "asked").exists()
    assert tries(built) == ("failing", 1)
    assert raw_of(built) == [
        "validator F-001 FAIL: VAL-1 is red (exit 1): test -f one",
        "validator F-001 FAIL: VAL-2 is red (exit 2): grep: two: No such file or directory",
    ]


def test_by_hand_a_red_verdict_is_an_exit_code_and_in_the_loop_it_is_not(built: House) -> None:
    """A person sees 10; run.sh goes on."""
    built.git("rm", "-q", "one")
    built.git("commit", "-q", "-m", "gone")
    assert built.role("validator", "F-001").code == 10
    assert built.role("validator", "F-001", HARNESS_LOOP="1").code == 0


def test_an_agents_word_alone_passes_nothing(built: House) -> None:
    """A worker that says "implemented" and a validator that says "fine" leave a red feature red."""
    lay(built, [feature("F-001", "VAL-1", "VAL-2")], KNOWN)
    built.git("rm", "-q", "two")
    built.git("commit", "-q", "-m", "gone")
    built.script("validator", {"say": "All claims hold. VERDICT: passed"}, reply(checks=[]))
    worked(built, reply(status="implemented", summary="all done, all tests pass"))
    assert tries(built) == ("validating", 0)
    judged(built, "F-001")
    assert tries(built) == ("failing", 1)


def test_the_working_folder_is_put_back_after_the_checks(built: House) -> None:
    """What a check changes in a tracked file is no part of the next commit."""
    lay(built, [feature("F-001", "VAL-1", status="validating")], Contract(claims=[claim("VAL-1", "echo x >> one")]))
    judged(built, "F-001")
    assert (built.project / "one").read_text() == ""
    assert tries(built) == ("passed", 1)


def test_a_feature_of_manual_claims_alone_blocks_nothing(built: House) -> None:
    """A person decides those; here there is nothing to fire, and nothing proven either."""
    manual = contract.Claim(id="VAL-9", text="It looks right", manual=True)
    lay(built, [feature("F-001", "VAL-9", status="validating")], Contract(claims=[manual]))
    result = judged(built, "F-001")
    assert (tries(built), result["newly_green"]) == (("passed", 1), 0)


def test_features_that_waited_for_it_go_on_when_it_passes(built: House) -> None:
    """`needs` are met by a pass, not by a word."""
    waiting = feature("F-002", "VAL-2", status="blocked")
    waiting.note("t", "r", "needs", "first", ["F-001"])
    lay(built, [feature("F-001", "VAL-1", status="validating"), waiting], KNOWN)
    judged(built, "F-001")
    assert built.feature("F-002").status == "todo"


def test_only_what_was_not_green_before_is_newly_green(built: House) -> None:
    """The count by which a standstill is seen."""
    commit(built, two="not yet\n")
    assert judged(built, "F-001")["newly_green"] == 1
    commit(built, two="ok\n")
    assert judged(built, "F-001")["newly_green"] == 1
    assert judged(built, "F-001")["newly_green"] == 0


# tries


def test_a_try_is_counted_when_a_validation_ends_and_only_then(built: House) -> None:
    """Looking again by hand counts nothing, and a passed feature stays passed while it is green."""
    judged(built, "F-001")
    judged(built, "F-001")
    assert tries(built) == ("passed", 1)


def test_by_hand_a_passed_feature_that_is_red_now_fails(built: House) -> None:
    """A receipt outweighs an older one; no try is counted, because nothing was tried."""
    judged(built, "F-001")
    built.git("rm", "-q", "one")
    built.git("commit", "-q", "-m", "gone")
    judged(built, "F-001")
    assert tries(built) == ("failing", 1)


def test_by_hand_a_feature_that_nobody_has_built_is_not_passed(built: House) -> None:
    """Its checks may be green; it has not been through its worker, and no memory says that it passed."""
    lay(built, [feature("F-001", "VAL-1", "VAL-2")], KNOWN)
    assert judged(built, "F-001")["verdict"] == "green"
    assert tries(built) == ("todo", 0)
    assert raw_of(built) == []


# aim


def test_an_aimed_check_that_is_red_fails_the_feature_and_joins_the_contract(built: House) -> None:
    """It is fired by the harness, stands in the contract from now on, and in the log with the reason."""
    built.script("validator", aims("test -f three"))
    result = judged(built, "F-001")
    assert result["verdict"] == "red"
    assert tries(built) == ("failing", 1)
    assert contract_of(built).claims[0].checks == [Check(run="test -f one"), Check(run="test -f three")]
    (line,) = log_of(built)
    assert (line["by"], line["verb"], line["claim"], line["why"]) == (
        result["run"],
        "aim",
        "VAL-1",
        "a user would see it",
    )
    assert line["new"]["run"] == "test -f three"
    assert fired(built)[-1].command == "test -f three"
    assert raw_of(built) == ["validator F-001 FAIL: VAL-1 is red (exit 1): test -f three"]


def test_an_aimed_check_that_is_green_is_dropped(built: House) -> None:
    """It showed no fault; its receipt is kept, the contract stays as it was."""
    built.script("validator", aims("test -f two"))
    judged(built, "F-001")
    assert tries(built) == ("passed", 1)
    assert contract_of(built) == KNOWN
    assert log_of(built) == []
    assert fired(built)[-1].command == "test -f two"


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("VAL-404", "test -f three"),
        ("VAL-2", "grep ok two"),
        ("VAL-1", "false || true"),
        ("VAL-1", "sudo false"),
    ],
    ids=["a claim of no feature here", "a check that is there already", "a refused form", "sudo"],
)
def test_what_cannot_be_a_check_of_the_feature_is_not_fired(built: House, name: str, command: str) -> None:
    """An aim is held to what a plan is held to."""
    built.script("validator", aims(command, name=name))
    judged(built, "F-001")
    assert tries(built) == ("passed", 1)
    assert len(fired(built)) == 3
    assert contract_of(built) == KNOWN


def test_two_rounds_of_aim_and_then_checks_alone_decide(built: House) -> None:
    """A validator cannot keep a feature for ever."""
    for number in (1, 2):
        built.script("validator", aims(f"test -f extra-{number}"))
        judged(built, "F-001")
        assert tries(built) == ("failing", number)
        commit(built, **{f"extra-{number}": ""})
        lay(built, [built.feature().replace(status="validating")], contract_of(built))
    built.script("validator", {"run": "touch asked"}, aims("test -f extra-3"))
    assert judged(built, "F-001")["agent"] == ""
    assert not (built.project / "asked").exists()
    assert tries(built) == ("passed", 3)


def test_a_validator_without_a_playbook_proposes_nothing(built: House) -> None:
    """The embedded agent may have nothing to say; checks decide."""
    built.config('agent = "playbook"')
    assert judged(built, "F-001")["verdict"] == "green"
    assert tries(built) == ("passed", 1)


def test_too_many_notes_do_not_change_the_verdict(built: House) -> None:
    """What is wrong with a reply's notes has nothing to do with the receipts, nor with the setup."""
    notes = [{"tag": "TRICK", "text": f"note {number}"} for number in range(11)]
    built.script("validator", reply(checks=[], notes=notes))
    assert judged(built, "F-001")["verdict"] == "green"
    assert tries(built) == ("passed", 1)
    assert not Path(built.layout.escalation).exists()


def test_issues_of_a_validator_are_kept(built: House) -> None:
    """What is no fault of the claims is reported, not aimed."""
    built.script("validator", reply(checks=[], issues=[{"title": "ugly", "severity": "minor"}]))
    judged(built, "F-001")
    assert json.loads(built.read("issues.jsonl"))["title"] == "ugly"


# setup


def test_a_red_setup_calls_a_person_and_judges_nobody(built: House) -> None:
    """No check is fired, no try counted; escalation.md says what setup said, and the mission stands still."""
    lay(built, [built.feature()], KNOWN.replace(setup="echo no compiler here; exit 4"))
    result = judged(built, "F-001")
    assert result["verdict"] == "red"
    assert fired(built) == []
    assert tries(built) == ("validating", 0)
    said = built.read("escalation.md")
    assert "kind: setup" in said
    assert "setup ended with exit 4:\nno compiler here" in said
    assert due(built) == "ESCALATE setup"


# the final sweep


@pytest.fixture
def through(built: House) -> House:
    """A mission whose features have all passed."""
    found = [
        feature(name, claims, status="passed", attempts=1) for name, claims in (("F-001", "VAL-1"), ("F-002", "VAL-2"))
    ]
    lay(built, found, KNOWN)
    return built


def test_a_green_sweep_ends_the_mission(through: House) -> None:
    """It is good for exactly this tree, contract and spec."""
    assert due(through) == "NEXT validator"
    result = judged(through)
    assert (result["verdict"], result["feature"]) == ("green", "")
    assert result["sweep"].keys() == {"tree", "contract", "spec"}
    assert {one.phase for one in fired(through)} == {"sweep"}
    assert due(through) == "DONE"
    commit(through, more="")
    assert due(through) == "NEXT validator"


def test_a_red_sweep_sends_the_owner_back(through: House) -> None:
    """What is untracked is not there in a fresh worktree: its feature fails, the others stand, no try is counted."""
    through.git("rm", "-q", "--cached", "two")
    through.git("commit", "-q", "-m", "forgot it")
    result = judged(through)
    assert (result["verdict"], (through.project / "two").exists()) == ("red", True)
    assert [(one.id, one.status, one.attempts) for one in features.load(through.layout)] == [
        ("F-001", "passed", 1),
        ("F-002", "failing", 1),
    ]
    assert raw_of(through)[0].startswith("validator F-002 FAIL: VAL-2 is red (exit 2) in a fresh worktree: grep")
    assert due(through) == "NEXT worker F-002"


def test_the_owner_of_two_red_claims_is_named_with_both(through: House) -> None:
    """A feature that has just been sent back still owns its other claims."""
    lay(through, [feature("F-001", "VAL-1", "VAL-2", status="passed", attempts=1)], KNOWN)
    through.git("rm", "-q", "--cached", "one", "two")
    through.git("commit", "-q", "-m", "forgot them")
    judged(through)
    assert [line.split(" ")[:4] for line in raw_of(through)] == [
        ["validator", "F-001", "FAIL:", "VAL-1"],
        ["validator", "F-001", "FAIL:", "VAL-2"],
    ]


def test_the_worker_that_gets_it_back_reads_why(through: House) -> None:
    """The next prompt of the feature says what is red, and where."""
    through.git("rm", "-q", "--cached", "two")
    through.git("commit", "-q", "-m", "forgot it")
    judged(through)
    worked(through, {"run": "git add -f two"}, name="F-002")
    assert "VAL-2 is red in a fresh worktree" in through.prompt()


def test_a_sweep_asks_no_agent(through: House) -> None:
    """There is nothing left to aim at."""
    through.script("validator", {"run": "touch asked"}, reply(checks=[]))
    assert judged(through)["agent"] == ""
    assert not (through.project / "asked").exists()


def test_a_red_setup_in_the_sweep_calls_a_person(through: House) -> None:
    """A clone that cannot be set up is nobody's feature."""
    lay(through, features.load(through.layout), KNOWN.replace(setup="test -f untracked-tool"))
    through.write("untracked-tool")
    assert judged(through)["verdict"] == "red"
    assert [one.status for one in features.load(through.layout)] == ["passed", "passed"]
    assert due(through) == "ESCALATE setup"


def test_what_has_no_owner_fails_nobody(built: House) -> None:
    """A sweep by hand in the middle of a mission judges only what has passed."""
    found: list[Feature] = [feature("F-001", "VAL-1", status="passed"), feature("F-002", "VAL-2", status="todo")]
    lay(built, found, KNOWN)
    built.git("rm", "-q", "two")
    built.git("commit", "-q", "-m", "gone")
    assert judged(built)["verdict"] == "red"
    assert [one.status for one in features.load(built.layout)] == ["passed", "todo"]
