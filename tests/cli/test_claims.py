"""The commands about claims, as a person types them: an edited check runs red before green, and its feature is proven again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness.state import layout
from tests.missions import House, differences, listing
from tests.planned import contract_of, log_of, reply


def claims(house: House) -> dict[str, dict[str, Any]]:
    """The claims as `claim list --json` gives them, by id."""
    return {row["id"]: row for row in json.loads(house.harness("claim", "list", "--json").out)}


def passed(house: House) -> None:
    """F-001 is built, and has passed."""
    house.work({"run": "echo 1 > 1.txt"}, reply(status="implemented", summary="done"))
    house.script("validator", reply())
    assert house.role("validator", "F-001").code == 0
    assert house.feature().status == "passed"


# looking


def test_claims_are_listed_a_line_each(house: House) -> None:
    """Id, features, the state of its proof, and the sentence."""
    assert house.harness("claim", "list").out.split("\n")[:3] == [
        "VAL-1            F-001    unproven   Part 1 works",
        "VAL-2            F-002    unproven   Part 2 works",
        "VAL-LOOK         F-002    manual     It looks right",
    ]
    row = claims(house)["VAL-1"]
    assert (row["features"], row["checks"][0]["run"], row["set_by_person"]) == (["F-001"], "test -f 1.txt", False)


def test_a_claim_is_shown_with_the_numbers_of_its_checks_whole(house: House) -> None:
    """Those are the numbers that `claim set` takes."""
    done = house.harness(
        "claim", "set", "VAL-1", "--add", "--guard", "--seconds", "9", "--check", "test -f main.py\n! false"
    )
    assert done.code == 0, done
    out = house.harness("claim", "show", "VAL-1").out
    assert "check 1 of 2:\n    test -f 1.txt\ncheck 2 of 2, a guard, 9 s:\n    test -f main.py\n    ! false\n" in out
    assert "VAL-1: Part 1 works" in out
    assert json.loads(house.harness("claim", "show", "VAL-1", "--json").out)["set_by_person"] is True


@pytest.mark.parametrize("words", ["list", "show VAL-1", "set VAL-1 --text x", "drop VAL-1 --reason x", "accept VAL-1"])
def test_every_command_needs_a_mission(unbegun: House, words: str) -> None:
    """It says so, and makes nothing."""
    done = unbegun.harness("claim", *words.split())
    assert (done.code, done.out) == (64, "")
    assert "There is no mission" in done.err
    assert not unbegun.state.exists()


# setting


def test_a_mended_check_is_red_first_then_counts(house: House) -> None:
    """It runs before it counts; the log says who and why; the red receipt is the red before green."""
    done = house.harness("claim", "set", "VAL-1", "--check", "grep -x 1 1.txt", "--reason", "the file must say 1")
    assert done.code == 0, done
    assert done.out.startswith("red (exit 2) ")
    assert done.out.endswith("VAL-1 is set; F-001 is todo\n")
    (row,) = log_of(house)
    assert (row["verb"], row["by"], row["why"]) == ("change", "person", "the file must say 1")
    assert (row["old"]["checks"][0]["run"], row["new"]["checks"][0]["run"]) == ("test -f 1.txt", "grep -x 1 1.txt")
    assert [(one["phase"], one["exit"], one["head"]) for one in row["fired"]] == [("before", 2, house.head())]
    passed(house)
    assert (claims(house)["VAL-1"]["word"], claims(house)["VAL-1"]["marks"]) == ("proven", [])
    assert "before a person set it" in house.harness("why", "VAL-1").out


def test_the_check_of_a_passed_feature_can_be_mended(house: House) -> None:
    """The feature returns to validation with all its attempts, is proven again, and the claim is not weakened."""
    passed(house)
    done = house.harness("claim", "set", "VAL-1", "--check", "test -s 1.txt")
    assert (done.code, house.feature().status, house.feature().attempts) == (0, "validating", 0), done
    assert house.harness("next").out == "NEXT validator F-001\n"
    assert house.role("validator", "F-001").code == 0
    assert house.feature().status == "passed"
    assert (claims(house)["VAL-1"]["word"], claims(house)["VAL-1"]["marks"]) == ("proven", [])
    assert "weakened" not in house.harness("status").out


def test_a_check_that_is_green_already_is_tried_before_the_work_began(house: House) -> None:
    """The work is done and the check was wrong: the mended one is green now, and red where the work had not begun."""
    base = house.head()
    passed(house)
    done = house.harness("claim", "set", "VAL-1", "--check", "test -s 1.txt")
    assert [line.split("  ")[0] for line in done.out.split("\n")[:2]] == ["green", "red (exit 1)"]
    assert "note: before the work of its feature began" in done.out
    assert [one["head"] for one in log_of(house)[-1]["fired"]] == [house.head(), base]
    assert "proves nothing" not in done.out


def test_a_check_that_is_green_from_the_start_proves_nothing_and_that_is_said(house: House) -> None:
    """It is accepted, as a planner's that is sent again, and the claim stays unproven; as a guard it is guarded."""
    done = house.harness("claim", "set", "VAL-1", "--check", "test -f main.py")
    assert done.code == 0, done
    assert "Green already, and never seen red, so it proves nothing by itself: the claim stays unproven" in done.out
    passed(house)
    assert claims(house)["VAL-1"]["word"] == "unproven"
    done = house.harness("claim", "set", "VAL-1", "--guard")
    assert (done.code, "It has guards alone, which prove nothing by themselves" in done.out) == (0, True)
    assert house.role("validator", "F-001").code == 0
    assert claims(house)["VAL-1"]["word"] == "guarded"


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ("test -f 1.txt || true", "hides a failure with '|| true'"),
        ("sudo test -f 1.txt", "uses sudo"),
        ("cat 1.txt | grep -q 1", "ends a pipe with 'grep -q'"),
        ("test -d /home/x/p", "names an absolute path of this machine"),
        ("true", "passes in an empty folder and so proves nothing"),
    ],
)
def test_what_is_refused_of_a_planner_is_refused_of_a_person(house: House, check: str, words: str) -> None:
    """Nothing changes, no order is kept, and the answer says what to write instead."""
    before = listing(house.state, "cache", "git-config", "locks")
    done = house.harness("claim", "set", "VAL-1", "--check", check)
    assert done.code == 10, done
    assert words in done.err
    assert differences(before, listing(house.state, "cache", "git-config", "locks")) == []


