"""The validator's run: only receipts decide; the harness runs adversarial checks, and they count only where they are red."""

from __future__ import annotations

import json
import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harness.mission import contract, features, issues, mission, receipts
from harness.mission.contract import Check, Contract, Service
from harness.mission.features import Feature
from harness.mission.receipts import Receipt
from harness.process import tree
from harness.run import recover
from harness.state import names
from tests.crash import sampled
from tests.missions import House, tagged, until
from tests.planned import accept_all, claim, contract_of, due, feature, lay, log_of, raw_of, reply, reseal, role, worked

KNOWN = Contract(claims=[claim("VAL-1", "test -f one"), claim("VAL-2", "test -f two", "grep ok two")])


@pytest.fixture
def built(house: House) -> House:
    """A mission whose only feature waits for its validation; the files `one` and `two` decide it."""
    lay(house, [feature("F-001", "VAL-1", "VAL-2", status="validating")], KNOWN)
    commit(house, one="", two="ok\n")
    return house


def commit(house: House, **texts: str) -> None:
    """Commit these files alone."""
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


def test_a_silent_check_tells_the_next_worker_and_a_person_what_it_saw(house: House) -> None:
    """In the reason, the prompt, `why` and `check`: what came out beside what was expected."""
    silent = 'out=$(cat one); test "$out" = hello-world || exit 1'
    lay(house, [feature("F-001", "VAL-1", status="validating")], Contract(claims=[claim("VAL-1", silent)]))
    commit(house, one="h-e-l-l-o\n")
    saw = "test h-e-l-l-o = hello-world"
    assert judged(house, "F-001")["reason"] == f"VAL-1 is red (exit 1): {saw}"
    worked(house, {"say": "nothing"})
    trace = ["+ cat one", "+ out=h-e-l-l-o", f"+ {saw}", "+1 exit 1"]
    shown = [f"$ {silent}", receipts.TRACED, *trace]
    assert "\n".join(shown) in house.prompt()
    why = house.harness("why", "VAL-1").out
    assert f"    last red (exit 1): {saw}\n" + "".join(f"{' ' * 11}| {line}\n" for line in trace) in why
    house.write("one", "h-e-l-l-o\n")
    checked = house.harness("check").out
    assert "".join(f"    {line}\n" for line in (receipts.TRACED, *trace)) in checked


def test_all_green_passes_the_feature_and_says_so_in_the_raw_memory(built: House) -> None:
    """Every check of every claim runs in order; one try is counted and one `-` line appended."""
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
    """One FAIL line per failed claim, with the last output of the check; no agent runs."""
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
    """By hand the code is 10; run.sh goes on."""
    built.git("rm", "-q", "one")
    built.git("commit", "-q", "-m", "gone")
    assert built.role("validator", "F-001").code == 10
    assert built.role("validator", "F-001", HARNESS_LOOP=str(os.getpid())).code == 0


def test_an_agents_word_alone_passes_nothing(built: House) -> None:
    """A worker's "implemented" and a validator's "fine" leave a red feature red."""
    lay(built, [feature("F-001", "VAL-1", "VAL-2")], KNOWN)
    built.git("rm", "-q", "two")
    built.git("commit", "-q", "-m", "gone")
    built.script("validator", {"say": "All claims hold. VERDICT: passed"}, reply(checks=[]))
    worked(built, reply(status="implemented", summary="all done, all tests pass"))
    assert tries(built) == ("validating", 0)
    judged(built, "F-001")
    assert tries(built) == ("failing", 1)


def test_the_working_folder_is_put_back_after_the_checks(built: House) -> None:
    """A check's change to a tracked file does not enter the next commit; where it is meant, the result counts."""
    known = Contract(claims=[claim("VAL-1", "echo x >> one")])
    for writes, status in ('["one"]', "passed"), ("[]", "failing"):
        lay(built, [feature("F-001", "VAL-1", status="validating")], known)
        built.config('agent = "scripted"', "[checks]", f"writes = {writes}")
        judged(built, "F-001")
        assert (built.project / "one").read_text() == ""
        assert tries(built) == (status, 1)
    assert "it changed one: a check names that" in built.result()["reason"]


