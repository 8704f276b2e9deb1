"""The built-in agent through the front door: a whole mission over loopback, and runs that are killed and go on."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from harness.base.encoding import digest
from harness.builtin.loop import turns
from harness.builtin.loop.exchange import ModelFault
from harness.builtin.loop.turns import Log
from harness.mission import lease, runs, tasks
from harness.state import names
from tests.agents import small_mission, todo_mission
from tests.agents.modelserver import Handler, Reply, Server
from tests.agents.wires import Exchange
from tests.builtin.talking import MODELS, WIRES, address, calling, serving, slow, steps, written
from tests.missions import CHECKOUT, House, surroundings, until
from tests.workspace.workspaces import accepted

DONE = 'It is implemented.\n\n```json harness\n{"status": "implemented", "summary": "done"}\n```\n'


def configured(server: Server, wire: str = "chat", **more: object) -> str:
    """config.toml for a mission by the built-in agent."""
    table = {"model": MODELS[wire], "base_url": address(server, wire), **more}
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    return "\n".join(['agent = "builtin"', 'trust = "workspace"', "[agents.builtin]", *lines, ""])


def log_of(house: House, run: str) -> Log:
    """The turns of a run."""
    log = turns.read(house.layout.run(run).turns)
    assert log is not None
    return log


@pytest.mark.parametrize("wire", WIRES)
def test_a_mission_comes_to_done_with_nothing_but_an_endpoint(tmp_path: Path, wire: str) -> None:
    """Plan, work, validation and a note; every request that the server received is in the turns of a run, and can be shown and
    made again; then the mission is played back where nobody answers."""
    house = House(tmp_path, surroundings(tmp_path))
    house.project.mkdir()
    house.git("init", "-q", "-b", "main", "--template=")
    house.write("SPEC.md", small_mission.SPEC)
    with serving(small_mission.brain) as server:
        house.program("init")
        (house.state / "config.toml").write_text(configured(server, wire))
        words = [str(CHECKOUT / "run.sh")]
        done = subprocess.run(words, cwd=house.project, env=house.env, capture_output=True, text=True, timeout=280)
        assert done.returncode == 0, done.stdout + done.stderr
        received = [digest(one.body) for one in server.seen]
    assert (house.project / "greeting.txt").read_text() == small_mission.GREETING + "\n"
    assert small_mission.TRICK in house.read("memory/raw.md")
    runs = [row["run"] for row in house.ran() if row["agents"]]
    sent = [turn.row["digest"] for run in runs for turn in log_of(house, run).turns.values()]
    assert sent == received
    assert all(row["usage"]["turns"] and row["usage"]["input"] for row in house.ran() if row["agents"])
    shown = house.program("replay", runs[1], "--turn", "2", "--json")
    value = json.loads(shown.out)
    assert (shown.code, value["again"]["equal"], value["turns"]) == (0, True, 3), shown
    assert [one["what"] for one in value["sections"] if one["new"]] == ["assistant", "tool"]
    played = house.program("replay", "--mission")
    assert (played.code, "not recorded" in played.out) == (0, False), played


def test_a_run_whose_commands_all_fail_alike_ends_as_agent_error(house: House) -> None:
    """What they print first is the reason; that they took different times or exits does not matter."""
    failing = ("echo no disk; exit 3", "cat main.py > /dev/null; sleep 0.1; echo no disk; echo more; exit 4")
    with serving(steps(*failing, Reply(DONE))) as server:
        Path(house.layout.path(names.CONFIG)).write_text(configured(server))
        house.role("worker", "F-001")
        assert (house.result()["outcome"], house.result()["reason"]) == ("agent_error", "no disk")
        server.brain = steps(*failing, "true", Reply(DONE))
        house.role("worker", "F-001")
    assert house.result()["outcome"] == "no_op"


LOCAL = {  # what a variable has, and what is said of it
    "MY_KEY": ("a key\nwith a line more", "the key has a character that no header can have: MY_KEY"),
    "SSL_CERT_FILE": ("/nowhere/company.pem", "No such file or directory (see SSL_CERT_FILE)"),
    "ALL_PROXY": ("socks5://127.0.0.1:9", "the 'socksio' package is not installed"),
}


if find_spec("socksio"):
    LOCAL["ALL_PROXY"] = ("gopher://127.0.0.1:9", "Unknown scheme for proxy")


@pytest.mark.parametrize("name", LOCAL)
def test_what_a_person_must_mend_is_said_with_its_name_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """By the client, which each conversation and `doctor agents` make first."""
    from harness.builtin.loop.model_client import ModelClient

    for other in [other for other in os.environ if other.startswith("SSL_") or other.lower().endswith("_proxy")]:
        monkeypatch.delenv(other)
    value, reason = LOCAL[name]
    monkeypatch.setenv(name, value)
    with pytest.raises(ModelFault) as found:
        ModelClient(
            {"model": MODELS["chat"], "base_url": "http://127.0.0.1:9/v1"},
            os.environ.get("MY_KEY", "k"),
            5.0,
            ["MY_KEY"],
        )
    assert found.value.outcome == "config" and reason in str(found.value) and name in str(found.value)


def test_what_a_person_must_mend_ends_the_loop_with_its_name(house: House) -> None:
    """Before anything is sent; and `doctor agents`, which makes the client, says the same."""
    value, reason = LOCAL["MY_KEY"]
    with serving(steps()) as server:
        Path(house.layout.path(names.CONFIG)).write_text(configured(server) + 'api_key_env = "MY_KEY"\n')
        done = house.role("worker", "F-001", MY_KEY=value)
        seen = house.program("doctor", "agents", MY_KEY=value)
        assert server.seen == []
    assert (done.code, house.result()["outcome"]) == (69, "config"), done
    assert reason in house.result()["reason"]
    assert [line for line in seen.out.split("\n") if line.startswith("bad") and reason in line], seen


def kill(house: House, pid: int) -> None:
    """`kill -9` of a run; its guardian ends what is left, and the next start settles it."""
    os.kill(pid, signal.SIGKILL)
    until(lambda: not any(Path(house.layout.path(names.LOCKS)).glob("run-*")) or house.program("next").code != 75)


def test_a_run_that_is_killed_in_a_tool_goes_on_and_knows_of_the_call(house: House, tmp_path: Path) -> None:
    """The command had begun and its effect is there; the next run is told, does not repeat it, and has the conversation."""
    began = "echo once >> count.txt; touch began; sleep 100"
    with serving(steps("echo first > a.txt", began)) as server:
        Path(house.layout.path(names.CONFIG)).write_text(configured(server))
        role = house.begin_role("worker", "F-001")
        until(lambda: (house.tree / "began").exists(), 60)
        kill(house, role.pid)
        server.brain = steps("", "", "cat count.txt; touch b.txt", Reply(DONE))
        done = house.role("worker", "F-001")
    assert "Traceback" not in done.err, done
    result = house.result()
    log = log_of(house, result["run"])
    texts = [one["text"] for one in log.messages() if one["role"] == "tool"]
    assert result["outcome"] == "ok", result
    assert "Look at what is there before you do it again" in texts[1]
    assert texts[2].count("once") == 1
    assert house.git("show", f"{result['commit']}:count.txt") == "once"
    assert f"goes on with the conversation of {house.ran()[0]['run']}" in house.read(f"runs/{result['run']}/stderr.log")


def test_the_caps_of_a_mission_hold_at_a_server_without_counts(house: House) -> None:
    """One on tokens ends the run by a marked estimate. (One in USD: loop/test_loop.py, and `ask`.)"""
    with serving(lambda _: Reply("", "true", counted=False)) as server:
        Path(house.layout.path(names.CONFIG)).write_text(configured(server) + "[limits]\nmax_tokens = 500\n")
        house.role("worker", "F-001")
        assert (house.result()["outcome"], len(server.seen)) == ("killed", 1)
    used = house.result()["usage"]
    assert used["estimated"] == used["input"] + used["output"] > 500
    assert "~ partly estimated" in " ".join(house.program("usage").out.split())


@slow
def test_subagents_and_servers_of_a_killed_run_are_gone_and_recorded(house: House, tmp_path: Path) -> None:
    """`kill -9`: no process is left, the record is sealed as ended, and the next run's conversation knows that it is over."""
    house.write(
        "subagents/slow.md", "---\ndescription: Takes its time.\nworkspace: {mode: shared}\n---\nTake your time.\n"
    )
    server_of = {"command": sys.executable, "args": [str(CHECKOUT / "tests/builtin/mcp/program.py")]}
    house.write("tools.json", json.dumps({"mcpServers": {"own": server_of}}))
    house.git("add", "-A")
    house.git("commit", "-qm", "the workspace")
    accepted(house.layout)
    child = steps("touch began; sleep 7213.5")
    begin = steps(
        calling("agent_spawn", {"agent": "slow", "task": "x", "background": True}),
        calling("own_child", {}),
        "sleep 7213.5",
    )
    go_on = steps(
        "", "", "", calling("task_list", {}), calling("task_output", {"id": "slow-1"}), "touch b.txt", Reply(DONE)
    )

    def brain(exchange: Exchange) -> Reply | None:
        parent = go_on if killed.exists() else begin
        return child(exchange) if "as its subagent" in exchange.text else parent(exchange)

    killed = tmp_path / "killed"
    with serving(brain) as server:
        Path(house.layout.path(names.CONFIG)).write_text(configured(server))
        role = house.begin_role("worker", "F-001")
        until(lambda: (house.tree / "began").exists() and len(running()) >= 2, 60)
        kill(house, role.pid)
        until(lambda: not running())
        until(lambda: not lease.alive(house.layout))  # its guardian has ended, too
        killed.touch()
        done = house.role("worker", "F-001")
    assert done.code == 0, done
    first, second = (row["run"] for row in house.ran())
    [task] = tasks.of_run(house.layout.run(first).tasks)
    assert (task.id, task.status, task.reason) == ("slow-1", "ended", "its run was cut off")
    assert runs.broken_seals(house.layout, 10) == []
    said = [one["text"] for one in log_of(house, second).messages() if one["role"] == "tool"]
    assert said[-3] == "slow-1: ended when the conversation was interrupted" and "cannot go on" in said[-2]