def test_a_check_of_several_lines_comes_from_a_file_or_from_standard_input(house: House) -> None:
    """As it is, without the last line break."""
    (house.folder / "check.sh").write_text("test -s 1.txt\ngrep 1 1.txt\n")
    assert house.harness("claim", "set", "VAL-1", "--file", str(house.folder / "check.sh")).code == 0
    assert contract_of(house).claim("VAL-1").checks[0].run == "test -s 1.txt\ngrep 1 1.txt"
    words = [
        "bash",
        "-c",
        f"printf 'test -s 1.txt\\ntest -r 1.txt\\n' | '{layout.home()}/run.sh' claim set VAL-1 --file -",
    ]
    done = house.run(words)
    assert done.code == 0, done
    assert contract_of(house).claim("VAL-1").checks[0].run == "test -s 1.txt\ntest -r 1.txt"


def test_a_new_check_runs_confined_in_a_worktree_of_its_own(house: House) -> None:
    """It sees what is committed, not what lies in the project folder, and reaches nothing outside."""
    outside = house.folder / "home" / "touched"
    house.write("1.txt")
    check = f"touch '{outside}'\ntest -f 1.txt"
    done = house.harness("claim", "set", "VAL-1", "--check", check)
    assert done.code == 0, done
    assert done.out.startswith("red")
    assert not outside.exists()
    assert "worktree" not in house.git("worktree", "list").replace(str(house.project), "")
    assert os.listdir(house.env["TMPDIR"]) == []


WRONG = [
    ("VAL-9 --text x", 64, "There is no claim 'VAL-9'"),
    ("VAL-1", 64, "Name what to set"),
    ("VAL-1 --text Part\u00a01\u00a0works", 64, "VAL-1 already has that value"),
    ("VAL-1 --number 2 --check x", 64, "VAL-1 has no check 2; it has 1 to 1"),
    ("VAL-1 --remove", 64, "would have no check left"),
    ("VAL-1 --remove --check x", 64, "Give one of"),
    ("VAL-1 --add", 64, "Give one of"),
    ("VAL-1 --check x --file y", 64, "Give either"),
    ("VAL-1 --file nowhere", 64, "There is no file nowhere"),
    ("VAL-1 --seconds 0", 64, "'--seconds'"),
    ("VAL-LOOK --guard", 64, "VAL-LOOK is manual"),
]


