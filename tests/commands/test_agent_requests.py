"""Commands of an agent in its run: its reply is checked before it ends, issues are noted, checks are tried."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.base.errors import RequestRefused, UsageFault
from harness.commands import agent_requests
from harness.mission import issues, mission, runs
from harness.state import names
from tests.missions import DISPOSABLE, PROGRAM, House, differences, listing, tagged, until

GOOD = '{"status": "implemented", "summary": "done"}'


def tried(house: House, *commands: str) -> list[tuple[str, str]]:
    """(exit code, output) of each command that a worker calls in its run; git ignores the files with them."""
    (house.project / ".git/info/exclude").write_text("said*\n.harness\n")
    body = "\n".join(
        f"code=0; {{ {command}; }} >said.{n} 2>&1 || code=$?; echo $code >>said" for n, command in enumerate(commands)
    )
    house.work({"run": body})
    out = house.tree / "said"
    codes = out.read_text().split()
    out.unlink()
    return [(code, Path(f"{out}.{n}").read_text()) for n, code in enumerate(codes)]


def test_a_check_that_is_tried_gets_the_keys_that_the_validators_gets(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that config.toml passes."""
    for name in ("A_TOKEN", "B_TOKEN"):
        monkeypatch.setenv(name, "x")
    house.config('agent = "scripted"', "[env]", 'pass = ["A_TOKEN"]')
    text = '### VAL-1: It holds\n```sh check\ntest -n "$A_TOKEN" && test -z "${B_TOKEN-}"\n```\n'
    Path(house.layout.path(names.CONTRACT)).write_text(text)
    assert [receipt.green for receipt in agent_requests.check(house.layout, "VAL-1")] == [True]


# reply


def test_a_good_reply_is_kept_as_the_agent_gave_it(house: House) -> None:
    """From a file or standard input, bare or in a block."""
    said = tried(house, f"echo '{GOOD}' | harness reply -")
    assert said == [("0", "The reply is good and kept; a later one replaces it.\n")]
    assert json.loads(Path(house.layout.run(house.result()["run"]).reply).read_text().split("\n")[1]) == json.loads(
        GOOD
    )
    house.lay(house.feature().replace(status="todo"))
    (house.tree / "said.md").write_text(f"Here it is:\n\n```json harness\n{GOOD}\n```\n")
    assert tried(house, "harness reply said.md")[-1][0] == "0"


def test_a_bad_reply_names_every_fault_while_the_agent_lives(house: House) -> None:
    """All at once, so that one more attempt is enough; nothing is kept. One that is no JSON names the line."""
    bad = '{"status": "done", "sumary": "x", "needs": "F-002"}'
    (code, said), (_, unread) = tried(house, f"echo '{bad}' | harness reply -", "printf '{\\n]' | harness reply -")
    assert "The reply is not JSON: line 2" in unread
    assert code == "10"
    assert "unknown key 'sumary'" in said
    assert "'needs' must be a list of names" in said
    assert not os.path.exists(house.layout.run(house.result()["run"]).reply)


def test_the_last_valid_reply_wins(house: House) -> None:
    """A broken reply after it changes nothing."""
    first, last = (f'{{"status": "blocked", "reason": "{word}", "needs": ["F-002"]}}' for word in ("first", "last"))
    codes = [code for code, _ in tried(house, *(f"echo '{text}' | harness reply -" for text in (first, last, "{}")))]
    assert codes == ["0", "0", "10"]
    assert (house.feature().status, house.result()["reason"]) == ("blocked", "blocked, needs F-002: last")


def test_a_plan_is_examined_before_its_planner_ends(house: House) -> None:
    """Faults of the plan, not only of its shape."""
    plan = {"features": [{"id": "F-003", "title": "Three", "claims": ["VAL-9"]}], "contract": []}
    house.script("planner", {"run": f"code=0; echo '{json.dumps(plan)}' | harness reply - || code=$?; test $code = 10"})
    house.role("planner")
    said = Path(house.layout.run(house.result()["run"]).stderr).read_text()
    assert "F-003 names the claim 'VAL-9', which does not exist" in said


def test_a_reply_belongs_to_a_run_that_is_under_way(house: House) -> None:
    """Outside a run nothing takes a reply, and a finished run is settled."""
    assert house.program("reply", "-").code == 64
    run_id = house.work({"say": "nothing"})["run"]
    before = listing(house.project)
    done = house.harness("--run", run_id, "reply", str(house.project / "main.py"))
    assert (done.code, f"The run {run_id} is over" in done.err) == (64, True)
    assert house.harness("--run", "nothing", "reply", "x").code == 64
    assert differences(before, listing(house.project)) == []


