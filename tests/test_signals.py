"""run.sh is signalled or killed at any moment: no process that it started survives, and the next start continues."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from harness.commands.setup import doctor
from harness.process import tree
from harness.state import names
from tests.missions import CHECKOUT, House, heard, tagged, until

RUN_SH = str(CHECKOUT / "run.sh")
TORTURE = bool(os.environ.get("HARNESS_TORTURE"))
MOMENTS = 25 if TORTURE else 1
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
STUBBORN = "setsid sleep 300 & echo more >> 1.txt; sleep 0.2" + (" & (trap '' TERM; sleep 300) &" if TORTURE else "")
GONE_SECONDS = 60.0  # what outlives it was forgotten: it sleeps for 300


def begin(house: House) -> subprocess.Popen[bytes]:
    """Start the loop."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        [RUN_SH], cwd=house.project, env=house.env, stdin=quiet, stdout=quiet, stderr=quiet, preexec_fn=heard
    )


def endless(house: House) -> None:
    """A long mission: workers that leave stubborn processes and prove nothing."""
    house.script("worker", {"run": STUBBORN}, {"say": '```json harness\n{"status": "implemented"}\n```'})
    for role in ("planner", "validator", "curator"):
        house.script(role, {"sleep": 0.05})


def alive(house: House) -> list[int]:
    """Live processes that the mission's runs started, and the runs themselves."""
    path = house.state / "mission.json"
    found = tagged(json.loads(path.read_text())["id"]) if path.exists() else []
    mark = f"HARNESS_PROJECT={house.project}".encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            found += [int(name)] if mark in Path("/proc", name, "environ").read_bytes().split(b"\0") else []
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


@pytest.mark.parametrize("moment", range(MOMENTS))
@pytest.mark.parametrize("signum", SIGNALS, ids=lambda number: signal.Signals(number).name)
def test_whatever_ends_the_loop_nothing_lives_on_and_the_next_start_goes_on(
    house: House, signum: int, moment: int
) -> None:
    """Soon no descendant lives, even after a kill of run.sh: its run does not continue without it."""
    endless(house)
    loop = begin(house)
    time.sleep(random.Random(f"{signum} {moment}").uniform(0.1, 2.0))
    loop.send_signal(signum)
    loop.wait(timeout=GONE_SECONDS)
    until(lambda: not alive(house), GONE_SECONDS)
    assert [line for line in house.ran() if line["outcome"] not in ("ok", "no_op", "killed", "agent_error")] == []
    again = house.run([RUN_SH, "--once"])
    assert again.code in (0, 3), again
    until(lambda: not alive(house), GONE_SECONDS)
    assert [one.what for one in doctor.examine(house.layout) if one.state == "bad"] == []


def test_a_killed_loop_takes_its_run_with_it(house: House) -> None:
    """Its work is kept, the mission is unlocked, and the next start needs no repair."""
    house.script("worker", {"run": "echo half > half.txt; touch begun; sleep 60 & sleep 60"})
    loop = begin(house)
    until(lambda: (house.tree / "begun").exists())
    loop.kill()
    loop.wait()
    until(lambda: bool(house.ran()), GONE_SECONDS)
    assert house.result()["outcome"] == "killed"
    assert house.git("show", "--stat", "--format=%s").startswith("wip(F-001): killed")
    until(lambda: not alive(house), GONE_SECONDS)


def of_run(script: int) -> list[int]:
    """The script, run.sh, the run, and the forks of the run, which have its command line."""
    found = [script]
    for pid in tree.descendants(script):
        with suppress(FileNotFoundError, ProcessLookupError):
            line = Path("/proc", str(pid), "cmdline").read_bytes()
            found += [pid] if b"run.sh" in line or b"harness.run" in line else []
    return found


@pytest.mark.parametrize(
    ("signum", "start", "machine"),
    [
        (signal.SIGHUP, 'exec nohup "$0" --once', ""),
        (signal.SIGHUP, 'exec nohup "$0" --once', "here"),
        (signal.SIGINT, 'trap : INT; "$0" --once & wait $!; wait $!', ""),
    ],
)
def test_a_signal_that_is_ignored_at_the_start_ends_nothing(
    house: House, signum: int, start: str, machine: str
) -> None:
    """The hang-up under nohup, and Ctrl-C for what a script started with `&`: the run works on, and its inbox answers."""
    house.config('agent = "scripted"', "[machines.here]", "command = []")
    note, raw = "harness note --tag TRICK", Path(house.layout.path(names.RAW))
    wait = "touch begun; {} half-way; until test -e go; do sleep 0.05; done; rm begun go"
    house.script("worker", {"run": f"{wait.format(note)}; {note} all; echo done > 1.txt"})
    env, quiet = {**house.env, "HARNESS_MACHINE": machine}, subprocess.DEVNULL
    words = ["bash", "-c", start, RUN_SH]
    script = subprocess.Popen(
        words, cwd=house.project, env=env, stdin=quiet, stdout=quiet, stderr=quiet, preexec_fn=heard
    )
    until(lambda: raw.exists() and "half-way" in raw.read_text())
    signalled = of_run(script.pid)
    for pid in signalled:
        with suppress(ProcessLookupError):  # what answered the note
            os.kill(pid, signum)
    for begun in house.folder.rglob("begun"):  # at home, or where the machine works
        begun.with_name("go").touch()
    assert (script.wait(60), house.result()["outcome"]) == (0, "ok")
    assert "all\n" in raw.read_text()
    assert len(signalled) >= 4, "the script or run.sh, the run, its inbox and its guardian"
