"""Hooks get each event at least once, stop nothing, and are ended in time; one alone may refuse a run."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from harness.run.notice import _notices, hooks
from harness.state import names
from tests.missions import CHECKOUT, House, until

RUN_SH = str(CHECKOUT / "run.sh")


def on(house: House, event: str, script: str, *more: str) -> None:
    """A hook that runs this shell script; `told` beside the project is where scripts write."""
    house.config(
        'agent = "scripted"', "[[on]]", f'event = "{event}"', f"run = {json.dumps(['sh', '-c', script])}", *more
    )
    house.script("worker", {"run": "touch 1.txt"})


def told(house: House) -> list[dict[str, Any]]:
    """The events that arrived."""
    path = house.folder / "told"
    return [json.loads(line) for line in path.read_text().split("\n") if line] if path.exists() else []


def test_a_run_is_reported_to_a_program_of_the_persons_own(house: House) -> None:
    """With the person's environment, keys included, and nothing of ours; not confined; in the project folder."""
    on(house, "run", "cat >>../told; env >../env; pwd >../where")
    house.role("worker", "F-001", MY_API_TOKEN="mine")
    (event,) = told(house)
    assert (event["event"], event["run"]["feature"], event["run"]["outcome"]) == ("run", "F-001", "ok")
    env = (house.folder / "env").read_text()
    assert "MY_API_TOKEN=mine" in env
    assert not [line for line in env.split("\n") if line.startswith(("HARNESS_", "PROCESS_TAG", "FEATURE_ID"))]
    assert (house.folder / "where").read_text().strip() == str(house.project)
    assert house.harness("status").out.count("warning") == 0


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo one; echo two; exit 3", "one"),
        ("exit 3", "exit 3"),
        ("sleep 60 & sleep 60", "it took longer than 1 s"),
        ("yes | head -c 1000000; exit 1", "y"),
    ],
)
def test_a_hook_that_fails_stops_nothing_and_is_shown(house: House, script: str, said: str) -> None:
    """On the screen, and in `status` until it succeeds; what it started is ended; its output is bounded."""
    on(house, "run", script, "seconds = 1")
    done = house.role("worker", "F-001")
    assert (done.code, house.feature().status) == (0, "validating"), done
    assert f"failed for run-{house.result()['run']}: {said}\n" in done.out
    assert f": {said}" in "\n".join(json.loads(house.harness("status", "--json").out)["warnings"])
    assert len((house.state / "notices.jsonl").read_bytes()) < 2000
    on(house, "run", "true")
    assert json.loads(house.harness("status", "--json").out)["warnings"] == []


def test_a_hook_that_is_not_there_is_shown(house: House) -> None:
    """As one that fails."""
    house.config('agent = "scripted"', "[[on]]", 'event = "run"', 'run = ["/nowhere/notify"]')
    house.script("worker", {"run": "touch 1.txt"})
    done = house.role("worker", "F-001")
    assert (done.code, "the hook '/nowhere/notify' failed for run-" in done.out) == (0, True), done


def test_what_a_kill_cut_off_is_called_again_with_the_same_id(house: House) -> None:
    """kill -9 of the run while its hook works: the next run's end calls it again; then never more."""
    on(house, "run", "cat >>../told; test -e ../go || { touch ../begun; sleep 60; }")
    role = house.begin_role("worker", "F-001")
    until((house.folder / "begun").exists)
    os.kill(role.pid, signal.SIGKILL)
    role.wait()
    (house.folder / "go").touch()
    first = house.ran()[0]["run"]
    house.role("validator", "F-001")
    house.role("validator", "F-001")
    found = [event["id"].rpartition("/")[2] for event in told(house)]
    assert found == [f"run-{first}", f"run-{first}", *(f"run-{line['run']}" for line in house.ran()[1:])]


def test_a_run_that_died_is_reported_by_the_next(house: House) -> None:
    """It had no time to say so itself."""
    on(house, "run", "cat >>../told")
    house.role("worker", "F-001")
    house.script("worker", {"sleep": 60})
    role = house.begin_role("worker", "F-002")
    until(lambda: len(list(Path(house.layout.path(names.RUNS)).glob("*/stream.jsonl"))) == 2)
    os.kill(role.pid, signal.SIGKILL)
    role.wait()
    house.role("validator", "F-001")
    assert [event["run"]["outcome"] for event in told(house)] == ["ok", "killed", "ok"]


def test_a_hook_says_no_before_a_run(house: House) -> None:
    """Exit 75 with its reason; nothing has begun, and it is asked again at the next start."""
    on(house, "run", "cat >>../told; test -e ../go || { echo 'not before 20:00'; exit 1; }", "before = true")
    done = house.run([RUN_SH, "--once"])
    assert (done.code, house.ran(), house.feature().status) == (75, [], "todo"), done
    assert "not before 20:00" in done.err
    assert [one["run"]["feature"] for one in told(house)] == ["F-001"]
    (house.folder / "go").touch()
    assert house.role("worker", "F-001").code == 0
    assert house.feature().status == "validating"


@pytest.mark.parametrize("script", ["sleep 60", ""])
def test_a_hook_that_cannot_be_asked_says_no(house: House, script: str) -> None:
    """It takes too long, or it is not there."""
    on(house, "run", script, "before = true", "seconds = 1")
    if not script:
        house.config('agent = "scripted"', "[[on]]", 'event = "run"', 'run = ["/nowhere/ask"]', "before = true")
    done = house.role("worker", "F-001")
    assert (done.code, house.ran()) == (75, []), done


def test_the_end_of_run_sh_is_reported_once(house: House) -> None:
    """However often cron starts it while nothing changes."""
    on(house, "escalated", "cat >>../told", "[[on]]", 'event = "stuck"', 'run = ["sh", "-c", "cat >>../told"]')
    house.lay(house.feature().replace(status="blocked"))
    assert house.run([RUN_SH, "--once"]).code == 3
    house.harness("ending", "ESCALATE stuck")  # what run.sh calls at its end
    assert [event["event"] for event in told(house)] == ["escalated", "stuck"]
    assert "escalation answer" in told(house)[0]["text"]
    house.harness("ending", "ESCALATE stuck", HARNESS_INSIDE="")
    assert len(told(house)) == 2


def test_a_hook_hears_of_nothing_from_before_it_was_there(house: House) -> None:
    """But of the run that has just ended."""
    house.work({"run": "touch 1.txt"})
    on(house, "run", "cat >>../told")
    house.role("validator", "F-001")
    house.role("validator", "F-001")
    assert [event["run"]["role"] for event in told(house)] == ["validator"] * 2


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (['event = "over"', 'run = ["x"]'], "'event' must be one of done"),
        (['event = "done"'], "needs either 'run' or 'url'"),
        (['event = "done"', 'run = ["x"]', 'url = "https://x"'], "needs either 'run' or 'url'"),
        (['event = "done"', 'url = "ftp://x"'], "'url' must be https://"),
        (['event = "done"', 'run = ["x"]', "before = true"], "'before' is for event"),
    ],
)
def test_a_wrong_hook_is_named_with_its_line(house: House, lines: list[str], words: str) -> None:
    """Exit 65."""
    house.config('agent = "scripted"', "[[on]]", *lines)
    done = house.harness("next")
    assert (done.code, words in done.err, "config.toml, line " in done.err) == (65, True, True), done


def test_without_a_hook_nothing_is_written(house: House) -> None:
    """No line, and no warning."""
    house.work({"run": "touch 1.txt"})
    assert (_notices.rows(house.layout), hooks.failing(house.layout)) == ([], [])
    assert not (house.state / "notices.jsonl").exists()
