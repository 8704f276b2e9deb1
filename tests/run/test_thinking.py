"""An agent works in its execution context, within the caps, with fallbacks; what it says and uses is recorded."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from harness.process.confine import BUBBLEWRAP, available
from harness.state import names
from tests.missions import CHECKOUT, House


def test_the_agents_environment_is_the_users_without_ours(house: House) -> None:
    """It is unattended, has the harness on its PATH, no virtual environment, what the table passes, and only the run's own
    variable of ours."""
    noise = {
        "PYTHONPATH": "/x",
        "VIRTUAL_ENV": "/x",
        "CLAUDECODE": "1",
        "HARNESS_X": "1",
        "GIT_DIR": "/x",
        "MINE": "yes",
        "JAVA_HOME": "/j",
    }
    house.work({"run": "env > env.txt; command -v harness > where.txt"}, **noise)
    env = dict(line.split("=", 1) for line in (house.project / "env.txt").read_text().split("\n") if "=" in line)
    assert {name for name in noise if name in env} == {"JAVA_HOME"}
    assert [name for name in env if name.startswith("HARNESS_")] == ["HARNESS_INSIDE"]
    assert (env["CI"], env["NO_COLOR"], env["TERM"], env["PAGER"]) == ("1", "1", "dumb", "cat")
    assert env["TMPDIR"].startswith(house.env["TMPDIR"] + "/harness-")
    assert (house.project / "where.txt").read_text().strip() == house.layout.path(names.SHIM)


def test_an_agent_gets_the_keys_that_config_toml_passes(house: House) -> None:
    """The others are withheld, and a program of the user's that fails without them is told which."""
    command = 'command = ["bash", "-c", "cat > /dev/null; echo ${A_TOKEN-none} ${B_TOKEN-none} > seen; exit 7"]'
    house.config('agent = "mine"', "[env]", 'pass = ["A_TOKEN"]', "[agents.mine]", command)
    result = house.work(A_TOKEN="a", B_TOKEN="b")
    assert (house.project / "seen").read_text() == "a none\n"
    told = result["reason"].split("\n")[1]
    assert (told.startswith("withheld from mine: "), "B_TOKEN" in told, "A_TOKEN" in told) == (True, True, False)


NOT_PASSED = "not passed on: DATABASE_URL; see [env] pass"


def test_a_run_that_fails_names_what_its_output_mentions_and_did_not_get(house: House) -> None:
    """On the first line of its reason; so does one that is blocked, or changes nothing, and none that works."""
    result = house.work({"run": "echo no DATABASE_URL; exit 3"}, DATABASE_URL="x")
    assert result["reason"] == f"the scripted command ended with exit 3; {NOT_PASSED}"
    blocked = {"say": '```json\n{"status": "blocked", "reason": "DATABASE_URL is unset"}\n```'}
    result = house.work(blocked, feature="F-002", DATABASE_URL="x")
    assert result["reason"] == f"blocked: DATABASE_URL is unset; {NOT_PASSED}"
    assert house.work({"run": "echo DATABASE_URL; touch 1.txt"}, DATABASE_URL="x")["reason"] == ""
    house.script("worker", {"run": "echo DATABASE_URL"})
    house.role("worker", "F-001", "--again", DATABASE_URL="x")
    assert (house.result()["outcome"], house.result()["reason"]) == ("no_op", NOT_PASSED)


@pytest.mark.skipif(available() != BUBBLEWRAP, reason="bubblewrap cannot be used here")
def test_a_run_that_fails_names_a_hidden_path_that_its_output_mentions(house: House) -> None:
    """Behind its fault, with the remedy; a path that it sees is none."""
    notes = house.folder / "home/notes.txt"
    notes.parent.mkdir(exist_ok=True)
    notes.write_text("x")
    reason = house.work({"run": f"echo {house.project}/x; cat {notes} || exit 3"})["reason"]
    why = "runs see only a list of your home folder; to show it, write into config.toml"
    assert (
        reason
        == f'the scripted command ended with exit 3; its confinement hides {notes}: {why}: [home] show = ["notes.txt"]'
    )