def test_a_feature_of_manual_claims_alone_blocks_nothing(built: House) -> None:
    """A person decides those; no check runs here, and nothing is proven either."""
    manual = contract.Claim(id="VAL-9", text="It looks right", manual=True)
    lay(built, [feature("F-001", "VAL-9", status="validating")], Contract(claims=[manual]))
    result = judged(built, "F-001")
    assert (tries(built), result["newly_green"]) == (("passed", 1), 0)


def test_features_that_waited_for_it_go_on_when_it_passes(built: House) -> None:
    """Only a pass meets `needs`; a statement does not."""
    waiting = feature("F-002", "VAL-2", status="blocked")
    waiting.note("t", "r", "needs", text="first", features=["F-001"])
    lay(built, [feature("F-001", "VAL-1", status="validating"), waiting], KNOWN)
    judged(built, "F-001")
    assert built.feature("F-002").status == "todo"


def test_only_what_was_not_green_before_is_newly_green(built: House) -> None:
    """This count detects a standstill."""
    commit(built, two="not yet\n")
    assert judged(built, "F-001")["newly_green"] == 1
    commit(built, two="ok\n")
    assert judged(built, "F-001")["newly_green"] == 1
    assert judged(built, "F-001")["newly_green"] == 0


# tries


def test_a_try_is_counted_when_a_validation_ends_and_only_then(built: House) -> None:
    """A repeated run by hand counts nothing, and a passed feature stays passed while it is green."""
    judged(built, "F-001")
    judged(built, "F-001")
    assert tries(built) == ("passed", 1)


def test_by_hand_a_passed_feature_that_is_red_now_fails(built: House) -> None:
    """A newer receipt outweighs an older one; no try is counted, because no worker tried."""
    judged(built, "F-001")
    built.git("rm", "-q", "one")
    built.git("commit", "-q", "-m", "gone")
    judged(built, "F-001")
    assert tries(built) == ("failing", 1)


def test_by_hand_a_feature_that_nobody_has_built_is_not_passed(built: House) -> None:
    """Its checks may be green, but no worker built it, and memory does not record a pass."""
    lay(built, [feature("F-001", "VAL-1", "VAL-2")], KNOWN)
    assert judged(built, "F-001")["verdict"] == "green"
    assert tries(built) == ("todo", 0)
    assert raw_of(built) == []


# adversarial checks


def test_an_aimed_check_that_is_red_fails_the_feature_and_joins_the_contract(built: House) -> None:
    """The harness runs it; from now on it is a guard of the contract, and in the log with the reason."""
    built.script("validator", aims("test -f three"))
    result = judged(built, "F-001")
    assert result["verdict"] == "red"
    assert tries(built) == ("failing", 1)
    assert contract_of(built).claims[0].checks == [Check(run="test -f one"), Check(run="test -f three", guard=True)]
    (line,) = log_of(built)
    assert (line["by"], line["verb"], line["claim"], line["why"]) == (
        result["run"],
        "aim",
        "VAL-1",
        "a user would see it",
    )
    assert line["check"]["run"] == "test -f three"
    assert fired(built)[-1].command == "test -f three"
    assert raw_of(built) == ["validator F-001 FAIL: VAL-1 is red (exit 1): test -f three"]


def test_an_aimed_check_that_is_green_is_dropped(built: House) -> None:
    """It shows no fault; its receipt is kept, and the contract does not change."""
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
    """An adversarial check follows the same rules as a planned one."""
    built.script("validator", aims(command, name=name))
    judged(built, "F-001")
    assert tries(built) == ("passed", 1)
    assert len(fired(built)) == 3
    assert contract_of(built) == KNOWN


def test_two_rounds_of_aim_and_then_checks_alone_decide(built: House) -> None:
    """A validator cannot block a feature forever."""
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
    """The embedded agent may have no reply; the checks decide."""
    built.config('agent = "playbook"')
    assert judged(built, "F-001")["verdict"] == "green"
    assert tries(built) == ("passed", 1)


def test_too_many_notes_do_not_change_the_verdict(built: House) -> None:
    """An error in a reply's notes affects neither the receipts nor the setup."""
    notes = [{"tag": "TRICK", "text": f"note {number}"} for number in range(11)]
    built.script("validator", reply(checks=[], notes=notes))
    assert judged(built, "F-001")["verdict"] == "green"
    assert tries(built) == ("passed", 1)
    assert not Path(built.layout.path(names.ESCALATION)).exists()


