"""run.sh, as a person or cron starts it: whole missions, one decision, roles by hand, signals, and the loop's lock."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import main
from harness.mission import features, runs
from harness.mission.features import Feature
from harness.state import files, names
from harness.state.layout import Layout
from tests import bash32
from tests.crash import TORTURE
from tests.missions import CHECKOUT, PROGRAM, House, heard, surroundings, tagged, until

RUN_SH = CHECKOUT / "run.sh"
TEXT = RUN_SH.read_text()


def working(house: House) -> bool:
    """Whether a worker's agent has begun."""
    return (house.tree / "begun").exists()


def sleeper(house: House) -> None:
    """A worker that begins and does not end."""
    house.script("worker", {"run": "touch begun; sleep 60"})


def test_its_header_begins_its_help(house: House) -> None:
    """`run.sh help` prints the comment at its top, then commands and roles."""
    done = house.run([str(RUN_SH), "help"])
    assert done.code == 0
    assert done.out.startswith("run.sh - the loop of a mission")
    assert "run.sh ROLE [FEATURE]" in done.out
    assert "set -u" not in done.out
    assert "\n  status " in done.out


def test_it_is_short_and_knows_no_role_by_name() -> None:
    """At most 120 lines; `harness next` names the role that is due."""
    body = "\n".join(line for line in TEXT.split("\n") if not line.startswith("#"))
    assert TEXT.count("\n") <= 120
    assert re.findall(r"\b(planner|worker|validator|curator)\b", body) == []


NOT_EVERYWHERE = (
    r"declare -A|\$\{\w+(,,|\^\^)|mapfile|readarray|\bjq\b|\bflock\b|\btimeout\b|readlink -f|sed -r|date -d"
)


def test_it_keeps_to_what_bash_3_2_and_any_unix_have() -> None:
    """No associative arrays, no case conversion, no mapfile; no jq, flock, timeout or GNU-only option."""
    assert re.findall(NOT_EVERYWHERE, TEXT) == []