def test_an_agent_of_a_known_vendor_gets_that_vendors_keys(house: House) -> None:
    """Nothing has to be written for them, and no other vendor's come with them."""
    command = 'command = ["bash", "-c", "cat > /dev/null; echo ${OPENAI_API_KEY-none} ${GEMINI_API_KEY-none} > seen"]'
    house.config('agent = "mine"', "[agents.mine]", command, 'format = "codex"')
    house.work(OPENAI_API_KEY="a", GEMINI_API_KEY="b")
    assert (house.project / "seen").read_text() == "a none\n"


def test_an_agent_has_a_temporary_folder_of_its_own(house: House) -> None:
    """What programs unpack there does not fill the machine: it is removed with the run, whatever the outcome."""
    house.work({"run": 'mkdir "$TMPDIR/cache"; echo 1 > "$TMPDIR/cache/file"; exit 3'})
    assert list(Path(house.env["TMPDIR"]).iterdir()) == []


def test_an_agents_input_is_at_its_end(house: House) -> None:
    """No question gets an answer."""
    assert house.work({"run": "read -r line && exit 1; echo 1 > 1.txt"})["outcome"] == "ok"


def test_a_command_gets_the_prompt_on_its_standard_input(house: House) -> None:
    """Its standard output is the reply."""
    house.config('agent = "mine"', "[agents.mine]", 'command = ["sh", "-c", "cat > got; echo fine; echo told >&2"]')
    result = house.work()
    assert (house.project / "got").read_text() == house.prompt()
    run = house.layout.run(result["run"])
    assert (Path(run.reply).read_text(), Path(run.stderr).read_text()) == ("fine\n", "told\n")


def test_a_run_that_takes_too_long_is_cut_at_its_minutes(house: House) -> None:
    """The outcome is wall; the work is kept."""
    house.config('agent = "scripted"', "[roles.worker]", "minutes = 0.005")
    result = house.work({"run": "echo 1 > 1.txt; sleep 90"})
    assert (result["outcome"], house.feature().attempts) == ("wall", 0)
    assert result["commit"] == house.head()


@pytest.mark.parametrize("cap", ["max_cost_usd = 1.0", "max_tokens = 1000"])
def test_a_run_that_uses_up_a_cap_ends_at_its_next_action(house: House, cap: str) -> None:
    """The run ends promptly: its work is kept, no try is used, and the mission stops with the code of an exhausted budget."""
    house.config('agent = "scripted"', "[limits]", cap)
    half, whole = ({"usage": {"cost_usd": cost, "input": 1000 * cost}} for cost in (0.5, 1))
    result = house.work(half, {"run": "touch 1.txt"}, whole, {"run": "touch 2.txt"}, {"say": "done"})
    assert result["outcome"] == "killed"
    assert result["reason"].startswith("ended at its cap: ")
    assert (house.feature().status, house.feature().attempts) == ("todo", 0)
    assert "1.txt" in house.git("ls-tree", "--name-only", result["commit"]).split()
    assert not (house.project / "2.txt").exists()
    assert house.harness("next").code == 6


def test_a_run_that_ends_at_its_cap_has_ended_well(house: House) -> None:
    """Its last message costs nothing more, so it counts."""
    house.config('agent = "scripted"', "[limits]", "max_tokens = 1000")
    result = house.work({"run": "touch 1.txt"}, {"usage": {"input": 2000}}, {"say": "done"})
    assert (result["outcome"], house.feature().status) == ("ok", "validating")


def test_a_person_may_start_a_run_beyond_the_cap(house: House) -> None:
    """By hand and deliberately: `run.sh worker F-001` after the loop has stopped."""
    house.config('agent = "scripted"', "[limits]", "max_tokens = 1000")
    house.work({"usage": {"input": 2000}}, {"say": "nothing"})
    house.lay(house.feature().replace(status="todo"), house.feature("F-002"))
    assert house.work({"usage": {"input": 9}}, {"run": "touch 1.txt"})["outcome"] == "ok"


# fallback


def test_the_next_agent_is_tried_on_a_limit(house: House) -> None:
    """Agents follow the order of the configuration; the result names the one that answered."""
    answer = 'command = ["sh", "-c", "cat > /dev/null; echo 1 > 1.txt; echo done"]'
    house.config('agent = ["scripted", "mine"]', "[agents.mine]", answer)
    result = house.work({"fail": "limit", "reason": "come back later"})
    assert (result["outcome"], result["agent"], house.feature().status) == ("ok", "mine", "validating")