def test_what_is_told_of_the_agent_does_not_change_the_verdict(built: House) -> None:
    """A fallback to another agent or a denied tool affects neither the receipts nor the setup."""
    denied = '{"type":"result","usage":{"input_tokens":1},"result":"","permission_denials":[{"tool_name":"WebFetch"}]}'
    path = built.write("agent", f"#!/bin/sh\ncat > /dev/null\necho '{denied}'\n")
    path.chmod(0o755)
    built.config('agent = ["scripted", "mine"]', "[agents.mine]", f'command = ["{path}"]', 'format = "claude"')
    built.script("validator", {"fail": "limit"})
    result = judged(built, "F-001")
    assert "mine answered" in result["reason"]
    assert "WebFetch" in result["reason"]
    assert (result["verdict"], tries(built)) == ("green", ("passed", 1))
    assert not Path(built.layout.path(names.ESCALATION)).exists()


def test_issues_of_a_validator_are_kept(built: House) -> None:
    """A fault outside the claims is reported as an issue, not as an adversarial check."""
    built.script("validator", reply(checks=[], issues=[{"title": "ugly", "severity": "minor"}]))
    judged(built, "F-001")
    assert json.loads(built.read("issues.jsonl"))["title"] == "ugly"


# setup


def test_a_red_setup_calls_a_person_and_judges_nobody(built: House) -> None:
    """No check runs, no try counts; escalation.md has the output of setup, and the mission stops."""
    lay(built, [built.feature()], KNOWN.replace(setup="echo no compiler here; exit 4"))
    result = judged(built, "F-001")
    assert result["verdict"] == "red"
    assert fired(built) == []
    assert tries(built) == ("validating", 0)
    said = built.read("escalation.md")
    assert "kind: setup" in said
    assert "setup ended with exit 4:\nno compiler here" in said
    assert due(built) == "ESCALATE setup"


@pytest.mark.parametrize("confine", sampled(["auto", "off"], lambda confine: confine == "auto"))
def test_setup_services_and_checks_share_the_home_of_their_place_and_a_sweep_has_its_own(
    house: House, confine: str
) -> None:
    """What is shown of the person's is below it and stays as it is; what was written there is there for the next run in that
    place."""
    home = Path(house.env["HOME"])
    (home / ".settings").write_text("theirs")
    check = "grep theirs ~/.settings; echo check >>~/.log; cat ~/.log; test -f one"
    serve = Service(name="log", run="echo service >>~/.log; exec sleep 60", ready="grep service ~/.log")
    lay(
        house,
        [feature("F-001", "VAL-1", status="validating")],
        Contract(setup="echo setup >>~/.log", services=[serve], claims=[claim("VAL-1", check)]),
    )
    house.config('agent = "scripted"', f'confine = "{confine}"', "[home]", 'show = [".settings"]')
    house.script("validator", reply(checks=[]))
    commit(house, one="")
    logs = []
    for queue in (["F-001"], ["F-001"], []):
        house.lay(house.feature().replace(status="validating" if queue else "passed"))
        assert house.role("validator", *queue).code == 0, house.result()
        logs.append(" ".join(fired(house)[0].output.split()))
    assert logs[0] == "theirs setup service check"
    assert logs[1] in (f"{logs[0]} service check", f"{logs[0]} setup service check")
    assert logs[2] == logs[0]
    assert not (home / ".log").exists()


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
    """It holds for exactly this tree, contract and spec."""
    assert due(through) == "NEXT validator"
    result = judged(through)
    assert (result["verdict"], result["feature"]) == ("green", "")
    assert result["sweep"].keys() == {"tree", "contract", "spec"}
    assert {one.phase for one in fired(through)} == {"sweep", "outside"}
    accept_all(through)
    assert due(through) == "DONE"
    commit(through, more="")
    assert due(through) == "NEXT validator"