@pytest.mark.skipif(not bash32.BASH.exists(), reason="no bash 3.2 is here; this builds one: make test-bash32")
@pytest.mark.parametrize("name", ["run.sh", "examples/demo.sh"])
def test_bash_3_2_itself_parses_it(name: str) -> None:
    """Under it all of run.sh's tests run by `make test-bash32`."""
    done = subprocess.run([bash32.BASH, "-n", CHECKOUT / name], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_it_has_every_command_of_the_door() -> None:
    """A command's name takes precedence over a role's, so run.sh must know all commands."""
    listed = re.search(r"^commands=' (.*) '$", TEXT, re.M)
    assert listed is not None
    assert tuple(listed[1].split()) == main.COMMANDS


@pytest.mark.parametrize("through", ["run.sh", "harness", "run.sh from a subfolder"])
def test_a_role_of_the_missions_own_comes_before_a_command(house: House, through: str) -> None:
    """The clash is named; without such a role, and for help, it is the command."""
    words = [sys.executable, "-P", str(PROGRAM)] if through == "harness" else [str(RUN_SH)]
    below = house.write("sub/x").parent if "sub" in through else None
    assert house.run([*words, "usage"], where=below).out.startswith("Nothing has run yet.")
    house.role_files("usage")
    house.script("usage", {"say": "helped"})
    done = house.run([*words, "usage"], where=below)
    assert (done.code, house.result()["role"]) == (0, "usage"), done
    assert "'usage' is a role of this mission here" in done.err
    assert house.run([*words, "usage", "--help"], where=below).out.startswith("Usage: harness usage")


def test_without_a_setup_it_says_how(house: House) -> None:
    """Exit 69 with the one command to run."""
    done = house.run([str(RUN_SH), "status"], env={"HARNESS_PYTHON": "/nowhere/python"})
    assert done.code == 69
    assert "make -C" in done.err


@pytest.mark.parametrize("kind", ["leads nowhere", "may not be run"])
def test_an_interpreter_that_this_user_cannot_run_is_told_apart(house: House, kind: str) -> None:
    """Another user ran the set-up, or its Python is gone: exit 69 with a different message."""
    python = house.folder / "python"
    if kind == "leads nowhere":
        python.symlink_to("/nowhere/bin/python3")
    else:
        python.touch(0o644)
    done = house.run([str(RUN_SH), "status"], env={"HARNESS_PYTHON": str(python)})
    assert (done.code, "make -C" in done.err) == (69, True)
    assert f"cannot run {python}" in done.err
    assert "not set up yet" not in done.err


def test_the_lock_of_the_loop_does_not_grow_with_the_starts(house: House) -> None:
    """It once doubled at every start: 755 MB after 25 of them."""
    (house.state / "STOP").touch()
    house.run([str(RUN_SH), "--once"])
    lock = house.state / "locks/loop"
    before = lock.stat().st_size
    hold = f"exec 9<>'{lock}'; exec '{sys.executable}' -P '{PROGRAM}' hold 9 --once"  # as run.sh takes it
    for _ in range(3):
        assert house.run(["bash", "-c", hold]).code == 0
    assert lock.stat().st_size <= max(before, 200)


def test_once_carries_out_one_decision(house: House) -> None:
    """And prints a line for the decision and one for the result."""
    house.script("worker", {"run": "touch 1.txt"})
    done = house.run([str(RUN_SH), "--once"])
    assert done.code == 0, done
    assert re.search(r"^> NEXT worker F-001\n  worker F-001 +ok [0-9a-f]{10} +\d+\.\d s$", done.out, re.M)
    assert len(house.ran()) == 1


def test_a_role_by_hand_ends_with_its_verdict(house: House) -> None:
    """10 if the receipts are red, 0 if they are green."""
    house.lay(Feature(id="F-001", title="Part one", claims=["VAL-1"], status="validating"))
    assert house.run([str(RUN_SH), "validator", "F-001"]).code == 10
    house.write("1.txt")
    house.git("add", "1.txt")
    house.git("commit", "-q", "-m", "part one")
    house.lay(Feature(id="F-001", title="Part one", claims=["VAL-1"], status="validating"))
    assert house.run([str(RUN_SH), "validator", "F-001"]).code == 0


def test_a_role_of_ones_own_runs_without_a_change_to_the_package(house: House) -> None:
    """Two files in .harness/roles."""
    house.role_files("documenter")
    house.script("documenter", {"say": "It is documented."})
    done = house.run([str(RUN_SH), "documenter"])
    assert done.code == 0, done
    assert house.result()["role"] == "documenter"


def test_the_role_of_the_documentation_runs_as_it_is_written(house: House) -> None:
    """Two columns of docs/contract.md as two files: it prints what its agent said, and not None."""
    page = (
        (CHECKOUT / "docs/contract.md")
        .read_text()
        .split("    # .harness/roles/documenter.md")[1]
        .split("\n\nTracked")[0]
    )
    columns = [(line[4:49].rstrip(), line[49:]) for line in page.split("\n")[1:]]
    words, code = ("\n".join(column) for column in zip(*columns, strict=True))
    folder = house.state / "roles"
    folder.mkdir()
    (folder / "documenter.md").write_text(words)
    (folder / "documenter.py").write_text(code + "\n")
    house.script("documenter", {"say": "It is documented."})
    done = house.run([str(RUN_SH), "documenter"])
    assert (done.code, "It is documented.\n" in done.out, "None" in done.out) == (0, True, False), done
    house.script("documenter", {"say": '```json harness\n{"pages": 3}\n```\n'})
    assert '{"pages": 3}' in house.role("documenter").out


def test_an_unknown_word_names_roles_and_commands(house: House) -> None:
    """Exit 64, and nothing has run."""
    done = house.run([str(RUN_SH), "wroker"])
    assert done.code == 64
    assert "worker" in done.err
    assert "status" in done.err


def test_it_works_through_a_link_and_in_the_environment_of_cron(house: House) -> None:
    """PATH=/usr/bin:/bin, no locale, a link with another name."""
    link = house.folder / "clock"
    link.symlink_to(RUN_SH)
    poor = {"PATH": "/usr/bin:/bin", "HOME": str(house.folder), "HARNESS_PYTHON": sys.executable}
    done = subprocess.run([str(link), "next"], cwd=house.project, env=poor, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "NEXT worker F-001\n")


def test_the_second_clock_says_who_holds_the_first_and_ends(house: House) -> None:
    """Exit 75 with pid, run and since."""
    sleeper(house)
    first = house.loop()
    until(lambda: working(house))
    second = house.run([str(RUN_SH)])
    first.terminate()
    first.communicate()
    assert second.code == 75
    assert re.search(rf"pid {first.pid}, since \S+Z, run \d+-worker-F-001", second.err)


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
def test_a_signal_ends_the_run_under_way_with_everything_it_started(house: House, signum: int, code: int) -> None:
    """The run is settled as killed, its work is kept, none of its processes survives; the next start continues."""
    house.script("worker", {"run": "echo half > half.txt; touch begun; sleep 60 & sleep 60"})
    clock = house.loop()
    until(lambda: working(house))
    clock.send_signal(signum)
    _, said = clock.communicate(timeout=60)
    assert (clock.returncode, "stopped; the same command goes on\n" in said) == (code, signum == signal.SIGINT), said
    assert house.result()["outcome"] == "killed"
    assert house.git("show", "--stat", "--format=%s").startswith("wip(F-001): killed")
    assert tagged(json.loads(house.read("mission.json"))["id"]) == []
    house.script("worker", {"run": "touch 1.txt"})
    assert house.run([str(RUN_SH), "--once"]).code == 0
    assert house.feature().status == "validating"


def test_ctrl_c_while_modules_load_prints_no_traceback(house: House) -> None:
    """Neither in the program that looks what is due, nor in a run that starts."""
    pressed = """import os, runpy, signal, sys
class Pressed:
    def find_spec(self, name, path, target=None):
        os.kill(os.getpid(), signal.SIGINT * (name == "harness.base.errors"))
sys.meta_path.insert(0, Pressed())
sys.argv[0] = ""
runpy.run_module("harness.run", run_name="__main__")"""
    begun = subprocess.run([sys.executable, "-c", pressed], cwd=house.project, env=house.env, preexec_fn=heard,
                           capture_output=True, text=True, check=False)  # fmt: skip
    assert (begun.returncode, begun.stderr) == (-signal.SIGINT, "")


def test_the_loop_goes_on_without_a_reader(house: House) -> None:
    """Such as `head -1`: with lanes too, where runs print first; nothing is said about the pipe."""
    house.script("worker", {"run": "touch 1.txt"})
    for env in ({}, {"HARNESS_LANE": "1"}):
        read, written = os.pipe()
        os.close(read)
        done = subprocess.run([str(RUN_SH), "--once"], cwd=house.project, env={**house.env, **env}, check=False,
                              stdin=subprocess.DEVNULL, stdout=written, stderr=subprocess.PIPE, text=True)  # fmt: skip
        os.close(written)
        assert (done.returncode, done.stderr) == (0, "")
    assert [line["outcome"] for line in house.ran()] == ["ok", "ok"]


def test_lanes_end_with_their_time_though_a_run_never_claimed(house: House) -> None:
    """The lane that waits for the others lets them decide."""
    house.own()
    folder = Path(house.layout.path(names.ROLES))
    folder.mkdir()
    (folder / "worker.py").write_text("import time\n\ntime.sleep(2)\nraise SystemExit(75)\n")
    assert house.run([str(RUN_SH), "--lanes", "2", "--for", "2s"]).code == 75


KILLED = "harness: the run was killed (signal 9); the next start settles it and continues\n"


@pytest.mark.parametrize("words", [[], ["--once"]])
def test_a_run_that_is_killed_ends_it_with_75_and_a_sentence(house: House, words: list[str]) -> None:
    """As the kernel does when memory runs out. The run is settled, none of its processes survives, the next start continues."""
    house.script("worker", {"run": "echo half > half.txt; (setsid sleep 60 &); touch begun; sleep 60"})
    clock = house.loop(*words)
    until(lambda: working(house))
    os.kill(files.Lock(house.layout.path(names.MISSION_LOCK)).holder()["pid"], signal.SIGKILL)
    _, said = clock.communicate(timeout=60)
    assert (clock.returncode, said) == (75, KILLED)
    assert_it_is_settled(house)
    house.script("worker", {"run": "touch 1.txt"})
    assert house.run([str(RUN_SH), "--once"]).code == 0


@pytest.mark.parametrize("words", [[], ["--once"], ["worker", "F-001"]])
def test_a_guardian_that_is_killed_costs_no_try_and_ends_it_with_75(house: House, words: list[str]) -> None:
    """The agent is not to blame, and its program is there: the run ends as killed, and its work is kept."""
    house.script("worker", {"run": "echo half > half.txt; touch begun; sleep 60"})
    clock = house.loop(*words)
    until(lambda: working(house))
    os.kill(guardian_of(files.Lock(house.layout.path(names.MISSION_LOCK)).holder()["pid"]), signal.SIGKILL)
    _, said = clock.communicate(timeout=60)
    assert (clock.returncode, said) == (75, "" if words[1:] else KILLED)
    assert [(line["outcome"], line["reason"][:12]) for line in house.ran()] == [("killed", "the guardian")]
    assert house.feature().attempts == 0
    assert house.git("show", "--stat", "--format=%s").startswith("wip(F-001): killed")
    assert_it_is_settled(house)


def test_a_guardian_of_a_check_that_is_killed_rejects_no_plan(unbegun: House) -> None:
    """Nor does a validator's check count as red for it."""
    plans(unbegun)
    clock = unbegun.loop("--once")
    until(lambda: bool(list(unbegun.folder.glob("temporary/*-empty-*/began"))))
    os.kill(guardian_of(files.Lock(unbegun.layout.path(names.MISSION_LOCK)).holder()["pid"]), signal.SIGKILL)
    clock.communicate(timeout=60)
    assert clock.returncode == 75
    assert [(line["outcome"], line["totals"]["rejected"]) for line in unbegun.ran()] == [("killed", 0)]
    assert os.listdir(unbegun.folder / "temporary") == []


def plans(house: House) -> None:
    """A mission whose planner proposes a check that does not end."""
    house.harness("init")
    plan = {
        "features": [{"id": "F-001", "title": "Part one", "claims": ["VAL-1"]}],
        "contract": [{"id": "VAL-1", "claim": "It works", "checks": ["touch began; sleep 60"]}],
    }
    house.config('agent = "scripted"', 'confine = "off"')
    house.script("planner", {"say": f"```json harness\n{json.dumps(plan)}\n```"})


def test_a_planner_that_is_killed_leaves_no_temporary_folder(unbegun: House) -> None:
    """It and the loop are killed in a terminal, which has a temporary folder of its own; cron, without one, starts the next."""
    plans(unbegun)
    own = unbegun.folder / "terminal"
    own.mkdir()
    clock = subprocess.Popen([str(RUN_SH)], cwd=unbegun.project, env={**unbegun.env, "TMPDIR": str(own)})
    until(lambda: bool(list(own.glob("*-empty-*/began"))))
    os.kill(clock.pid, signal.SIGKILL)
    os.kill(files.Lock(unbegun.layout.path(names.MISSION_LOCK)).holder()["pid"], signal.SIGKILL)
    clock.wait()
    assert os.listdir(own) != []
    (unbegun.state / "PAUSE").touch()
    until(lambda: unbegun.run([str(RUN_SH)]).code == 9 and bool(unbegun.ran()))
    assert (os.listdir(own), os.listdir(unbegun.folder / "temporary")) == ([], [])


@pytest.mark.parametrize("words", [["check", "VAL-1"], ["verify"]])
def test_a_check_by_hand_that_is_killed_leaves_no_temporary_folder(house: House, words: list[str]) -> None:
    """It is no run, so nothing is settled; the next start removes what it left."""
    text = house.read("validation-contract.md").replace("test -f 1.txt", 'touch "$TMPDIR/began"; sleep 60')
    (house.state / "validation-contract.md").write_text(text)
    check = house.loop(*words)
    place = house.folder / "temporary"
    until(lambda: bool(list(place.glob("harness-*/began"))))
    check.kill()
    check.communicate()
    assert os.listdir(place) != []
    (house.state / "PAUSE").touch()
    assert house.run([str(RUN_SH)]).code == 9
    assert os.listdir(place) == []


def guardian_of(pid: int) -> int:
    """The process that watches the program of a run: the only child that has one of its own."""
    (found,) = [child for child in children(pid) if children(child)]
    return found


def children(pid: int) -> list[int]:
    """The children of a process."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


PYTHON_OF_A_KILLED_COMMAND = """#!/bin/bash
# An interpreter in which one of our commands is killed.
for word; do if [ "$word" = {command} ]; then kill -9 $$; fi; done
exec "{python}" "$@"
"""


@pytest.mark.parametrize("command", ["init", "hold", "next"])
def test_a_command_of_its_own_that_is_killed_ends_it_with_75_and_a_sentence(house: House, command: str) -> None:
    """137 is in no table; and cron, which knows 75, tries again."""
    python = house.folder / "python"
    python.write_text(PYTHON_OF_A_KILLED_COMMAND.format(command=command, python=sys.executable))
    python.chmod(0o755)
    done = house.run([str(RUN_SH)], env={"HARNESS_PYTHON": str(python)})
    assert done.code == 75
    assert "was killed (signal 9); the next start settles it and continues\n" in done.err


KILL_ROLE = "kill -9 $(ps -o ppid= -p $PPID)"  # the guardian is between them


def test_a_run_that_its_agent_kills_is_settled_as_well(unconfined: House) -> None:
    """Only an agent that is not confined can."""
    unconfined.script("worker", {"run": f"echo half > half.txt; (setsid sleep 60 &); {KILL_ROLE}; sleep 60"})
    done = unconfined.run([str(RUN_SH), "--once"])
    assert (done.code, done.err) == (75, KILLED)
    assert_it_is_settled(unconfined)


def test_an_agent_behind_glass_cannot_kill_its_run(house: House) -> None:
    """It sees no process but its own."""
    house.script("worker", {"run": f"touch 1.txt; {KILL_ROLE} || kill -9 -1 || touch 2.txt"})
    assert house.run([str(RUN_SH), "--once"]).code == 0
    assert [line["outcome"] for line in house.ran()] == ["agent_error"]


def assert_it_is_settled(house: House) -> None:
    """The first step of the next start settles the killed run, none of its processes survives, and the feature is due again."""
    until(lambda: files.is_free(house.layout.path(names.MISSION_LOCK)))  # its guardian may hold it for a moment
    assert house.program("init", "--quietly").code == 0
    assert [line["outcome"] for line in house.ran()] == ["killed"]
    assert tagged(json.loads(house.read("mission.json"))["id"]) == []
    assert house.harness("next").out == "NEXT worker F-001\n"


def test_a_run_by_hand_in_between_does_not_stop_the_clock(house: House) -> None:
    """It goes on beside the run; what that one is about is not due meanwhile."""
    house.script("worker", {"run": "touch begun; until test -e enough; do sleep 0.05; done; touch 1.txt"})
    hand = house.begin_role("worker", "F-001")
    until(lambda: working(house))
    house.script("worker", {"run": "touch 2.txt"})
    done = house.run([str(RUN_SH), "--once"])
    assert (done.code, "> NEXT worker F-002" in done.out) == (0, True), done
    alone = house.run([str(RUN_SH), "worker", "F-001"])
    (house.tree / "enough").touch()
    hand.wait()
    assert (alone.code, "Another run holds feature F-001" in alone.err) == (75, True), alone
    assert [house.feature(name).status for name in ("F-001", "F-002")] == ["validating", "validating"]


def test_stop_and_pause_end_it_with_nine(house: House) -> None:
    """And print how to continue."""
    for name, word in (("STOP", "STOPPED"), ("PAUSE", "PAUSED")):
        (house.state / name).touch()
        done = house.run([str(RUN_SH)])
        (house.state / name).unlink()
        assert done.code == 9
        assert done.out.startswith(word)


@pytest.mark.parametrize(
    ("cap", "word", "code"),
    [
        ("max_cost_usd = 1.0", "BUDGET cost", 6),
        ("max_tokens = 100", "BUDGET tokens", 6),
        ("max_runs = 1", "BUDGET runs", 5),
        ("max_hours = 0.00001", "BUDGET hours", 5),
    ],
)
def test_a_cap_ends_it_after_the_curator(house: House, cap: str, word: str, code: int) -> None:
    """Code alone compacts the notes although the cap is reached; a new start spends nothing more."""
    house.config('agent = "scripted"', "[limits]", cap)
    house.script("worker", {"run": "harness note hello"}, {"usage": {"cost_usd": 2.0, "input": 500}})
    done = house.run([str(RUN_SH)])
    assert done.code == code, done
    assert [(line["role"], line["trigger"], line["agent"]) for line in house.ran()] == [
        ("worker", "", "scripted"),
        ("curator", "leaving", ""),
    ]
    assert json.loads(house.read("memory/curated.json"))["folded"] == 1
    assert f"\n{word}  " in done.out
    key = "max_cost_usd" if word == "BUDGET cost" else word.replace("BUDGET ", "max_")
    assert f": raise {key} under [limits] in .harness/config.toml" in done.out
    again = house.run([str(RUN_SH)])
    assert (again.code, len(house.ran())) == (code, 2)


WAITS = r"> WAIT until \d{4}-\d\d-\d\d \d\d:\d\d \(in [78] d \d+ h\) "


def test_after_a_limit_it_waits_and_goes_on_by_itself(house: House) -> None:
    """One line states the end and the reason of the wait; another agent in config.toml ends it."""
    house.script("worker", {"fail": "limit", "until": 5_000_000_000, "reason": "full until 14:05"})
    clock = house.loop()
    assert clock.stdout is not None
    told = [clock.stdout.readline() for _ in range(4)]
    assert house.harness("next").out == f"WAIT {house.result()['until']} full until 14:05\n"
    assert told[3] == "  Another agent for the worker in .harness/config.toml ends the wait.\n"
    assert "rate limited by the agent's vendor until" in " ".join(house.harness("status").out.split())
    command = 'command = ["sh", "-c", "touch 1.txt begun; until test -e enough; do sleep 0.05; done"]'
    house.config('agent = "mine"', "[agents.mine]", command)
    until(lambda: working(house))
    (house.state / "STOP").touch()
    (house.tree / "enough").touch()
    out, _ = clock.communicate(timeout=60)
    assert clock.returncode == 9, out
    lines = "".join([*told, out]).split("\n")
    first, wait, last = [line for line in lines if line.startswith("> ")]
    assert (first, last) == ("> NEXT worker F-001", "> NEXT worker F-001")
    assert re.fullmatch(WAITS + "full until 14:05", wait)
    assert house.ran()[-1]["agent"] == "mine"


def test_one_decision_after_a_limit_is_to_come_again(house: House) -> None:
    """Exit 75, with the line, in local time and words; no role starts."""
    house.work({"fail": "limit", "until": 5_000_000_000})
    done = house.run([str(RUN_SH), "--once"])
    assert done.code == 75
    assert re.fullmatch(WAITS + "scripted", done.out.split("\n")[0])
    assert len(house.ran()) == 1


@pytest.mark.parametrize("outcome", ["auth", "config"])
def test_an_agent_that_a_person_must_mend_ends_it_at_once(house: House, outcome: str) -> None:
    """Exit 69 after one run, with the full remedy, and no attempt used."""
    why = f"The login has run out. {'It says so at length. ' * 9}Run: agent login"
    house.script("worker", {"fail": outcome, "reason": why})
    done = house.run([str(RUN_SH)])
    assert done.code == 69
    assert why in done.out
    assert (len(house.ran()), house.feature().attempts) == (1, 0)


def test_money_is_spoken_of_before_it_is_spent(house: House) -> None:
    """The first start reports a real agent without a cap, or without a cost that can be counted; a later one another agent."""
    house.config('agent = "mine"', "[agents.mine]", 'command = ["true"]')
    (house.state / "STOP").touch()
    lines = house.run([str(RUN_SH)]).out.split("\n")
    assert lines[0].startswith("note: mine may cost money: set max_cost_usd")
    assert "mine reports no cost" in lines[0]
    assert lines[1].startswith("STOPPED")
    assert house.program("init", "--quietly").out == ""
    house.config('agent = ["mine", "yours"]', *(f'[agents.{name}]\ncommand = ["true"]' for name in ("mine", "yours")))
    assert house.program("init", "--quietly").out.startswith("note: mine, yours may cost money")


def test_three_plans_that_do_not_land_end_with_seven(unbegun: House) -> None:
    """The block of every ending, and an escalation that a person can answer."""
    (unbegun.project / "playbooks").mkdir()
    (unbegun.project / "playbooks/planner.md").write_text('```json harness\n{"features": [], "contract": []}\n```\n')
    done = unbegun.run([str(RUN_SH)])
    assert done.code == 7, done
    assert done.out.count("> NEXT planner") == 3
    assert "\nESCALATE plan  " in done.out and "\nwhy       " in done.out and "\nnext      " in done.out
    assert "kind: plan" in unbegun.read("escalation.md")
    assert unbegun.harness("escalation", "answer", "look at the spec").code == 0
    assert unbegun.harness("next").out == "NEXT planner\n"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> House:
    """The example mission, taken to DONE by run.sh on a copy."""
    return example(tmp_path_factory.mktemp("demo"))


def example(folder: Path, *words: str) -> House:
    """The example mission at DONE: run.sh with these words took a copy there."""
    house = House(folder, surroundings(folder))
    shutil.copytree(CHECKOUT / "examples" / "todo", house.project)
    house.git("init", "-q", "-b", "main", "--template=")
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "begin")
    done = subprocess.run(
        [str(RUN_SH), *words],
        cwd=house.project,
        env=house.env,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "said").write_text(done.stdout)
    return house


def test_the_example_mission_gets_to_done(demo: House) -> None:
    """Every feature passes, in a fresh clone too; run.sh reports what is proven and how to merge."""
    said = (demo.folder / "said").read_text()
    assert {feature.status for feature in features.load(demo.layout)} == {"passed"}
    assert re.search(r"^DONE  my-project-[0-9a-f]{6}: 7 of 7 features passed$", said, re.M)
    assert "git switch main && git merge harness/my-project-" in said
    assert demo.git("status", "--porcelain") == ""


def test_one_feature_fails_its_first_validation_and_passes_the_second(demo: House) -> None:
    """Both have receipts."""
    judged = [line["verdict"] for line in demo.ran() if line["role"] == "validator" and line["feature"] == "F-003"]
    assert judged == ["red", "green"]


def test_one_feature_is_blocked_on_another_and_comes_back(demo: House) -> None:
    """It needs an undeclared feature, and continues once that has passed."""
    order = [
        (line["role"], line["feature"]) for line in demo.ran() if line["verdict"] == "green" or line["role"] == "worker"
    ]
    first = order.index(("worker", "F-004"))
    again = order.index(("worker", "F-004"), first + 1)
    assert ("validator", "F-006") in order[first:again]
    assert ("validator", "F-004") in order[again:]


def test_one_red_check_is_found_by_the_validators_aim(demo: House) -> None:
    """It joins the contract as an adversarial check, and the feature must satisfy it from then on."""
    rows = [json.loads(line) for line in demo.read("contract-log.jsonl").split("\n") if line]
    aimed = [row for row in rows if row["verb"] == "aim"]
    assert [row["claim"] for row in aimed] == ["VAL-FIND-001"]
    assert aimed[0]["check"]["run"] in demo.read("validation-contract.md")


def test_what_two_workers_found_out_may_go_to_the_identity(demo: House) -> None:
    """The same lesson on two features, in other words, is one that later missions get once a person notes it."""
    assert not (demo.identity / "worker.md").exists()
    said = [row["text"] for row in map(json.loads, (demo.identity / "evidence.jsonl").read_text().splitlines())]
    assert sum("mktemp -d" in text for text in said) == 2
    assert any(
        "1 may go to an identity once you note it, too" in demo.result(row["run"])["reason"] for row in demo.ran()
    )


def test_every_entry_is_accounted_for(demo: House) -> None:
    """The archive has each once, raw.md the last ten, and memory is within its bounds."""
    folded = json.loads(demo.read("memory/curated.json"))["folded"]
    rows = [json.loads(line) for line in demo.read("memory/archive.jsonl").split("\n") if line]
    assert [row["seq"] for row in rows if "seq" in row] == list(range(folded))
    assert demo.read("memory/raw.md").count("\n") == 10
    assert demo.read("memory/summary.md").count("\n") <= 40
    assert demo.read("memory/MEMORY.md").count("\n") <= 200


@pytest.mark.skipif(not TORTURE, reason="half a minute: HARNESS_TORTURE=1")
def test_eight_lanes_end_where_one_does(demo: House, tmp_path: Path) -> None:
    """The same files, and each entry is in memory once: those of workers and planner are the same, whoever came first."""
    eight = example(tmp_path, "--lanes", "8")
    test_the_example_mission_gets_to_done(eight)
    test_every_entry_is_accounted_for(eight)
    test_one_commit_a_worker_names_its_run(eight)
    test_nothing_was_tampered_with_and_nothing_is_left_over(eight)
    assert eight.git("rev-parse", "HEAD^{tree}") == demo.git("rev-parse", "HEAD^{tree}")
    assert entries(eight) == entries(demo)
    assert len(entries(demo)) > 10


def entries(house: House) -> set[str]:
    """Those of planner and workers without their times, from archive and raw.md, whose last ones are in both."""
    rows = [json.loads(line) for line in house.read("memory/archive.jsonl").split("\n") if line]
    lines = [str(row["entry"]) for row in rows if "seq" in row] + house.read("memory/raw.md").split("\n")
    return {line.partition("] ")[2] for line in lines if re.match(r"\[\S+] (planner|worker) ", line)}


def test_every_prompt_that_fired_can_be_rebuilt_byte_for_byte(demo: House) -> None:
    """The parts in the manifest, joined, are the prompt."""
    from harness.state import objects

    for run_id in os.listdir(demo.layout.path(names.RUNS)):
        paths = demo.layout.run(run_id)
        rows = json.loads(Path(paths.manifest).read_text())
        parts = [row["text"].encode() if "text" in row else objects.get(demo.layout, row["object"]) for row in rows]
        assert b"".join(parts) == Path(paths.prompt).read_bytes()


def test_one_commit_a_worker_names_its_run(demo: House) -> None:
    """The trailer leads from the history to the run's folder."""
    named = re.findall(r"^Harness-Run: (\S+)$", demo.git("log", "--format=%B"), re.M)
    commits = [line["run"] for line in demo.ran() if line["commit"]]
    assert sorted(named) == sorted(commits)


def test_nothing_was_tampered_with_and_nothing_is_left_over(demo: House) -> None:
    """doctor finds nothing bad, no lock of a run is left, no process survives."""
    done = demo.run([str(RUN_SH), "doctor"])
    assert done.code == 0, done
    assert runs.open_runs(Layout(str(demo.project))) == []
    assert tagged(json.loads(demo.read("mission.json"))["id"]) == []


def test_a_changed_spec_makes_the_planner_due_again(demo: House) -> None:
    """Also after DONE: a mission gets its next request this way."""
    path = demo.project / "SPEC.md"
    text = path.read_text()
    path.write_text(text + "\n## More\n\nOne thing more.\n")
    due = demo.harness("next").out
    path.write_text(text)
    assert due == "NEXT planner\n"
    assert demo.harness("next").out == "DONE\n"


def test_a_folder_may_come_before_everything(house: House) -> None:
    """The loop, a role and a command, from elsewhere, as if they were started there; a relative path of run.sh, too."""
    house.script("worker", {"run": "touch 1.txt"})
    elsewhere = house.folder / "elsewhere"
    elsewhere.mkdir()
    done = house.run([str(RUN_SH), "-C", str(house.project), "worker", "F-001"], where=elsewhere)
    assert (done.code, house.feature().status) == (0, "validating"), done
    done = house.run([str(RUN_SH), "-C", "../my project", "next"], where=elsewhere)
    assert (done.code, done.out) == (0, "NEXT validator F-001\n"), done
    (house.state / "STOP").touch()
    done = house.run([str(RUN_SH), "-C", "../my project"], where=elsewhere)
    assert (done.code, "run.sh -C '../my project' resume" in done.out) == (9, True), done
    done = house.run([str(RUN_SH), "-C"], where=elsewhere)
    assert (done.code, "There is no folder ''" in done.err) == (64, True)


def test_a_subfolder_works_on_the_mission_above_it(house: House) -> None:
    """Commands that read say nothing more; what starts a run says where. `init` is about the folder itself."""
    deep = house.write("a/b/file").parent
    house.script("worker", {"run": "touch 1.txt"})
    assert house.run([str(RUN_SH), "next"], where=deep).out == "NEXT worker F-001\n"
    done = house.run([str(RUN_SH), "status"], where=deep)
    assert (done.out, done.err) == (house.harness("status").out, "")
    done = house.run([str(RUN_SH), "--once"], where=deep)
    assert (done.code, done.err) == (0, f"harness: the mission is in {house.project}\n")
    assert house.feature().status == "validating"
    done = house.run([str(RUN_SH), "init"], where=deep)
    assert (done.code, (deep / ".harness").exists()) == (64, False)


def test_a_shell_that_asks_for_candidates_starts_nothing(house: House) -> None:
    """Neither here nor in a subfolder, whatever it asks."""
    house.script("worker", {"run": "touch 1.txt"})
    deep = house.write("a/file").parent
    for where, asked in ((house.project, "bash_complete"), (deep, "nonsense")):
        env = {"_HARNESS_COMPLETE": asked, "COMP_WORDS": "run.sh ", "COMP_CWORD": "1"}
        house.run([str(RUN_SH)], where=where, env=env)
    assert house.ran() == []