@pytest.mark.parametrize(("words", "code", "fault"), WRONG)
def test_a_wrong_command_says_what_is_wrong(house: House, words: str, code: int, fault: str) -> None:
    """And changes nothing."""
    before = listing(house.project, ".harness/cache")
    done = house.harness("claim", "set", *(word.replace("\u00a0", " ") for word in words.split(" ")))
    assert done.code == code, done
    assert fault in done.err
    assert differences(before, listing(house.project, ".harness/cache")) == []


def test_a_manual_claim_gets_a_check(house: House) -> None:
    """From then on the check decides it."""
    assert house.harness("claim", "set", "VAL-LOOK", "--check", "test -f 2.txt").code == 0
    assert (contract_of(house).claim("VAL-LOOK").manual, claims(house)["VAL-LOOK"]["word"]) == (False, "unproven")


@pytest.mark.parametrize("words", ["set VAL-1 --check x", "drop VAL-LOOK --reason x"])
def test_no_agent_mends_its_own_check(house: House, words: str) -> None:
    """Inside a run the command is refused before a check of its own could run."""
    result = house.work({"run": f"harness claim {words}"})
    assert contract_of(house).claim("VAL-1").checks[0].run == "test -f 1.txt"
    transcript = Path(house.layout.run(result["run"]).stream).read_text()
    assert f"'claim {words.split(' ')[0]}' is not for the inside of a run" in transcript


# dropping


def test_a_dropped_claim_is_gone_and_not_weakened(house: House) -> None:
    """Its feature keeps the others; the log has the reason; the id is not used again."""
    done = house.harness("claim", "drop", "VAL-2", "--reason", "not wanted any more")
    assert (done.code, done.out) == (0, "VAL-2 is dropped; F-002 is todo\n"), done
    assert house.feature("F-002").claims == ["VAL-LOOK"]
    (row,) = log_of(house)
    assert (row["verb"], row["by"], row["why"], row["old"]["id"]) == ("drop", "person", "not wanted any more", "VAL-2")
    assert "weakened" not in house.harness("status").out
    plan = {"id": "VAL-2", "claim": "again", "checks": ["test -f 2"]}
    house.script("planner", reply(features=[{"id": "F-003", "title": "t", "claims": ["VAL-2"]}], contract=[plan]))
    house.role("planner")
    assert "'VAL-2' was dropped before" in house.result()["reason"]


def test_the_last_claim_of_a_feature_stays(house: House) -> None:
    """Nothing would show that the feature works; and a drop says why."""
    done = house.harness("claim", "drop", "VAL-1", "--reason", "x")
    assert (done.code, "F-001 has no other claim" in done.err) == (64, True), done
    done = house.harness("claim", "drop", "VAL-2")
    assert (done.code, 'Give a reason: run.sh claim drop VAL-2 --reason "…"' in done.err) == (64, True), done


# a plan that comes later


def test_the_next_plan_does_not_undo_what_a_person_set(house: House) -> None:
    """Title and description stay although the plan has others; a plan that changes a person's claim is refused for that."""
    house.harness("feature", "set", "F-001", "title=My words")
    house.harness("feature", "set", "F-001", "description=Mine, too")
    house.harness("claim", "set", "VAL-1", "--check", "test -s 1.txt")
    row = {"id": "F-001", "title": "Other words", "description": "d", "claims": ["VAL-1"], "priority": 5}
    mine = {"id": "VAL-1", "claim": "Part 1 works", "checks": ["test -r 1.txt"], "reason": "better"}
    house.script("planner", reply(features=[row], contract=[mine]))
    house.role("planner")
    why = house.result()["reason"]
    assert "VAL-1 was set by a person and stays as it is: leave it out of the plan" in why
    house.script("planner", reply(features=[], contract=[], drop=[{"id": "VAL-1", "reason": "no"}]))
    house.role("planner")
    assert "VAL-1 was set by a person and stays as it is" in house.result()["reason"]
    house.script("planner", reply(features=[row], contract=[{**mine, "checks": ["test -s 1.txt"]}]))
    house.role("planner")
    assert house.result()["accepted"] is True, house.result()
    one = house.feature()
    assert (one.title, one.description, one.priority) == ("My words", "Mine, too", 5)
    assert "Set by a person: a plan leaves these as they are" in house.prompt()
    assert "F-001: title, description\nVAL-1\n" in house.prompt()