def running() -> list[str]:
    """The processes that the test above starts, and does not end."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        found += (
            [folder.name] if b"7213.5" in words or any(word.endswith(b"servers/program.py") for word in words) else []
        )
    return found


@slow
def test_a_run_that_is_killed_in_an_answer_goes_on(house: House, tmp_path: Path) -> None:
    """Only that answer is lost."""
    asked = tmp_path / "asked"

    def waits(handler: Handler, exchange: Exchange) -> bool:
        if exchange.turns == 1:
            asked.touch()
            time.sleep(60)
            return True
        return False

    with serving(steps("echo first > a.txt")) as server:
        server.trouble = waits
        Path(house.layout.path(names.CONFIG)).write_text(configured(server))
        role = house.begin_role("worker", "F-001")
        until(asked.exists, 60)
        kill(house, role.pid)
        server.trouble, server.brain = None, steps("", "touch b.txt", Reply(DONE))
        house.role("worker", "F-001")
    result = house.result()
    log = log_of(house, result["run"])
    assert result["outcome"] == "ok", result
    assert [one["role"] for one in log.request(1).messages] == ["user", "assistant", "tool", "user"]
    assert house.git("show", f"{result['commit']}:a.txt") == "first"


@slow
def test_a_run_that_ended_well_is_not_gone_on_with(house: House) -> None:
    """The next attempt is a new conversation."""
    with serving(lambda _: Reply(DONE)) as server:
        Path(house.layout.path(names.CONFIG)).write_text(configured(server))
        house.role("worker", "F-001")
        house.role("worker", "F-001", "--again")
        asked = [one.exchange for one in server.seen if one.exchange]
    assert [one.turns for one in asked] == [0, 0]


@slow
def test_no_tool_has_the_key(house: House) -> None:
    """Nor does a file of the run."""
    with serving(steps("env; cat /proc/$PPID/environ | tr '\\0' '\\n'", Reply(DONE))) as server:
        Path(house.layout.path(names.CONFIG)).write_text(configured(server, api_key_env="MY_OWN_KEY"))
        house.role("worker", "F-001", MY_OWN_KEY="sk-quite-secret")
    run = house.result()["run"]
    assert "PATH=" in log_of(house, run).messages()[2]["text"]
    for path in Path(house.layout.run(run).folder).iterdir():
        assert not path.is_file() or b"sk-quite-secret" not in path.read_bytes(), path


@slow
def test_the_todo_example_comes_to_done(tmp_path: Path) -> None:
    """Seven features, a second attempt and issues, from the spec, with two skills, knowledge, a subagent and a server."""
    pytest.importorskip("mcp_server_time", reason="it is in the dev extra: make setup")
    house = House(tmp_path, surroundings(tmp_path))
    todo_mission.lay(house.project, todo_mission.WORKSPACE)
    house.git("init", "-q", "-b", "main", "--template=")
    house.git("add", "-A")
    house.git("commit", "-qm", "the workspace")
    with serving(todo_mission.in_workspace()) as server:
        house.program("init")
        (house.state / "config.toml").write_text(configured(server) + with_python())
        assert "accepted: MCP server time: " in house.program("workspace", "accept").out
        words = [str(CHECKOUT / "run.sh")]
        done = subprocess.run(words, cwd=house.project, env=house.env, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "7 of 7 features passed" in done.stdout
    assert {row["agent"] for row in house.ran() if row["agents"]} == {"builtin"}
    run = next(row["run"] for row in house.ran() if row["feature"] == "F-001" and row["role"] == "worker")
    used_its_workspace(house, run)
    shown = house.program("replay", run, "--task", "reader-1", "--turn", "2", "--json")
    assert (shown.code, json.loads(shown.out)["again"]["equal"]) == (0, True), shown


def with_python() -> str:
    """The variable that the server of the example is started by."""
    return f"\n[agents.builtin.env]\nTIME_PYTHON = {json.dumps(sys.executable)}\n"


def used_its_workspace(house: House, run: str) -> None:
    """Each part of the example's workspace served this run: prompt, skills, subagent, server, rule; the task is sealed."""
    prompt = (house.state / "runs" / run / "prompt.md").read_text()
    for words in ("How we work here", "What there is to know", "- careful-files: ", "- unit-tests: "):
        assert words in prompt
    said = [one["text"] for one in log_of(house, run).messages() if one["role"] == "tool"]
    assert said[0].startswith("# Skill careful-files") and said[1].startswith("# Skill unit-tests")
    assert said[2].startswith("reader-1 answered:\n\nSPEC.md:") and "`add TEXT" in said[2]
    assert '"timezone": "Etc/UTC"' in said[3]
    assert "by the rule execute(git push*)" in said[4]
    [task] = tasks.of_run(house.layout.run(run).tasks)
    assert (task.id, task.status, task.turns) == ("reader-1", "ok", 2)
    row = next(row for row in house.ran() if row["run"] == run)
    assert row["usage"]["turns"] == len(log_of(house, run).turns) + task.turns
    log = turns.read(house.layout.turns(run, "reader-1"))
    assert log is not None and "How we work here" in log.request(1).system, "the instructions hold for subagents"
    paths = house.layout.run(run)
    before = runs.seal(paths)
    record = Path(tasks.path_of(paths.tasks, "reader-1"))
    record.write_bytes(record.read_bytes().replace(b'"ok"', b'"no"'))
    assert runs.seal(paths) != before == row["seal"]