@pytest.mark.parametrize("confine", sampled(["auto", "off"], lambda confine: confine == "off"))
def test_of_a_sweep_that_is_killed_in_its_second_half_nothing_is_left(through: House, confine: str) -> None:
    """No process, no folder, and nothing is decided, where its guardians die with it."""
    commit(through, **{"ask.sh": '[ "$TERM" = dumb ] || sleep 60\n'})
    lay(through, features.load(through.layout), Contract(claims=[claim("VAL-1", "bash ask.sh"), KNOWN.claims[1]]))
    through.config('agent = "scripted"', f'confine = "{confine}"')
    run = through.begin_role("validator")
    until(lambda: any(b"sleep" in words for words in lines_of(run.pid)))
    run.send_signal(signal.SIGSTOP)
    for pid in (*tree.descendants(run.pid, deep=False), run.pid):
        os.kill(pid, signal.SIGKILL)
    run.wait()
    until(lambda: bool(recover.recover_dead(through.layout)))  # its guardians hold its lease until they are gone
    assert os.listdir(through.folder / "temporary") == []
    mine = os.fsencode(f"TMPDIR={through.folder}/temporary/tmp.")
    assert [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if mine in environment_of(pid)] == []
    assert (through.result()["outcome"], due(through)) == ("killed", "NEXT validator")


def lines_of(root: int) -> list[bytes]:
    """The command lines of all descendants of a process."""
    found = []
    for pid in tree.descendants(root):
        with suppress(OSError):
            found.append(Path(f"/proc/{pid}/cmdline").read_bytes())
    return found


def environment_of(pid: int) -> bytes:
    """What a process was started with; nothing for one that has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes()
    return b""


def test_a_red_sweep_sends_the_owner_back(through: House) -> None:
    """A fresh clone lacks untracked files: that feature fails, the others stay passed, no try is counted."""
    through.git("rm", "-q", "--cached", "two")
    through.git("commit", "-q", "-m", "forgot it")
    result = judged(through)
    assert (result["verdict"], (through.project / "two").exists()) == ("red", True)
    assert [(one.id, one.status, one.attempts) for one in features.load(through.layout)] == [
        ("F-001", "passed", 1),
        ("F-002", "failing", 1),
    ]
    assert raw_of(through)[0].startswith("validator F-002 FAIL: VAL-2 is red (exit 2) in a fresh clone: grep")
    assert due(through) == "NEXT worker F-002"


def test_the_owner_of_two_red_claims_is_named_with_both(through: House) -> None:
    """A feature that was just sent back still owns its other claims."""
    lay(through, [feature("F-001", "VAL-1", "VAL-2", status="passed", attempts=1)], KNOWN)
    through.git("rm", "-q", "--cached", "one", "two")
    through.git("commit", "-q", "-m", "forgot them")
    judged(through)
    assert [line.split(" ")[:4] for line in raw_of(through)] == [
        ["validator", "F-001", "FAIL:", "VAL-1"],
        ["validator", "F-001", "FAIL:", "VAL-2"],
    ]


def test_the_worker_that_gets_it_back_reads_why(through: House) -> None:
    """The feature's next prompt says what is red, and where."""
    through.git("rm", "-q", "--cached", "two")
    through.git("commit", "-q", "-m", "forgot it")
    judged(through)
    worked(through, {"run": "git add -f two"}, name="F-002")
    assert "VAL-2 is red in a fresh clone" in through.prompt()


def test_a_sweep_asks_no_agent(through: House) -> None:
    """No adversarial check is left to propose."""
    through.script("validator", {"run": "touch asked"}, reply(checks=[]))
    assert judged(through)["agent"] == ""
    assert not (through.project / "asked").exists()


def test_a_red_setup_in_the_sweep_calls_a_person(through: House) -> None:
    """A failed setup of a clone belongs to no feature."""
    lay(through, features.load(through.layout), KNOWN.replace(setup="test -f untracked-tool"))
    through.write("untracked-tool")
    assert judged(through)["verdict"] == "red"
    assert [one.status for one in features.load(through.layout)] == ["passed", "passed"]
    assert due(through) == "ESCALATE setup"


