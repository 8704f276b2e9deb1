"""One run through its six steps: the prompt equals its manifest, signals settle, and the right reply counts."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.mission import mission, runs
from harness.state import files, names, objects
from tests.crash import sampled
from tests.missions import House, tagged, until
from tests.planned import reply

BLOCK = "```json harness\n{}\n```\n"
SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]


def blocked(reason: str) -> str:
    """A reply that blocks the feature on the other one."""
    return json.dumps({"status": "blocked", "reason": reason, "needs": ["F-002"]})


def under_way(house: House, *steps: dict[str, Any], session: bool = True) -> subprocess.Popen[bytes]:
    """A worker's run with these agent steps, once 1.txt exists."""
    house.script("worker", *steps)
    role = house.begin_role("worker", "F-001", session=session)
    until((house.tree / "1.txt").exists)
    return role


# the prompt


def test_the_prompt_is_the_concatenation_of_its_manifest(house: House) -> None:
    """Texts and objects in order: rebuilding the prompt never needs a renderer."""
    run = house.layout.run(house.work({"run": "echo 1 > 1.txt"})["run"])
    rows = json.loads(Path(run.manifest).read_text())
    rebuilt = b"".join(
        objects.get(house.layout, row["object"]) if "object" in row else row["text"].encode() for row in rows
    )
    assert rebuilt == Path(run.prompt).read_bytes()
    sources = [row["source"] for row in rows if "source" in row]
    assert sources[:2] == ["roles/common.md", "roles/worker.md"]
    assert ".harness/spec.md" in sources


def test_the_prompt_ends_in_the_runtime_context(house: House) -> None:
    """What differs between runs comes last, in this order, so that prefix caches work."""
    result = house.work({"say": "nothing"}, TRIGGER="manual", REASON="a person asked")
    text = house.prompt()
    lines = text[text.index("## Runtime context") :].split("\n")
    assert lines[:8] == [
        "## Runtime context",
        "- FEATURE_ID=F-001",
        "- TRIGGER=manual",
        "- REASON=a person asked",
        f"- Working directory: {house.tree}",
        f"- State directory: {house.state}",
        f"- Run ID: {result['run']}",
        f"- Harness command: {shlex.quote(house.layout.path(names.SHIM))} --run {result['run']}",
    ]


def test_the_same_disk_gives_the_same_prompt_but_for_the_runtime_context(house: House) -> None:
    """Neither the time nor the machine enters it."""
    prompts = []
    before = files.read(house.layout.path(names.FEATURES)) or b""
    for _ in range(2):
        Path(house.layout.path(names.FEATURES)).write_bytes(before)
        house.work({"say": "nothing"})
        prompts.append(house.prompt().split("## Runtime context")[0])
    assert prompts[0] == prompts[1]


# what the run prints


def test_a_run_says_one_line_about_itself(house: House) -> None:
    """Role, feature, outcome, commit, seconds."""
    house.script("worker", {"run": "echo 1 > 1.txt"})
    done = house.role("worker", "F-001")
    assert done.out.split()[:4] == ["worker", "F-001", "ok", house.head()[:10]]
    assert done.out.rstrip("\n").endswith(" s")
    assert (done.err, done.out.count("\n")) == ("", 1)


# signals


@pytest.mark.parametrize(("number", "code"), sampled(SIGNALS, lambda row: row[0] != signal.SIGINT))  # as a second one
def test_a_signal_ends_the_run_settled(house: House, number: int, code: int) -> None:
    """The process tree ends, the work is kept, the feature goes back without a try used, and the exit code is documented."""
    role = under_way(house, {"run": "echo 1 > 1.txt; (setsid sleep 90 &); sleep 90"})
    role.send_signal(number)
    assert role.wait(60) == code
    result, feature = house.result(), house.feature()
    assert (result["outcome"], result["reason"]) == ("killed", f"interrupted by signal {int(number)}")
    assert (feature.status, feature.attempts) == ("todo", 0)
    assert house.git("log", "-1", "--format=%s") == "wip(F-001): killed"
    assert tagged(mission.load(house.layout).id) == []
    assert runs.open_runs(house.layout) == []