def test_a_worker_uses_its_workspace(house: House) -> None:
    """The workspace of the todo example, in one run: in its prompt, as tools, and in the records."""
    pytest.importorskip("mcp_server_time", reason="it is in the dev extra: make setup")
    shutil.copytree(todo_mission.WORKSPACE, house.project, dirs_exist_ok=True)
    house.write("SPEC.md", (todo_mission.EXAMPLE / "SPEC.md").read_text())
    house.git("add", "-A")
    house.git("commit", "-qm", "the workspace")
    accepted(house.layout)

    def brain(exchange: Exchange) -> Reply | None:
        if todo_mission.SUBAGENT in exchange.text or len(exchange.results) < len(todo_mission.USES):
            return todo_mission.in_workspace()(exchange)
        return Reply("", "echo x > 1.txt") if len(exchange.results) == len(todo_mission.USES) else Reply(DONE)

    with serving(brain) as server:
        Path(house.layout.path(names.CONFIG)).write_text(configured(server) + with_python())
        done = house.role("worker", "F-001")
    assert done.code == 0, done
    used_its_workspace(house, house.result()["run"])
    time.sleep(1.1)
    pruned = house.program("gc", "--keep-days", "0")
    assert pruned.code == 0, pruned
    left = Path(house.layout.run(house.result()["run"]).tasks) / "reader-1"
    assert [path.name for path in left.iterdir()] == ["task.json"]