def test_the_run_says_who_answered_and_why_not_the_others(house: House) -> None:
    """One is not installed, one met a limit, one answered: reported in one line, in the result, and in the agents' words."""
    answer = 'command = ["sh", "-c", "cat > /dev/null; echo 1 > 1.txt; echo done"]'
    house.config(
        'agent = ["gone", "scripted", "mine"]', "[agents.gone]", 'command = ["no-such"]', "[agents.mine]", answer
    )
    house.script("worker", {"fail": "limit", "reason": "five_hour limit"})
    out = house.role("worker", "F-001").out
    assert "mine answered; gone: not available; scripted: limit, five_hour limit" in out
    assert house.result()["agents"] == ["scripted", "mine"]


@pytest.mark.parametrize(("first", "second"), [("limit", "auth"), ("auth", "limit"), ("config", "limit")])
def test_where_nobody_can_answer_the_limit_is_waited_for(house: House, first: str, second: str) -> None:
    """The limit passes with time, so the mission does not stop; the message adds what the user can fix."""
    house.scripts.mkdir()
    ends = {"auth": 1, "config": 1, "limit": 0}
    row = '{"type":"result","is_error":true,"api_error_status":%d,"result":"no"}'
    status = {"auth": 401, "config": 404, "limit": 429}
    tables = []
    for name, outcome in (("one", first), ("two", second)):
        path = house.write(name, f"#!/bin/sh\ncat > /dev/null\necho '{row % status[outcome]}'\nexit {ends[outcome]}\n")
        path.chmod(0o755)
        tables += [f"[agents.{name}]", f'command = ["{path}"]', 'format = "claude"']
    house.config('agent = ["one", "two"]', *tables)
    house.role("worker", "F-001")
    result = house.result()
    assert result["outcome"] == "limit"
    assert result["reason"] == f"one: {first}, no; two: {second}, no"
    assert set(result["waits"]) == {"one" if first == "limit" else "two"}
    assert result["until"] > 0


def test_an_agent_that_met_a_limit_is_not_asked_again_before_its_time(house: House) -> None:
    """Another agent can answer: a vendor's own retries cost minutes in each run."""
    answer = 'command = ["sh", "-c", "cat > /dev/null; date >> 1.txt; echo done"]'
    house.config('agent = ["scripted", "mine"]', "[agents.mine]", answer)
    soon = int(time.time()) + 1000
    house.work({"fail": "limit", "reason": "full", "until": soon})
    assert house.result()["waits"] == {"scripted": soon}
    second = house.work({"run": "touch asked"}, feature="F-002")
    assert (second["agents"], second["agent"], second["waits"]) == (["mine"], "mine", {"scripted": soon})
    assert "scripted: limit, still waited for" in second["reason"]
    house.role("curator")  # asks no vendor, and so reports no limit
    house.lay(house.feature().replace(status="todo"), house.feature("F-002").replace(status="todo"))
    assert house.work({"run": "touch asked"})["agents"] == ["mine"]
    assert not (house.project / "asked").exists()


def limited(house: House, name: str, **told: object) -> list[str]:
    """The table of an agent whose vendor refuses it until `resetsAt`, where it gives that time."""
    row = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "rateLimitType": "weekly", **told}}
    path = house.write(name, f"#!/bin/sh\ncat > /dev/null\necho '{json.dumps(row)}'\nexit 1\n")
    path.chmod(0o755)
    return [f"[agents.{name}]", f'command = ["{path}"]', 'format = "claude"']


def test_who_told_no_time_is_not_waited_for_as_long_as_who_did(house: House) -> None:
    """One may be back in a minute, the other in a week: the agent is asked in a minute."""
    week = int(time.time()) + 7 * 86400
    house.config('agent = ["one", "two"]', *limited(house, "one"), *limited(house, "two", resetsAt=week))
    house.role("worker", "F-001")
    result = house.result()
    assert result["outcome"] == "limit"
    assert 55 <= result["until"] - time.time() <= 70
    assert result["waits"]["two"] == week