def test_a_second_signal_changes_nothing(house: House) -> None:
    """Even after an impatient second signal the run is settled."""
    role = under_way(house, {"run": "echo 1 > 1.txt; sleep 90"})
    for _ in range(3):
        role.send_signal(signal.SIGINT)
    assert role.wait(60) == 130
    assert house.result()["outcome"] == "killed"


def test_an_interrupt_of_the_whole_group_is_settled_too(house: House) -> None:
    """Ctrl-C on a terminal reaches every process."""
    role = under_way(house, {"run": "echo 1 > 1.txt; sleep 90"})
    os.killpg(role.pid, signal.SIGINT)
    assert role.wait(60) == 130
    assert (house.result()["outcome"], house.feature().status) == ("killed", "todo")


def test_a_signal_during_the_checks_settles_the_validator(house: House) -> None:
    """The feature still waits for its validation, and no try is used."""
    house.lay(house.feature().replace(status="validating"), house.feature("F-002"))
    path = Path(house.layout.path(names.CONTRACT))
    path.write_text(path.read_text().replace("test -f 1.txt", "touch begun; sleep 90"))
    role = house.begin_role("validator", "F-001", session=True)
    until((house.tree / "begun").exists)
    role.send_signal(signal.SIGTERM)
    assert role.wait(60) == 143
    assert (house.result()["outcome"], house.feature().status, house.feature().attempts) == ("killed", "validating", 0)


# which reply counts


def test_harness_reply_comes_before_a_block(house: House) -> None:
    """The reply that was checked while the agent lived counts."""
    step = {"run": f"echo '{blocked('by command')}' | harness reply -"}
    house.work(step, {"say": BLOCK.format(blocked("by block"))})
    assert house.feature().last_note("needs") == {**(house.feature().last_note("needs") or {}), "text": "by command"}


def test_the_last_marked_block_wins_over_earlier_ones_and_plain_ones(house: House) -> None:
    """The block may be in any message."""
    plain = f"```json\n{blocked('plain')}\n```\n"
    house.work({"say": BLOCK.format(blocked("first")) + plain}, {"say": BLOCK.format(blocked("last"))}, {"say": plain})
    assert (house.feature().last_note("needs") or {})["text"] == "last"


def test_a_plain_block_that_fits_serves_where_none_is_marked(house: House) -> None:
    """Agents forget the info string; other JSON in the message is not a reply."""
    house.work({"say": f"```json\n{blocked('plain')}\n```\nand\n```json\n[1]\n```\n"})
    assert (house.feature().last_note("needs") or {})["text"] == "plain"


def test_a_broken_block_is_the_agents_failure_and_the_next_prompt_says_why(house: House) -> None:
    """It is never a disk error: the work is kept as cut work, and a try is used."""
    reason = ""
    for tries, block in enumerate(("{", '{"status": "finished"}', '{"status": "implemented", "colour": 1}'), start=1):
        result = house.work({"run": f"echo {tries} > 1.txt"}, {"say": BLOCK.format(block)})
        assert (result["outcome"], house.feature().status, house.feature().attempts) == ("agent_error", "todo", tries)
        assert reason in house.prompt()
        reason = result["reason"].split("\n")[-1]
        assert reason
    house.work({"run": "echo 4 > 1.txt"})
    assert reason in house.prompt()


def test_a_worker_without_a_block_has_implemented_what_it_changed(house: House) -> None:
    """A block is optional; without a change the checks decide all the same."""
    assert house.work({"run": "echo 1 > 1.txt"}, {"say": "done"})["outcome"] == "ok"
    assert house.work({"say": "done"}, feature="F-002")["outcome"] == "no_op"
    assert [house.feature(name).status for name in ("F-001", "F-002")] == ["validating", "validating"]


# outcomes and codes


@pytest.mark.parametrize(
    ("outcome", "by_hand", "in_loop", "attempts"),
    [("agent_error", 10, 0, 1), ("wall", 10, 0, 0), ("limit", 75, 0, 0), ("auth", 69, 69, 0), ("config", 69, 69, 0)],
)
def test_an_outcome_has_its_code_and_its_price(
    house: House, outcome: str, by_hand: int, in_loop: int, attempts: int
) -> None:
    """By hand a bad outcome is 10; the loop stops only on a login or setting error; cut work with a change is free."""
    house.script("worker", {"run": "date +%N > 1.txt"}, {"fail": outcome, "reason": "because"})
    assert house.role("worker", "F-001").code == by_hand
    assert house.role("worker", "F-001", HARNESS_LOOP=str(os.getpid())).code == in_loop
    assert {line["outcome"] for line in house.ran()} == {outcome}
    assert house.feature().attempts == 2 * attempts
    assert house.git("log", "-1", "--format=%s") == f"wip(F-001): {outcome}"