def test_what_has_no_owner_fails_nobody(built: House) -> None:
    """A sweep by hand during a mission judges only passed features."""
    found: list[Feature] = [feature("F-001", "VAL-1", status="passed"), feature("F-002", "VAL-2", status="todo")]
    lay(built, found, KNOWN)
    built.git("rm", "-q", "two")
    built.git("commit", "-q", "-m", "gone")
    assert judged(built)["verdict"] == "red"
    assert [one.status for one in features.load(built.layout)] == ["passed", "todo"]


# setup and services


def green(house: House, *commands: str, **more: Any) -> None:
    """F-001 waits for its validation; its only claim has these checks."""
    lay(house, [feature("F-001", "VAL-1", status="validating")], Contract(claims=[claim("VAL-1", *commands)], **more))


def test_setup_runs_once_a_commit(built: House) -> None:
    """It runs again if HEAD or the setup changes; a red setup is not cached."""
    commit(built, **{".gitignore": "setups*\n"})
    runs = built.tree / "setups"
    green(built, "true", setup="echo x >>setups")
    judged(built, "F-001")
    judged(built, "F-001")
    assert runs.read_text() == "x\n"
    commit(built, more="")
    judged(built, "F-001")
    assert runs.read_text() == "x\nx\n"
    green(built, "true", setup="echo y >>setups; test -e setups.ok")
    judged(built, "F-001")
    Path(f"{runs}.ok").touch()
    judged(built, "F-001")
    assert runs.read_text() == "x\nx\ny\ny\n"


def test_services_are_up_for_checks_and_end_with_the_run(built: House) -> None:
    """They start once per run, for all its checks, each on its own port."""
    served = [
        Service(name=name, run=f"echo $PORT >>{name}.log; sleep 60", ready=f"test -s {name}.log", seconds=20)
        for name in ("web", "data-base")
    ]
    ports = "test $PORT_WEB = $(cat web.log); test $PORT_DATA_BASE = $(cat data-base.log); test $PORT = $PORT_WEB"
    commit(built, **{".gitignore": "*.log\n"})
    green(built, ports, ports + "; test $PORT_WEB != $PORT_DATA_BASE", services=served)
    assert judged(built, "F-001")["verdict"] == "green", fired(built)
    assert (built.tree / "web.log").read_text().count("\n") == 1
    assert tagged(mission.load(built.layout).id) == []


def test_a_service_that_is_not_ready_fails_the_feature_with_the_tail_of_its_log(built: House) -> None:
    """The worker reads the server's output."""
    broken = Service(name="web", run="echo address in use; exit 1", ready="false", seconds=20)
    green(built, "touch fired", services=[broken])
    assert judged(built, "F-001")["verdict"] == "red"
    said = "the service web ended before it was ready; its log:"
    assert fired(built)[0].output == f"{said}\naddress in use\n"
    assert raw_of(built) == [f"validator F-001 FAIL: VAL-1 is red (exit 69): {said} address in use"]
    assert tries(built) == ("failing", 1)
    assert not (built.project / "fired").exists()


def test_an_aimed_check_has_the_services_too(built: House) -> None:
    """It runs like the contract's own checks."""
    web = Service(name="web", run="echo $PORT >port; sleep 60", ready="test -s port", seconds=20)
    green(built, "true", services=[web])
    built.script("validator", aims("test $PORT_WEB = 0; test $(cat port) = $PORT"))
    judged(built, "F-001")
    assert "PORT_WEB" not in fired(built)[-1].output, "it is set"
    assert tries(built) == ("failing", 1)


# regression checks


def neighbours(house: House, *own: str, **checks: Check) -> None:
    """F-001 waits for its validation; every other claim here belongs to a passed feature."""
    others = [contract.Claim(id=f"N-{name}", text="It stays", checks=[check]) for name, check in checks.items()]
    found = [feature(f"F-{one.id}", one.id, status="passed", attempts=1) for one in others]
    mine = claim("VAL-1", *(own or ["true"]))
    lay(house, [feature("F-001", "VAL-1", status="validating"), *found], Contract(claims=[mine, *others]))


def blamed(house: House) -> list[str]:
    """The neighbours' claims that ran, in order."""
    return [one.claim for one in fired(house) if one.phase == "blame"]