def test_a_limit_is_remembered_by_runs_that_ask_others_and_for_eight_days_at_most(house: House) -> None:
    """Otherwise every other run would meet the limit again; an implausible time is ignored."""
    mine = ["[agents.mine]", 'command = ["sh", "-c", "cat > /dev/null; date >> 1.txt; echo done"]']
    one = limited(house, "one", resetsAt=99999999999)
    house.config('agent = ["one", "mine"]', *one, *mine, "[roles.planner]", 'agent = "mine"')
    house.role("worker", "F-001")
    until = house.result()["waits"]["one"]
    assert until - time.time() <= 8 * 86400
    house.role("planner")
    assert (house.result()["agents"], house.result()["waits"]) == (["mine"], {"one": until})
    house.role("worker", "F-002")
    assert house.result()["agents"] == ["mine"]


def test_an_agents_own_fault_is_not_passed_on(house: House) -> None:
    """Only a limit, a failed login and a missing agent lead to the next agent."""
    house.config('agent = ["scripted", "mine"]', "[agents.mine]", 'command = ["sh", "-c", "touch second"]')
    assert house.work({"fail": "agent_error"})["agent"] == "scripted"
    assert not (house.project / "second").exists()


# what is recorded


def test_a_reply_that_stands_in_the_result_alone_is_taken(house: House) -> None:
    """Some programs do not report their last message earlier."""
    block = '```json harness\n{"status": "blocked", "reason": "no", "needs": ["F-002"]}\n```'
    row = {"type": "result", "result": block, "usage": {"input_tokens": 1}}
    path = house.write("row", json.dumps(row) + "\n")
    house.config('agent = "mine"', "[agents.mine]", f'command = ["cat", "{path}"]', 'format = "claude"')
    house.role("worker", "F-001")
    assert house.feature().status == "blocked"


def test_what_the_agent_says_and_does_is_in_the_stream(house: House) -> None:
    """Messages and output have seconds; output is in stderr.log too."""
    house.work({"run": "echo out; echo err >&2"}, {"say": "all done"})
    run = house.layout.run(house.result()["run"])
    rows = [json.loads(line) for line in Path(run.stream).read_text().split("\n") if line]
    assert {"agent", "did", "said", "output"} == {row["kind"] for row in rows}
    assert "".join(row["text"] for row in rows if row["kind"] == "output") == "out\nerr\n"
    assert Path(run.stderr).read_text() == "out\nerr\n"
    assert all(row["at"] >= 0 for row in rows)
    assert Path(run.reply).read_text() == "all done"


def test_the_stream_says_who_answers_and_what_it_used(house: House) -> None:
    """A row with the agent's name precedes its answer; a row with the usage follows each new report."""
    house.config('agent = ["scripted", "mine"]', "[agents.mine]", 'command = ["true"]')
    result = house.work({"usage": {"input": 1}}, {"usage": {"input": 2}}, {"fail": "limit"})
    text = Path(house.layout.run(result["run"]).stream).read_text()
    rows = [json.loads(line) for line in text.split("\n") if line]
    assert [row["kind"] for row in rows][:4] == ["agent", "usage", "usage", "agent"]
    assert [row["text"] for row in rows if row["kind"] == "agent"] == ["scripted", "mine"] == result["agents"]
    assert [json.loads(row["text"])["input"] for row in rows[1:3]] == [1, 2]


def test_what_a_program_says_in_the_end_is_masked_before_it_is_kept(house: House) -> None:
    """A reason goes into the result, the run log and the next prompt."""
    token = "gh" + "p_a8Kd93jfLs02LqPz7Xc1Vb5Nm4Qw6Er8Ty2Ui0"
    house.config('agent = "mine"', "[agents.mine]", f'command = ["sh", "-c", "echo {token} >&2; exit 3"]')
    assert "[masked: github-token]" in house.work()["reason"]


def test_transcripts_hold_no_secret_and_stay_within_max_log_mb(house: House) -> None:
    """The limit covers stream.jsonl and stderr.log together; so it is in the reply."""
    house.config('agent = "scripted"', "[limits]", "max_log_mb = 1")
    token = "gh" + "p_a8Kd93jfLs02LqPz7Xc1Vb5Nm4Qw6Er8Ty2Ui0"
    result = house.work({"run": f"echo {token}; seq 400000"}, {"say": f"it is {token}"})
    paths = house.layout.run(result["run"])
    stream, stderr = (Path(path).read_bytes() for path in (paths.stream, paths.stderr))
    assert len(stream) + len(stderr) <= 1024 * 1024
    assert b"[masked: github-token]" in stream + stderr
    assert token.encode() not in stream + stderr
    assert Path(paths.reply).read_text() == "it is [masked: github-token]"
    assert json.loads(stream.split(b"\n")[-2])["kind"] == "cut"