def test_a_third_cut_costs_a_try(house: House) -> None:
    """Two cuts are free if something changed."""
    for number in range(3):
        house.work({"run": f"echo {number} > 1.txt"}, {"fail": "wall", "reason": "too slow"})
    assert house.feature().attempts == 1


def test_cut_short_without_a_change_costs_a_try(house: House) -> None:
    """An agent that works for an hour and changes nothing has made no progress."""
    house.work({"fail": "wall", "reason": "too slow"})
    assert (house.feature().attempts, house.feature().status) == (1, "todo")


def test_a_users_own_role_runs_without_a_change_to_the_package(house: House) -> None:
    """Two files are enough."""
    house.role_files("helper")
    house.script("helper", {"say": "helped"})
    done = house.run([str(Path(__file__).parents[2] / "run.sh"), "helper"])
    assert (done.code, house.result()["role"], house.result()["outcome"]) == (0, "helper", "ok")
    assert "Help.\n" in house.prompt()


OF_ONES_OWN = """    print(run.reply, run.opened.role.name, run.opened.context.feature)
    run.outcome.reason = "wrote the manual"
    try:
        run.opened.context = None
    except AttributeError as fault:
        print(fault)
"""


def test_a_users_own_role_has_the_reply_and_decides_the_outcome(house: House) -> None:
    """As docs/contract.md says: `run.reply`, the frozen `run.opened`, and `run.outcome`."""
    house.role_files("helper")
    path = Path(house.layout.path(names.ROLES)) / "helper.py"
    path.write_text(path.read_text().replace("    pass\n", OF_ONES_OWN))
    house.script("helper", reply(notes=[{"tag": "TRICK", "text": "a"}]))
    out = house.role("helper", "F-001").out
    assert "{'notes': [{'tag': 'TRICK', 'text': 'a'}]} helper F-001" in out
    assert "OpenRun.context cannot be assigned: it is frozen" in out
    assert (house.result()["outcome"], house.result()["reason"]) == ("ok", "wrote the manual")


def test_what_stops_a_mission_at_once_is_told_whole(house: House) -> None:
    """The user has to fix a login or a setting: every word of the message is shown, on as many lines as it has."""
    why = f"Log in first: run 'agent login'. {'It says why at length. ' * 9}\nThen start again."
    for outcome in ("auth", "config"):
        house.script("worker", {"fail": outcome, "reason": why})
        out = house.role("worker", "F-001").out
        assert "".join(line.strip() for line in out.split("  ", 3)[-1].split("\n")).endswith("Then start again.")
        assert "It says why at length. " * 9 in out
        house.script("worker", {"fail": "agent_error", "reason": why})
        assert "…" in house.role("worker", "F-001").out


@pytest.mark.parametrize("word", ["x", "-1", "1.5", "9" * 5000])
def test_a_loop_that_is_no_process_is_a_usage_fault(house: House, word: str) -> None:
    """One line says what to do; nothing starts."""
    done = house.role("worker", "F-001", HARNESS_LOOP=word)
    assert (done.code, done.err.count("\n"), "unset HARNESS_LOOP" in done.err) == (64, 1, True), done
    assert not Path(house.layout.path(names.RUNS)).exists() or files.names(house.layout.path(names.RUNS)) == []


# an agent whose commands all fail

NO_SANDBOX = "Sandbox is enabled but failed to initialize: no bridge sockets"
IMPLEMENTED = '```json harness\n{"status": "implemented", "summary": "done"}\n```\n'