def test_who_breaks_a_neighbour_fails_and_is_named(built: House) -> None:
    """The newly built feature fails; the broken one stays passed."""
    neighbours(built, a=Check(run="test -f one"))
    built.git("rm", "-q", "one")
    built.git("commit", "-q", "-m", "gone")
    assert judged(built, "F-001")["verdict"] == "red"
    assert [(one.id, one.status, one.attempts) for one in features.load(built.layout)] == [
        ("F-001", "failing", 1),
        ("F-N-a", "passed", 1),
    ]
    assert raw_of(built) == [
        "validator F-001 FAIL: F-001 broke a neighbour: N-a is red (exit 1): test -f one",
    ]


def test_neighbours_are_not_asked_while_its_own_checks_are_red(built: House) -> None:
    """One failure at a time; and no agent runs if a neighbour is red."""
    neighbours(built, "false", a=Check(run="true"))
    judged(built, "F-001")
    assert blamed(built) == []
    neighbours(built, "true", a=Check(run="false"))
    built.script("validator", {"run": "touch asked"}, reply(checks=[]))
    assert judged(built, "F-001")["agent"] == ""
    assert (blamed(built), (built.project / "asked").exists()) == (["N-a"], False)


def test_features_that_have_not_passed_are_no_neighbours(built: House) -> None:
    """A feature that was never green cannot be broken."""
    found = [feature("F-001", "VAL-1", status="validating"), feature("F-002", "VAL-2", status="failing")]
    lay(built, found, Contract(claims=[claim("VAL-1", "true"), claim("VAL-2", "false")]))
    judged(built, "F-001")
    assert blamed(built) == []
    assert tries(built) == ("passed", 1)


def test_guards_come_first_and_then_what_was_not_run_for_longest(built: House) -> None:
    """This order finds the most in little time; a check that never ran comes before one that ran once."""
    true = Check(run="true")
    neighbours(built, a=true, b=true, c=true, g=true.replace(guard=True))
    judged(built, "F-001")
    path = Path(built.layout.run(built.result()["run"]).receipts)
    ages = {"N-a": "2026-01-03", "N-b": "2026-01-01", "N-g": "2026-01-04"}
    rows = [one.replace(at=ages[one.claim] + "T00:00:00Z") for one in fired(built) if one.claim in ages]
    path.write_bytes(receipts.render(rows))
    reseal(built)
    shutil.rmtree(built.layout.cache)
    judged(built, "F-001")
    assert blamed(built) == ["N-g", "N-c", "N-b", "N-a"]


def test_blame_ends_when_its_time_is_up(built: House) -> None:
    """`sweep_seconds` is the limit: the claims left out come first the next time."""
    built.config('agent = "scripted"', "sweep_seconds = 1")
    slow = Check(run="sleep 1.1")
    neighbours(built, a=slow, b=slow)
    judged(built, "F-001")
    first = blamed(built)
    judged(built, "F-001")
    assert (first, blamed(built)) == (["N-a"], ["N-b"])


# flaky


TURNS = "n=$(cat count || echo 0); echo $((n + 1)) >count; test $((n % 3)) != 0"


def test_a_flaky_check_counts_and_is_marked_and_the_third_time_makes_an_issue(built: House) -> None:
    """Red, then green at the same commit: it makes one issue, however often it repeats."""
    green(built, TURNS)
    for number in range(1, 5):
        assert judged(built, "F-001")["verdict"] == "green"
        (receipt,) = fired(built)
        assert (receipt.flaky, receipt.verdict) == (True, "green (flaky)")
        assert "flaky: red (exit 1) the first time" in receipt.notes
        found = [(one.title, one.severity) for one in issues.load(built.layout)]
        assert found == ([("A check of VAL-1 is flaky", "minor")] if number >= 3 else [])
    assert tries(built) == ("passed", 1)


def test_what_is_red_twice_is_red(built: House) -> None:
    """The first receipt is kept, once."""
    commit(built, **{".gitignore": "*.log\n"})
    green(built, "echo x >>count.log; exit 3")
    judged(built, "F-001")
    assert [(one.exit, one.flaky) for one in fired(built)] == [(3, False)]
    assert (built.tree / "count.log").read_text() == "x\nx\n"


