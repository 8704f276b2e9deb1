"""`harness why`: one screen that shows why a feature or a claim is proven or not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.base.errors import UsageFault
from harness.commands import why
from harness.mission.contract import Check
from harness.state import names
from tests.missions import House
from tests.planned import contract_of, lay, reply, role, worked


@pytest.fixture
def built(house: House) -> House:
    """VAL-1 was red, then a worker that also deletes a test built F-001, and it passed."""
    house.write("tests/test_one.py", "def test_one():\n    assert one()\n    assert two()\n")
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "tests")
    house.script("validator", reply(checks=[]))
    role(house, "validator", "F-001")
    step = "echo 1 > 1.txt; rm tests/test_one.py"
    worked(house, {"run": step}, reply(status="implemented", summary="s"))
    role(house, "validator", "F-001")
    return house


def told(house: House, name: str) -> str:
    """The screen, as one text."""
    return "\n".join(why.explain(house.layout, name))


def test_a_claim_shows_its_red_and_green_receipts_with_commits_and_runs(built: House) -> None:
    """All that a reader needs to verify it."""
    red, work, green = (row["run"] for row in built.ran())
    lines = told(built, "VAL-1").split("\n")
    assert lines[:2] == ["", "VAL-1: Part 1 works"]
    assert lines[2].startswith("  proven")
    assert lines[3] == "  check  test -f 1.txt"
    before = built.git("rev-parse", "HEAD^")[:10]
    assert lines[4].startswith(f"    red    at {before} in {red}, ")
    now = built.head()[:10]
    assert lines[5].startswith(f"    green  at {now} in {green}, ")
    for run_id in (red, work, green):
        assert any(run_id in line for line in lines[lines.index("runs") :])


def test_a_feature_shows_its_claims_its_tries_and_the_runs_that_worked_on_it(built: House) -> None:
    """The oldest first, each with its outcome."""
    text = told(built, "F-001")
    assert text.startswith("F-001 Part one: passed after 1 try\n")
    assert "VAL-1: Part 1 works" in text
    assert "VAL-2" not in text
    runs = [line.split(" ") for line in text.split("\nruns\n")[1].split("\n") if "look twice" not in line]
    assert [words[4] for words in runs] == ["red", "ok", "green"]
    assert runs[1][5] == built.head()[:10]


def test_what_looks_like_gaming_stands_beside_the_run_that_saw_it(built: House) -> None:
    """A reader of `why` cannot miss it."""
    assert "    look twice: deletes the test file tests/test_one.py" in told(built, "F-001")


def test_what_was_never_fired_says_never(house: House) -> None:
    """A claim without receipts is unproven; a manual one waits for a person."""
    text = told(house, "VAL-2")
    assert text.split("\n")[1:] == [
        "VAL-2: Part 2 works",
        "  unproven: a check has not run on work that counts",
        "  check  test -f 2.txt",
        "    red    never",
        "    green  never",
    ]
    assert "  manual" in told(house, "VAL-LOOK")


def test_the_history_of_a_claim_is_told_from_the_contract_log(house: House) -> None:
    """Author, action, time and reason of each change or acceptance; other claims are left out."""
    rows = [
        {"at": "t1", "by": "run-1", "verb": "add", "claim": "VAL-LOOK", "why": "planned", "old": None, "new": None},
        {"at": "t2", "by": "run-1", "verb": "add", "claim": "VAL-2", "why": "other", "old": None, "new": None},
        {"at": "t3", "by": "person", "verb": "accept", "claim": "VAL-LOOK", "why": "", "old": None, "new": "c0ffee"},
    ]
    Path(house.layout.path(names.CONTRACT_LOG)).write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert told(house, "VAL-LOOK").split("\n")[1:] == [
        "VAL-LOOK: It looks right",
        "  manual, accepted",
        "  t1 add by run-1: planned",
        "  t3 accept by person",
    ]


def test_a_long_check_and_a_long_history_fit_one_screen(house: House) -> None:
    """The first line of the check, the newest runs."""
    known = contract_of(house)
    known.claims[0].checks[0].run = "test -f " + "x" * 300 + "\ntest -f y"
    lay(house, [house.feature(), house.feature("F-002")], known)
    worked(house, {"say": "nothing"})
    line = Path(house.layout.path(names.RUN_LOG)).read_text()
    Path(house.layout.path(names.RUN_LOG)).write_text(line * 30)
    lines = told(house, "F-001").split("\n")
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 120
    assert len(lines[lines.index("runs") + 1 :]) == why.RUNS_SHOWN


def test_an_unknown_name_says_where_to_look(house: House) -> None:
    """Exit 64; `why` on the command line prints the same."""
    with pytest.raises(UsageFault, match="no feature and no claim 'X'"):
        why.explain(house.layout, "X")
    assert house.harness("why", "X").code == 64
    assert house.harness("why", "F-001").out == told(house, "F-001") + "\n"


def test_two_checks_of_a_claim_are_told_apart_and_show_what_was_red(house: House) -> None:
    """Numbered and whole; a long one with the line that only it has; the end of the last red output."""
    same = "\n".join(f"echo {number}" for number in range(12))
    known = contract_of(house)
    known.claims[0].checks = [Check(run=f"{same}\necho got {n}, expected 3\nexit {n}") for n in (1, 2)]
    lay(house, [house.feature().replace(status="validating"), house.feature("F-002")], known)
    role(house, "validator", "F-001")
    text = told(house, "VAL-1")
    for number in (1, 2):
        one = text.split(f"  check {number}  echo 0\n           echo 1\n")[1].split("  check 2  ")[0]
        assert "           … and 5 more lines: run.sh feature show FEATURE\n" in one
        assert f"           only here: echo got {number}, expected 3\n" in one
        assert f"    last red (exit {number}): got {number}, expected 3\n           | " in one
        assert f"           | 11\n           | got {number}, expected 3\n" in one