@slow
def test_doctor_tries_it(house: House) -> None:
    """One small real call: it answers, writes and runs a command."""

    def brain(exchange: Exchange) -> Reply:
        work = "echo written > try.txt; uname -s > uname.txt"
        return Reply("", work) if not exchange.turns else Reply("done")

    with serving(brain) as server:
        Path(house.layout.path(names.CONFIG)).write_text(configured(server))
        seen = house.program("doctor", "agents")
        done = house.program("doctor", "agents", "--try")
    for words in ("answers", "writes a file", "runs a command"):
        assert f"builtin: {words}\n" in done.out, done
    assert f"builtin: {version('pydantic-ai-slim')}; {MODELS['chat']}; no key needed" in seen.out, seen


def test_calls_that_a_model_writes_as_text_are_carried_out(house: House) -> None:
    """Each way of writing them, over a `kill -9`: the model gets its text back, the results as a message of the user, and each
    request can be made again."""
    begins = written("execute", command="echo once >> count.txt; touch began; sleep 100")
    first = f"<tool_call>\n{written('execute', command='echo 1 > a.txt')}\n</tool_call>"
    both = (
        f"```json\n{written('execute', command='touch b.txt; cat a.txt')}\n```\n```json\n{written('list_files')}\n```"
    )
    with serving(steps(Reply(first), Reply(begins))) as server:
        Path(house.layout.path(names.CONFIG)).write_text(configured(server))
        role = house.begin_role("worker", "F-001")
        until(lambda: (house.tree / "began").exists(), 60)
        kill(house, role.pid)
        server.brain = steps("", "", Reply(both), Reply(DONE))
        house.role("worker", "F-001")
        last = json.loads(server.seen[-1].body)["messages"]
    result = house.result()
    assert result["outcome"] == "ok" and house.git("show", f"{result['commit']}:count.txt") == "once", result
    assert [one["role"] for one in last[1:]] == ["user", *["assistant", "user"] * 3]
    assert [one["content"] for one in last if one["role"] == "assistant"] == [first, begins, both]
    assert "Look at what is there before you do it again" in last[5]["content"] and "a new run" in last[5]["content"]
    assert last[-1]["content"].count("Result of ") == 2 and "\n1\n" in last[-1]["content"]
    log = log_of(house, result["run"])
    assert "<tool_call>" not in house.read(f"runs/{house.ran()[0]['run']}/stream.jsonl"), "a call is not said"
    shown = house.program("replay", result["run"], "--turn", str(max(log.turns)), "--json")
    assert (shown.code, json.loads(shown.out)["again"]["equal"]) == (0, True), shown
    assert house.program("doctor").code == 0