# an update of the harness


def checkout(house: House, commit: str) -> Path:
    """A checkout of this harness at a commit, for one test."""
    home = house.folder / "home"
    for name in ("harness", "roles"):
        shutil.copytree(CHECKOUT / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CHECKOUT / "run.sh", home)
    (home / ".git").mkdir()
    (home / ".git" / "HEAD").write_text(commit + "\n")
    return home


def test_an_update_while_an_agent_thinks_waits_for_the_next_run(unconfined: House) -> None:
    """Every harness file has changed when the agent ends: the run ends with the code it began with, and says so; the next
    start reports the new version."""
    house = unconfined
    home, bad = checkout(house, "a" * 40), "raise SystemExit(99)"
    sources = f"find {home}/harness {home}/roles -name '*.py*'"
    update = f"{sources} | while read f; do echo '{bad}' >$f; done; echo {'b' * 40} >{home}/.git/HEAD"
    words = [sys.executable, "-P", str(home / "roles" / "worker.py")]
    house.script(
        "worker",
        {"run": "sleep 1.5"},
        {"run": update},
        {"run": 'echo 1 >1.txt; echo >>"${PATH%%/bin:*}"/features.json'},
    )
    done = house.run([*words, "F-001"], env={"HARNESS_HOME": str(home), "PYTHONPATH": str(home)})
    assert (done.code, house.result()["outcome"], done.err) == (10, "refused", ""), done
    assert house.git("show", "--format=", "--name-only").strip() == "1.txt"
    assert house.result()["version"] == "0.1.0 aaaaaaaaaaaa"
    house.script("worker", {"run": "true"})
    first, second = (house.role("worker", name) for name in ("F-001", "F-002"))
    said = "the harness was updated: the last run had 0.1.0 aaaaaaaaaaaa, from here on it is 0.1.0"
    assert (first.out.count(said), second.out.count("was updated")) == (1, 0), first


def test_on_a_terminal_the_line_of_a_run_says_how_far_the_mission_is(house: House) -> None:
    """Elapsed time, features that passed, and the cost so far with what this run has reported."""
    house.work({"usage": {"cost_usd": 0.25, "input": 5}}, {"say": "nothing"})
    house.lay(house.feature().replace(status="passed"), house.feature("F-002"))
    house.script("worker", {"usage": {"cost_usd": 0.5, "input": 5}}, {"run": "sleep 0.4"}, {"say": "done"})
    leader, follower = pty.openpty()
    env = {**house.env, "TERM": "xterm"}
    done = subprocess.Popen(
        house.words("worker", "F-002"), cwd=house.project, env=env, stdout=follower, stderr=follower
    )
    os.close(follower)
    found = b""
    with suppress(OSError):  # how Linux reports that the other end is closed
        while chunk := os.read(leader, 65536):
            found += chunk
    os.close(leader)
    assert done.wait() == 0
    assert re.search(r" worker F-002 0:0\d, 1 of 2 features, 0\.75 USD ·", found.decode()), found


def test_an_agent_without_a_sign_of_life_is_no_plan_and_ends_the_mission_the_third_time(house: House) -> None:
    """69 with what to do, from planners; none of these runs is a rejected plan, and each start tries three times."""
    house.script("planner", {"fail": "startup_hang", "reason": "no first event, after 120 s"})
    silent = [house.role("planner") for _ in range(4)]
    assert [done.code for done in silent] == [10, 10, 69, 10], silent
    assert "scripted gave no sign of life, 3 runs in a row: no first event, after 120 s" in silent[2].out
    assert "doctor agents --try" in silent[2].out
    assert [row["totals"]["rejected"] for row in house.ran()] == [0, 0, 0, 0]
    assert [row["outcome"] for row in house.ran()] == [*["startup_hang"] * 2, "config", "startup_hang"]