def test_a_file_that_is_absent_is_named(house: House) -> None:
    """Before any other check."""
    done = house.harness("reply", "nowhere.md")
    assert (done.code, done.err) == (64, "harness: There is no file nowhere.md.\n")


# issues


def test_an_issue_gets_a_number_and_says_who_saw_it(house: House) -> None:
    """A person outside a run, the run inside one; there an agent lists issues, and closes none."""
    assert agent_requests.issue(house.layout, {"title": "slow", "severity": "minor"}) == "I-001 is noted."
    noted = "harness issue 'crashes on empty input' --severity critical --repro 'run it'"
    (listed, shown), (closed, said), _ = tried(house, "harness issue list", "harness issue close I-001", noted)
    assert (listed, shown) == ("0", "I-001  open     minor     slow\n")
    assert (closed, "'issue close' is not for the inside of a run" in said) == ("64", True)
    rows = [json.loads(line) for line in house.read("issues.jsonl").split("\n") if line]
    assert [(row["id"], row["by"], row["severity"]) for row in rows] == [
        ("I-001", "person", "minor"),
        ("I-002", house.result()["run"], "critical"),
    ]
    assert rows[1]["repro"] == "run it"


def test_issues_given_in_parallel_get_numbers_of_their_own(house: House) -> None:
    """An issue that a command confirmed is always in the file."""
    words = [sys.executable, "-P", str(PROGRAM), "issue"]
    started = [subprocess.Popen([*words, f"fault {n}"], cwd=house.project, env=house.env) for n in range(4)]
    assert [one.wait() for one in started] == [0] * 4
    found = issues.load(house.layout)
    assert sorted(issue.title for issue in found) == [f"fault {n}" for n in range(4)]
    assert sorted(issue.id for issue in found) == [f"I-00{n}" for n in range(1, 5)]


def test_issues_of_a_reply_stand_behind_those_given_meanwhile(house: House) -> None:
    """Issues of the reply get their numbers when the run ends."""
    block = json.dumps({"status": "implemented", "issues": [{"title": "from the agent", "severity": "minor"}]})
    house.work({"run": "harness issue meanwhile; echo 1 > 1.txt"}, {"say": f"```json harness\n{block}\n```"})
    found = issues.load(house.layout)
    assert [(issue.id, issue.title) for issue in found] == [("I-001", "meanwhile"), ("I-002", "from the agent")]


def test_an_issue_that_is_known_is_not_doubled(house: House) -> None:
    """Titles are compared without case."""
    agent_requests.issue(house.layout, {"title": "Slow", "severity": "minor"})
    assert agent_requests.issue(house.layout, {"title": "slow ", "severity": "major"}) == "That issue is known already."


def test_a_severity_that_we_do_not_know_is_refused(house: House) -> None:
    """The message lists the known ones."""
    with pytest.raises(RequestRefused, match="'bad' is not one of critical, major, minor, nit"):
        agent_requests.issue(house.layout, {"title": "slow", "severity": "bad"})
    assert not os.path.exists(house.layout.path(names.ISSUES))


def test_a_person_closes_an_issue_and_says_why(house: House) -> None:
    """Only once; no planner is due for it any more, and the file keeps the author, the time and the reason."""
    agent_requests.issue(house.layout, {"title": "slow", "severity": "major"})
    assert agent_requests.close_issue(house.layout, "I-001", "measured: it is not") == "I-001 is closed."
    assert agent_requests.close_issue(house.layout, "I-001", "again") == "I-001 is already closed."
    rows = [json.loads(line) for line in house.read("issues.jsonl").split("\n") if line]
    assert [(row["by"], row["state"], row.get("why", "")) for row in rows] == [
        ("person", "open", ""),
        ("person", "closed", "measured: it is not"),
    ]
    assert issues.serious(issues.load(house.layout)) == []
    assert house.harness("status", "--json").out.count('"slow"') == 0


def test_an_issue_that_is_not_there_cannot_be_closed(house: House) -> None:
    """The message lists the issues that can be closed."""
    agent_requests.issue(house.layout, {"title": "slow", "severity": "nit"})
    with pytest.raises(UsageFault, match=r"There is no issue 'I-9'\. Open issues: I-001\."):
        agent_requests.close_issue(house.layout, "I-9", "")