def failing(shape: str, *outputs: str) -> str:
    """A program with the events of this shape: a file that it reads, each command with this output and exit 1, and a reply."""
    rows: list[Any] = []
    for at, output in enumerate(outputs):
        if shape == "claude":
            seen = {"type": "tool_use", "name": "Read", "id": f"r{at}", "input": {"file_path": "main.py"}}
            used = {"type": "tool_use", "name": "Bash", "id": f"t{at}", "input": {"command": "true"}}
            results = [{"type": "tool_result", "tool_use_id": f"r{at}", "is_error": False, "content": "print('hello')"}]
            text = f"Exit code 1\n{output}"
            results += [{"type": "tool_result", "tool_use_id": f"t{at}", "is_error": True, "content": text}]
            rows += [{"type": "assistant", "message": {"id": f"m{at}", "content": [seen, used]}}]
            rows += [{"type": "user", "message": {"content": results}}]
        elif shape == "codex":
            item = {"id": f"i{at}", "type": "command_execution", "command": "true"}
            ended = {"exit_code": 1, "status": "failed", "aggregated_output": output}
            rows += [{"type": "item.started", "item": item}, {"type": "item.completed", "item": {**item, **ended}}]
        else:
            ended = {"status": "completed", "output": output, "metadata": {"exit": 1}}
            part = {"tool": "bash", "callID": f"c{at}", "state": {"input": {"command": "true"}, **ended}}
            rows += [{"type": "tool_use", "part": part}]
    rows += {
        "claude": [{"type": "result", "result": IMPLEMENTED, "usage": {"input_tokens": 9, "output_tokens": 9}}],
        "codex": [
            {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": IMPLEMENTED}},
            {"type": "turn.completed", "usage": {"input_tokens": 9, "output_tokens": 9}},
        ],
        "opencode": [{"type": "text", "part": {"text": IMPLEMENTED}}, {"type": "step_finish", "part": {}}],
    }[shape]
    lines = "\n".join(map(json.dumps, rows))
    return f"cat > /dev/null\n{{before}}\ncat <<'ROWS'\n{lines}\nROWS\n"


def play(house: House, shape: str, program: str, role: str = "worker") -> dict[str, Any]:
    """The result of a run whose agent is this program."""
    path = house.folder / "program.sh"
    path.write_text(program)
    command = json.dumps(["sh", str(path)])
    house.config('agent = "mine"', "[agents.mine]", f"command = {command}", f'format = "{shape}"')
    house.role(role, *(["F-001", "--again"] if role == "worker" else []))
    return house.result()


@pytest.mark.parametrize("shape", ["claude", "codex", "opencode"])
def test_a_run_whose_commands_all_fail_alike_ends_as_agent_error_with_that_line(house: House, shape: str) -> None:
    """If it changed nothing: an attempt is used, and nothing is validated. What else it printed, and what it read, may differ."""
    program = failing(shape, f"{NO_SANDBOX}\nfirst", f"\n{NO_SANDBOX}\nsecond")
    result = play(house, shape, program.replace("{before}", ""))
    assert (result["outcome"], result["reason"], house.feature().attempts) == ("agent_error", NO_SANDBOX, 1)
    assert (house.feature().status, house.feature().notes[-1]["text"]) == ("todo", f"agent_error: {NO_SANDBOX}")
    result = play(house, shape, program.replace("{before}", "touch 1.txt"))
    assert (result["outcome"], result["reason"]) == ("ok", "")


def test_a_run_whose_commands_fail_differently_has_only_changed_nothing(house: House) -> None:
    """As has one whose commands print nothing, one of whose commands works, or who says what blocks it."""
    for outputs in ((NO_SANDBOX, "another"), ("", "")):
        program = failing("codex", *outputs).replace("{before}", "")
        assert play(house, "codex", program)["outcome"] == "no_op"
    works = (
        failing("codex", NO_SANDBOX, NO_SANDBOX).replace("{before}", "").replace('"exit_code": 1', '"exit_code": 0', 1)
    )
    assert play(house, "codex", works)["outcome"] == "no_op"
    said = json.dumps(f"```json harness\n{blocked('no sandbox here')}\n```\n")
    program = failing("codex", NO_SANDBOX).replace("{before}", "").replace(json.dumps(IMPLEMENTED), said)
    assert play(house, "codex", program)["reason"].startswith("blocked, needs F-002")


def test_a_planner_whose_commands_all_fail_says_why(house: House) -> None:
    """In place of no reply."""
    program = failing("claude", NO_SANDBOX).replace("{before}", "").replace(json.dumps(IMPLEMENTED), '"I could not."')
    result = play(house, "claude", program, "planner")
    assert (result["outcome"], result["reason"]) == ("agent_error", NO_SANDBOX)