def reply(text: str) -> Reply:
    """An answer that ends with a reply."""
    return Reply(f"Done.\n\n```json harness\n{text}\n```\n")


def told(house: House) -> list[str]:
    """What the model of the newest run was told besides its prompt and results."""
    return [one["text"] for one in log_of(house, house.result()["run"]).messages() if one["role"] == "user"][1:]


BAD, GOOD = '{"status": "done", "sumary": "x"}', '{"status": "implemented", "summary": "done"}'


@pytest.mark.parametrize("form", ["```json\n{}\n```", "{}"])
def test_a_reply_that_is_refused_is_corrected_in_the_same_conversation(house: House, form: str) -> None:
    """The refusal is the next message, as the tool `reply` gives it; each request can be made again."""
    with serving(steps("touch 1.txt", reply(BAD), Reply("So be it."), Reply(form.format(GOOD)))) as server:
        Path(house.layout.path(names.CONFIG)).write_text(configured(server))
        house.role("worker", "F-001")
        assert len(server.seen) == 4
    run = house.result()["run"]
    assert (house.result()["outcome"], house.result()["reason"], len(house.ran())) == ("ok", "", 1)
    assert "unknown key 'sumary'" in told(house)[0] and told(house) == [told(house)[0]] * 2
    (asked,) = [json.loads(line) for line in house.read(f"runs/{run}/asked.jsonl").splitlines()]
    assert (asked["verb"], asked["code"]) == ("reply", 0)
    shown = house.program("replay", run, "--turn", "4", "--json")
    assert (shown.code, json.loads(shown.out)["again"]["equal"]) == (0, True), shown
    assert house.program("doctor").code == 0