def test_an_issue_closed_while_a_run_is_under_way_stays_closed(house: House) -> None:
    """The run does not reopen it, and does not report it as tampering."""
    agent_requests.issue(house.layout, {"title": "slow", "severity": "major"})
    begun, go = house.tree / "begun", house.tree / "go"
    house.script("worker", {"run": "touch begun; while ! test -e go; do sleep 0.02; done; echo 1 > 1.txt"})
    role = house.begin_role("worker", "F-001")
    until(begun.exists)
    assert house.program("issue", "close", "I-001").out == "I-001 is closed.\n"
    go.touch()
    assert role.wait() == 0
    assert (house.result()["outcome"], house.result()["refused"]) == ("ok", [])
    assert [one.state for one in issues.load(house.layout)] == ["closed"]


def test_without_a_mission_there_is_nothing_to_report_to(unbegun: House) -> None:
    """The message says how to start one."""
    with pytest.raises(UsageFault, match=r"run\.sh init"):
        agent_requests.issue(unbegun.layout, {"title": "slow", "severity": "nit"})


# checks


def test_checks_run_as_the_validator_will_and_count_nothing(house: House) -> None:
    """All, those of a feature, or one claim; the disk stays unchanged."""
    house.write("1.txt")
    list(agent_requests.check(house.layout, "VAL-1"))  # the first command makes the folder of our git's configuration
    before = listing(house.project, *DISPOSABLE)
    found = {
        name: [(r.claim, r.green) for r in agent_requests.check(house.layout, name)]
        for name in ("", "F-001", "VAL-2", "F-002")
    }
    one, two = ("VAL-1", True), ("VAL-2", False)
    assert found == {"": [one, two], "F-001": [one], "VAL-2": [two], "F-002": [two]}
    assert differences(before, listing(house.project, *DISPOSABLE)) == []


def test_what_a_check_writes_into_its_home_stays_out_of_the_persons(house: House) -> None:
    """It finds what theirs has, and what the last one left."""
    home = Path(house.env["HOME"])
    (home / ".settings").write_text("theirs")
    house.config("[home]", 'show = [".settings"]')
    path = Path(house.layout.path(names.CONTRACT))
    path.write_text(
        path.read_text().replace("test -f 1.txt", "grep theirs ~/.settings; echo x >>~/.log; wc -l <~/.log")
    )
    said = [house.harness("check", "VAL-1") for _ in range(2)]
    assert [done.code for done in said] == [0, 0], said
    (receipt,) = json.loads(house.harness("check", "VAL-1", "--json").out)["receipts"]
    assert receipt["output"].split() == ["theirs", "3"]
    assert not (home / ".log").exists()


def test_a_check_of_something_unknown_names_what_there_is(house: House) -> None:
    """The message lists features and claims."""
    with pytest.raises(UsageFault, match=r"no feature and no claim 'X'\. There are: F-001, F-002, VAL-1"):
        list(agent_requests.check(house.layout, "X"))


def test_a_red_setup_stops_the_checks(house: House) -> None:
    """No other result would be reliable."""
    path = Path(house.layout.path(names.CONTRACT))
    path.write_text(path.read_text().replace("### VAL-1", "```sh setup\necho no network; false\n```\n\n### VAL-1", 1))
    with pytest.raises(RequestRefused, match=r"setup ended with exit 1:\nno network"):
        list(agent_requests.check(house.layout, ""))


def test_a_check_has_its_services_beside_it(house: House) -> None:
    """They run during the checks and end afterwards."""
    path = Path(house.layout.path(names.CONTRACT))
    service = '```sh service name=pipe ready="test -e $PORT_PIPE"\ntouch $PORT; exec sleep 600\n```\n\n### VAL-1'
    text = path.read_text().replace("### VAL-1", service, 1).replace("test -f 1.txt", "test -e $PORT_PIPE")
    path.write_text(text)
    assert [receipt.green for receipt in agent_requests.check(house.layout, "VAL-1")] == [True]
    assert tagged(mission.load(house.layout).id) == []


def test_an_agents_check_is_the_validators_check(house: House) -> None:
    """In a run: exit code 10 and the receipt if red, 0 if green."""
    (red, said), (green, _) = tried(house, "harness check F-001", "touch 1.txt; harness check F-001")
    assert (red, green) == ("10", "0")
    assert "red (exit 1)" in said
    assert runs.context(house.layout, house.result()["run"]).feature == "F-001"