def test_an_aimed_check_that_is_flaky_is_dropped(built: House) -> None:
    """It can neither fail a feature nor join the contract, also if it is red again the third time."""
    often = TURNS.replace("% 3)) != 0", "% 2)) = 1")
    built.script("validator", aims(TURNS, often.replace("count", "another")))
    judged(built, "F-001")
    assert tries(built) == ("passed", 1)
    assert (contract_of(built), log_of(built)) == (KNOWN, [])
    assert not any("% " in one.command for one in fired(built))


# reward-hacking signals


def test_signs_of_gaming_stand_in_the_receipts_and_in_the_prompt(built: House) -> None:
    """A worker deletes a test and edits what a check runs: the feature may pass, but never unnoticed."""
    commit(built, **{"test_it.py": "print(1)\n", "check.sh": "exit 1\n"})
    lay(built, [feature("F-001", "VAL-1")], Contract(claims=[claim("VAL-1", "bash check.sh")]))
    worked(built, {"run": "rm test_it.py; echo 'exit 0' >check.sh"}, reply(status="implemented", summary="s"))
    built.script("validator", reply(checks=[]))
    judged(built, "F-001")
    signs = [
        "deletes the test file test_it.py",
        "edits check.sh, which a check of VAL-1 names",
        "swallows a failure in check.sh",
    ]
    assert fired(built)[0].notes == signs
    prompt = built.prompt()
    assert "Look twice: signs of gaming in the diff" in prompt
    assert all(sign in prompt for sign in signs)


def test_an_honest_diff_has_no_signs(built: House) -> None:
    """Signals from before the feature last passed are not repeated."""
    lay(built, [feature("F-001", "VAL-1")], Contract(claims=[claim("VAL-1", "test -f made")]))
    worked(built, {"run": "touch made"}, reply(status="implemented", summary="s"))
    judged(built, "F-001")
    assert fired(built)[0].notes == []
    assert "signs of gaming" not in built.prompt()


def test_a_file_of_a_check_that_the_same_work_added_may_be_written_again_until_it_is_accepted(built: House) -> None:
    """A second try rewrites the check script of the first: no sign. Once it has passed, the same edit is one."""
    lay(built, [feature("F-001", "VAL-1")], Contract(claims=[claim("VAL-1", "bash check.sh && test -f made")]))
    worked(built, {"run": "printf 'set -e\nfalse\n' >check.sh"}, reply(status="implemented", summary="s"))
    judged(built, "F-001")
    worked(built, {"run": "printf 'set -e\ntrue\n' >check.sh; touch made"}, reply(status="implemented", summary="s"))
    judged(built, "F-001")
    assert [(one.green, one.notes) for one in fired(built)] == [(True, [])]
    built.script(
        "worker", {"run": "printf 'set -e\ntest -f made\n' >check.sh"}, reply(status="implemented", summary="s")
    )
    role(built, "worker", "F-001", "--again")
    judged(built, "F-001")
    assert fired(built)[0].notes == ["edits check.sh, which a check of VAL-1 names"]


# what the receipts of a sweep report


def test_a_sweeps_receipts_say_what_a_clone_lacks(through: House) -> None:
    """They report that there is no setup, and what exists only in the working folder."""
    through.git("rm", "-q", "two")
    commit(through, **{".gitignore": "two\n"})
    judged(through, "F-001")
    (through.tree / "two").write_text("ok\n")
    judged(through)
    notes = fired(through)[-1].notes
    assert notes[0] == "the contract has no setup: a fresh clone is checked as it is"
    assert "only in the working folder, not in a clone: " in notes[1]
    assert notes[1].endswith(": two")


PIPE = "python3 -c 'import os; os.close(1); raise BrokenPipeError(32)' || true"
NOISY = f"echo expected 3, got 4; {PIPE}; echo 'make: *** [t] Error 1'; exit 2"


def test_a_red_claim_is_noted_with_what_was_wrong_not_with_its_last_line(built: House) -> None:
    """A broken pipe and make's own end say nothing; the run line says the same."""
    green(built, NOISY)
    assert judged(built, "F-001")["reason"] == "VAL-1 is red (exit 2): expected 3, got 4"
    assert raw_of(built) == ["validator F-001 FAIL: VAL-1 is red (exit 2): expected 3, got 4"]