@pytest.mark.parametrize("form", ["```json\n{}\n```", "{}"])
def test_an_answer_that_is_json_alone_is_a_reply(house: House, form: str) -> None:
    """What is wrong with it is said, and it is taken once it is right; JSON in an answer with words is passed over."""
    blocked = '{"status": "blocked", "reason": "no key"}'
    with serving(steps(Reply(form.format(BAD)), Reply(form.format(blocked)))) as server:
        Path(house.layout.path(names.CONFIG)).write_text(configured(server))
        house.role("worker", "F-001")
        assert len(server.seen) == 2
        assert "unknown key 'sumary'" in told(house)[0]
        assert (house.feature().status, house.result()["reason"]) == ("blocked", "blocked: no key")
        server.brain = steps("touch 2.txt", Reply(f"It prints:\n\n```json\n{BAD}\n```\n"))
        house.role("worker", "F-002")
        assert (house.result()["outcome"], len(server.seen)) == ("ok", 4)


def test_after_three_refusals_a_run_ends_with_its_invalid_reply(house: House) -> None:
    """As it does where no model is told."""
    with serving(steps("touch 1.txt", *[reply(BAD)] * 9)) as server:
        Path(house.layout.path(names.CONFIG)).write_text(configured(server))
        house.role("worker", "F-001")
        assert len(server.seen) == 5
    result = house.result()
    assert result["outcome"] == "agent_error" and "unknown key 'sumary'" in result["reason"]
    assert len(told(house)) == 3 and house.feature().notes


def test_at_its_cap_a_run_is_told_nothing(house: House) -> None:
    """Its last answer counts, as it is."""
    with serving(steps("touch 1.txt", *[reply(BAD)] * 9)) as server:
        Path(house.layout.path(names.CONFIG)).write_text(configured(server, max_steps=2))
        house.role("worker", "F-001")
        assert len(server.seen) == 2
    assert "unknown key 'sumary'" in house.result()["reason"]


def test_what_was_accepted_in_a_run_is_not_asked_again(house: House) -> None:
    """Neither a reply by the tool, nor an answer without one where none is needed."""
    with serving(steps("touch 1.txt", calling("reply", {"text": GOOD}), reply(BAD))) as server:
        Path(house.layout.path(names.CONFIG)).write_text(configured(server))
        house.role("worker", "F-001")
        assert (house.result()["outcome"], len(server.seen)) == ("ok", 3)
        server.brain = steps("touch 2.txt", Reply("Done."))
        house.role("worker", "F-002")
        assert (house.result()["outcome"], len(server.seen)) == ("ok", 5)


