"""The log of runs: what agents say and do, as it comes, of one run or of the whole mission."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from harness.mission import runs
from harness.state import names
from tests.missions import PROGRAM, House, until

WORK = {"run": "echo 1 > 1.txt; echo out"}
WAIT = "for n in $(seq 1200); do test -e go && break; sleep 0.05; done"
SLOW = ("bash", "-c", f"echo one; {WAIT}; echo two")


def test_a_log_is_readable_and_no_json(house: House) -> None:
    """Messages, actions and results of the agent, with seconds, below the name of the run; the newest one by default."""
    run_id = house.work(WORK, {"say": "all\ndone"})["run"]
    first, *lines = house.harness("log").out.split("\n")[:-1]
    assert first == f"== {run_id}  attempt 1 of 3"
    assert [line.split(maxsplit=1)[1][:8] for line in lines] == ["does ech", "| out", "says all", "says don"]
    assert house.harness("log", run_id).out.split("\n")[1:-1] == lines
    assert house.harness("log", "nothing").code == 64


def test_before_the_first_run_there_is_no_log(house: House) -> None:
    """The message says so."""
    done = house.harness("log")
    assert (done.code, done.err) == (64, "harness: Nothing has run yet.\n")


def test_a_followed_log_goes_on_until_the_run_is_over(house: House) -> None:
    """It shows new lines, and ends by itself."""
    go = house.tree / "go"
    house.script("worker", {"say": "first"}, {"run": "while ! test -e go; do sleep 0.05; done"}, {"say": "last"})
    role = house.begin_role("worker", "F-001")
    until(
        lambda: any("first" in path.read_text() for path in Path(house.layout.path(names.RUNS)).glob("*/stream.jsonl"))
    )
    log = subprocess.Popen(
        [sys.executable, "-P", str(PROGRAM), "log", "-f"],
        cwd=house.project,
        env=house.env,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert log.stdout is not None
    assert log.stdout.readline().startswith("== ")
    assert log.stdout.readline().split()[1:] == ["says", "first"]
    assert log.poll() is None
    go.touch()
    assert [line.split()[1] for line in log.stdout] == ["does", "says", "F-001"]
    log.stdout.close()
    assert (log.wait(60), role.wait()) == (0, 0)


def test_a_followed_log_of_a_run_that_died_ends_too(house: House) -> None:
    """No more lines will come."""
    house.script("worker", {"say": "first"}, {"sleep": 120})
    role = house.begin_role("worker", "F-001")
    until(
        lambda: any("first" in path.read_text() for path in Path(house.layout.path(names.RUNS)).glob("*/stream.jsonl"))
    )
    run_id = runs.open_runs(house.layout)[0]
    role.kill()
    role.wait()
    assert house.harness("log", "-f", run_id).out.split()[7:] == ["says", "first"]
    assert "died; the next run settles it" in house.harness("runs", "show", run_id).out


def test_a_torn_line_of_a_stream_that_grows_waits_for_its_end(house: House) -> None:
    """Readers never lock: half a line is not shown."""
    run_id = house.work({"say": "first"})["run"]
    with open(house.layout.run(run_id).stream, "a") as file:
        file.write('{"at":1,"kind":"sa')
    done = house.harness("log", run_id)
    assert (done.code, done.out.split()[7:]) == (0, ["says", "first"])


FOREIGN = (
    "garbage",
    '{"at":"x","kind":"said","text":5}',
    "[" * 100000,
    '{"at":1e400,"kind":"said","text":"x"}',
    "7",
    "",
)


def test_a_line_that_is_not_ours_is_shown_and_marked(house: House) -> None:
    """Torn by a crash, or written by the agent: the log continues after it."""
    run_id = house.work({"say": "first"})["run"]
    with open(house.layout.run(run_id).stream, "a") as file:
        file.write("\n".join(FOREIGN) + '\n{"at":1,"kind":"said","text":"last"}\n')
    done = house.harness("log", run_id)
    marked = [f"      ? not valid: {line}" for line in FOREIGN]
    assert (done.code, done.out.split("\n")[2:-1]) == (0, [*marked, "    1.0 says last"])


def mine(house: House, *command: str) -> None:
    """The agent is a program that prints plain text."""
    house.config('agent = "mine"', "[agents.mine]", f"command = {json.dumps(list(command))}")


def following(house: House, *words: str) -> subprocess.Popen[str]:
    """`log -f` in the background."""
    return subprocess.Popen(
        [sys.executable, "-P", str(PROGRAM), "log", "-f", *words],
        cwd=house.project,
        env=house.env,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_the_lines_of_a_plain_program_come_one_by_one(house: House) -> None:
    """Each with its own time, while the program is still at work; its reply is whole at the end, and there once."""
    mine(house, *SLOW)
    role = house.begin_role("worker", "F-001")
    until(
        lambda: any('"one' in path.read_text() for path in Path(house.layout.path(names.RUNS)).glob("*/stream.jsonl"))
    )
    log = following(house)
    assert log.stdout is not None
    assert log.stdout.readline().startswith("== ")
    first = log.stdout.readline().split()
    assert first[1:] == ["says", "one"]
    time.sleep(0.3)
    (house.tree / "go").touch()
    second = log.stdout.readline().split()
    assert second[1:] == ["says", "two"]
    assert float(second[0]) > float(first[0])
    log.communicate(timeout=60)
    assert role.wait() == 0
    run = house.layout.run(house.result()["run"])
    assert Path(run.reply).read_text() == "one\ntwo\n"
    rows = [json.loads(line) for line in Path(run.stream).read_text().split("\n") if line]
    assert [row["text"] for row in rows if row["kind"] == "said"] == ["one\n", "two\n"]


def test_what_it_says_and_what_it_reports_do_not_mix(house: House) -> None:
    """A line that is not complete yet waits for its end, not for a line of the other stream."""
    mine(house, "bash", "-c", "printf 'half '; sleep 0.2; echo err >&2; sleep 0.2; echo whole")
    house.role("worker", "F-001")
    lines = [line.split(maxsplit=1)[1] for line in house.harness("log").out.split("\n")[1:-1]]
    assert sorted(lines) == ["says half whole", "| err"]


def test_without_a_name_the_newest_run_that_has_a_transcript_is_shown(house: House) -> None:
    """A validator without an agent has none."""
    work = house.work(WORK)["run"]
    house.role("validator", "F-001")
    assert house.result()["run"] != work
    assert house.harness("log").out.startswith(f"== {work} ")


def test_a_run_is_found_by_its_feature_or_role(house: House) -> None:
    """The newest one of a role; an unknown word gets the nearest known one."""
    one = house.work(WORK)["run"]
    two = house.work({"run": "echo 2 > 2.txt"}, feature="F-002")["run"]
    assert house.harness("log", "F-001").out.startswith(f"== {one} ")
    assert house.harness("log", "worker").out.startswith(f"== {two} ")
    done = house.harness("log", "wroker")
    assert (done.code, "There is no run, feature or role 'wroker'. Did you mean 'worker'?" in done.err) == (64, True)
    assert house.harness("log", "planner").err == "harness: Nothing has run yet of planner.\n"


def test_a_feature_shows_all_of_its_runs_the_worker_s_first(house: House) -> None:
    """Each with the attempt that it is; as JSON the newest, with the same numbers."""
    first = house.work({"say": "one"})["run"]
    red = house.role("validator", "F-001") and house.result()["run"]
    house.work({"run": "echo 2 > 2.txt"}, feature="F-002")
    second = house.work({"say": "two"})["run"]
    heads = [line for line in house.harness("log", "F-001").out.split("\n") if line.startswith("== ")]
    number = [(first, 1), (second, 2), (red, 1)]
    assert heads == [f"== {run_id}  attempt {at} of 3" for run_id, at in number]
    value = json.loads(house.harness("log", "F-001", "--json").out)
    assert (value["run"], value["attempt"], value["tries"]) == (second, 2, 3)
    assert "attempt 2 of 3" in house.prompt(second)


MAKE = ["cc x", "x.c:1:2: error: no", "make: *** [x]"]


def events(*commands: tuple[str, int, list[str]]) -> Iterator[dict[str, object]]:
    """Those of an agent that runs these commands: (command, exit, lines of output)."""
    for number, (command, code, lines) in enumerate(commands):
        item = {"id": str(number), "type": "command_execution", "command": command}
        yield {"type": "item.started", "item": item}
        yield {
            "type": "item.completed",
            "item": {**item, "aggregated_output": "\n".join(lines) + "\n", "exit_code": code},
        }
    yield {"type": "item.completed", "item": {"type": "agent_message", "text": "done"}}
    yield {"type": "turn.completed", "usage": {}}


def test_a_log_shows_what_came_back_of_each_tool_call(house: House) -> None:
    """One line with its exit and what explains it; with -v, and as JSON, all of it."""
    told, path = events(("make", 2, MAKE), ("ls", 0, ["a", "b"])), house.project.parent / "events"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in told))
    house.config('agent = "mine"', "[agents.mine]", f'command = ["cat", "{path}"]', 'format = "codex"')
    house.role("worker", "F-001")

    def lines(*words: str) -> list[str]:
        return [line[7:] for line in house.harness("log", *words).out.split("\n")[1:-1]]

    red, green = "  exit 2  x.c:1:2: error: no", "  exit 0  a"
    assert lines() == [" does run make", red, " does run ls", green, " says done"]
    assert lines("-v")[:5] == [" does run make", red, *(f"  {line}" for line in MAKE)]
    rows = json.loads(house.harness("log", "--json").out)["rows"]
    assert [row["text"] for row in rows if row["kind"] == "result"] == ["\n".join([red[2:], *MAKE]), "exit 0  a\na\nb"]


def test_the_whole_mission_is_followed_until_its_loop_ends(house: House) -> None:
    """From run to run, each with its end; also those without a transcript, and why."""
    house.script("worker", {"run": "touch begun; until test -e go; do sleep 0.05; done; touch 1.txt"}, {"say": "done"})
    house.config('agent = "scripted"', "[limits]", "max_runs = 2")
    loop = house.loop()
    until(lambda: (house.tree / "begun").exists())
    log = following(house)
    assert log.stdout is not None
    out = log.stdout.readline()  # it follows, so the run may end
    (house.tree / "go").touch()
    out += log.stdout.read()
    log.wait()
    loop.communicate(timeout=60)
    ran = [line["run"] for line in house.ran()]
    assert len(ran) >= 2
    assert [line.split()[1] for line in out.split("\n") if line.startswith("== ")] == ran
    assert "says done" in out
    assert "(no agent was asked: this run is the work of code alone)" in out
    assert re.search(r"^  worker F-001 +ok [0-9a-f]{10} +\d+\.\d s$", out, re.M)


def test_a_run_that_has_shown_nothing_yet_says_so(house: House) -> None:
    """It is at work."""
    mine(house, "bash", "-c", "touch begun; sleep 60")
    house.begin_role("worker", "F-001")
    until(lambda: (house.tree / "begun").exists())
    assert "(the agent is working and has written nothing yet)" in house.harness("log").out


@pytest.mark.parametrize(
    ("command", "why"),
    [(("true",), "(the agent wrote nothing)"), (("false",), "(the agent wrote nothing: it ended with exit 1")],
)
def test_an_agent_that_said_nothing_is_no_empty_page(house: House, command: tuple[str, ...], why: str) -> None:
    """With what the run says about it."""
    mine(house, *command)
    house.role("worker", "F-001")
    assert why in house.harness("log", "worker").out


def test_the_log_of_a_run_is_one_json_value(house: House) -> None:
    """Rows for machines are left out; a followed log has no end, so it cannot be JSON."""
    run_id = house.work(WORK, {"say": "all done"})["run"]
    value = json.loads(house.harness("log", "--json").out)
    assert (value["run"], value["role"], value["feature"], value["over"], value["why"]) == (
        *(run_id, "worker", "F-001"),
        True,
        "",
    )
    assert [row["kind"] for row in value["rows"]] == ["did", "output", "said"]
    assert house.harness("log", "-f", "--json").code == 64


def test_the_spinner_shows_the_last_line_of_a_plain_program(house: House) -> None:
    """While it works; on a terminal alone."""
    mine(house, "bash", "-c", f"echo reading; {WAIT}; echo building; {WAIT.replace('go', 'end')}")
    leader, follower = pty.openpty()
    env = {**house.env, "TERM": "xterm"}
    words = house.words("worker", "F-001")
    role = subprocess.Popen(
        words, cwd=house.project, env=env, stdin=subprocess.DEVNULL, stdout=follower, stderr=follower
    )
    os.close(follower)
    seen = b""
    with suppress(OSError):  # how Linux reports that the other end is closed
        while block := os.read(leader, 65536):
            seen += block
            for word, file in ((b"reading", "go"), (b"building", "end")):
                if word in seen:
                    (house.tree / file).touch()
    os.close(leader)
    assert role.wait(60) == 0
    assert re.search(rb"worker F-001 0:\d\d, .*reading", seen)
    assert b"building" in seen