def test_a_planner_without_a_reply_is_told_so_and_why_its_plan_is_refused(house: House) -> None:
    """In the words of the run's reason."""
    plan = {
        "features": [{"id": "F-003", "title": "Three", "claims": ["VAL-3"]}],
        "contract": [{"id": "VAL-3", "claim": "Three works", "checks": ["test -f 3.txt"]}],
    }
    green = json.dumps(plan).replace("test -f 3.txt", "true")
    with serving(steps(Reply("I am done."), reply(green), reply(json.dumps(plan)))) as server:
        Path(house.layout.path(names.CONFIG)).write_text(configured(server))
        house.role("planner")
        assert len(server.seen) == 3
    assert "The planner gave no reply" in told(house)[0] and "proves nothing" in told(house)[1]
    assert (house.result()["accepted"], house.feature("F-003").title) == (True, "Three")
    with serving(lambda _: Reply("I am done.")) as server:
        Path(house.layout.path(names.CONFIG)).write_text(configured(server))
        house.role("planner")
        assert len(server.seen) == 4
    assert (house.result()["outcome"], house.result()["reason"]) == ("agent_error", "The planner gave no reply")


def test_a_worker_that_did_nothing_about_red_checks_is_told_once(house: House) -> None:
    """What they printed; not on a first run, where it did something, or is blocked. If it still does nothing, the run ends."""
    with serving(steps(Reply(DONE))) as server:
        Path(house.layout.path(names.CONFIG)).write_text(configured(server) + '[roles.validator]\nagent = "none"\n')
        house.role("worker", "F-001")
        assert (house.result()["outcome"], len(server.seen)) == ("no_op", 1)
        assert house.role("validator", "F-001").code == 10
        house.role("worker", "F-001")
        assert (house.result()["outcome"], len(server.seen)) == ("no_op", 3)
        (text,) = told(house)
        assert "VAL-1: red (exit 1)" in text and "$ test -f 1.txt" in text and "changed nothing" in text
        house.role("validator", "F-001")
        server.brain = steps("touch 3.txt", Reply(DONE))
        house.role("worker", "F-001")
        assert (house.result()["outcome"], told(house)) == ("ok", [])
        house.role("validator", "F-001")
        server.brain = steps(reply('{"status": "blocked", "reason": "no"}'))
        house.role("worker", "F-001")
        assert (house.feature().status, told(house)) == ("blocked", [])


def test_a_run_that_is_killed_after_a_refusal_goes_on(house: House) -> None:
    """The refusal is in the conversation, and the next run gives the reply; nothing of the run before counts as its reply."""
    with serving(steps("touch 1.txt", reply(BAD), "touch began; sleep 100")) as server:
        Path(house.layout.path(names.CONFIG)).write_text(configured(server))
        role = house.begin_role("worker", "F-001")
        until(lambda: (house.tree / "began").exists(), 60)
        kill(house, role.pid)
        server.brain = steps("", "", "", "touch 2.txt", Reply("So be it."))
        house.role("worker", "F-001")
    result = house.result()
    assert (result["outcome"], result["reason"], len(told(house))) == ("ok", "", 2)
    assert "unknown key 'sumary'" in told(house)[0] and "a new run" in told(house)[1]
    assert house.program("replay", result["run"], "--turn", "2", "--json").code == 0
    assert house.program("doctor").code == 0


def test_a_mission_whose_replies_are_last_answers_is_played_back(tmp_path: Path) -> None:
    """A refused one before each: the playback needs no model, and finds the same."""
    house = House(tmp_path, surroundings(tmp_path))
    house.project.mkdir()
    house.git("init", "-q", "-b", "main", "--template=")
    house.write("SPEC.md", small_mission.SPEC)

    def brain(exchange: Exchange) -> Reply:
        role = list(small_mission.RUN.finditer(exchange.text))[-1]["role"]
        if exchange.turns == 0:
            return reply('{"nonsense": 1}')
        written = role == "worker" and exchange.turns == 1
        return Reply("", small_mission.WRITE) if written else reply(json.dumps(small_mission.REPLIES[role]))

    with serving(brain) as server:
        house.program("init")
        (house.state / "config.toml").write_text(configured(server))
        words = [str(CHECKOUT / "run.sh")]
        done = subprocess.run(words, cwd=house.project, env=house.env, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    played = house.program("replay", "--mission")
    assert (played.code, "not recorded" in played.out) == (0, False), played
