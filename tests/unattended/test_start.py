"""A start by the crontab's own line, in cron's environment: what it does, what it logs, and when it is silent."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from harness.base import clock
from harness.mission import runs
from harness.state import names
from harness.unattended import schedules, start
from harness.unattended.schedule_log import ScheduleLog
from tests.missions import House, tagged, until
from tests.unattended.crontabs import Crontab

ONE_RUN = ("[limits]", "max_runs = 1")
QUIET = "Nothing more is logged until that changes."


@pytest.fixture
def night(crontab: Crontab) -> Crontab:
    """A mission that cron starts every 30 minutes, and that stops after one run by its cap."""
    crontab.house.config('agent = "scripted"', *ONE_RUN)
    crontab.house.script("worker", {"run": "touch 1.txt"})
    assert crontab.house.harness("schedule", "add", "--every", "30m").code == 0
    return crontab


def test_a_start_needs_nothing_of_crons_environment_and_prints_nothing(night: Crontab) -> None:
    """It runs what is due, with the person's PATH, a UTF-8 locale and no terminal, and the log says so."""
    said = 'printf "%s\\n" "$PATH" "$LC_ALL" "$HOME" >said.txt; test -t 0 && touch terminal; touch 1.txt'
    night.house.script("worker", {"run": said})
    done = night.fires()
    assert (done.out, done.err) == ("", ""), done
    path, locale, home = night.house.git("show", f"{night.house.result()['commit']}:said.txt").split("\n")
    assert night.house.env["PATH"].split(os.pathsep)[1] in path and "UTF" in locale and home
    assert "terminal" not in night.house.git("show", "--stat", night.house.result()["commit"])
    log = night.log()
    assert re.fullmatch(r"start: NEXT worker F-001: its turn has come   \(run\.sh .*, pid \d+\)", log[0]), log
    assert log[1] == "  > NEXT worker F-001" and log[2].startswith("    worker F-001         ok"), log
    assert re.match(r"end: exit \d after \d+ s; BUDGET runs: the cap is reached, .*" + QUIET, log[-1]), log


def test_done_or_a_person_is_one_line_and_then_silence_until_something_changes(night: Crontab) -> None:
    """Whatever is in the way: a cap, a pause, a stop, a settings file that does not parse."""
    house = night.house
    assert house.harness("pause", "--why", "I look").code == 0
    assert [night.fires().code for _ in range(2)] == [9, 9]
    assert night.log() == [f"PAUSED: a person asked to pause; to continue: {command(house)} resume. {QUIET}"]
    assert house.harness("stop").code == 0
    assert [night.starts().code for _ in range(2)] == [9, 9]
    assert len(night.log()) == 2 and night.log()[1].startswith("STOPPED: ")
    assert house.harness("resume").code == 0
    good = Path(house.layout.path(names.CONFIG)).read_text()
    Path(house.layout.path(names.CONFIG)).write_text("agent = [")
    assert [night.starts().code for _ in range(2)] == [65, 65]
    assert len(night.log()) == 3 and "config.toml, line 1" in night.log()[2]
    Path(house.layout.path(names.CONFIG)).write_text(good)
    night.starts()
    assert "start: NEXT worker F-001" in night.log()[3]
    count = len(night.log())
    assert night.starts().code == 5 and len(night.log()) == count, "the end of the start before has said so"


def command(house: House) -> str:
    """How the messages of a start name run.sh."""
    script, at = schedules.start_words(house.layout)[1], house.layout.folders.project
    return f"{shlex.quote(script)} -C '{at}'"


def test_a_start_that_finds_run_sh_at_work_is_skipped_and_says_who_works(night: Crontab) -> None:
    """A person's loop goes on undisturbed."""
    house = night.house
    house.script("worker", {"run": "touch 1.txt; sleep 30"})
    loop = house.loop()
    until(lambda: (house.tree / "1.txt").exists())
    done = night.fires()
    assert (done.code, done.out, done.err) == (75, "", ""), done
    assert re.fullmatch(rf"skipped: run\.sh is working on it: pid {loop.pid}, since \S+Z", night.log()[-1])
    loop.terminate()
    loop.communicate(timeout=60)


def test_a_start_that_finds_the_one_before_is_skipped_also_after_that_was_killed(night: Crontab) -> None:
    """What a killed start began goes on to its end, and the next one says who works."""
    house = night.house
    house.script("worker", {"run": "touch 1.txt; sleep 60"})
    env = {"HOME": house.env["HOME"], "PATH": "/usr/bin:/bin"}
    first = subprocess.Popen(
        ["/bin/sh", "-c", f"exec {night.line}"], env=env, cwd=env["HOME"], stdin=subprocess.DEVNULL
    )
    mission_id = json.loads(house.read("mission.json"))["id"]
    until(lambda: (house.tree / "1.txt").exists())
    assert night.fires().code == 75
    skipped = re.fullmatch(r"skipped: the previous start is still running \(pid (\d+)\)", night.log()[-1])
    assert skipped, night.log()
    os.kill(int(skipped[1]), signal.SIGKILL)
    first.wait(timeout=60)
    assert night.fires().code == 75
    working = re.match(r"skipped: run\.sh is working on it: pid (\d+),", night.log()[-1])
    assert working, night.log()
    os.kill(int(working[1]), signal.SIGTERM)
    until(lambda: not tagged(mission_id) and bool(house.ran()))
    assert house.result()["outcome"] == "killed"


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_a_start_that_is_asked_to_end_ends_its_run_and_says_so(night: Crontab, signum: int) -> None:
    """As where the machine shuts down."""
    house = night.house
    house.script("worker", {"run": "touch 1.txt; sleep 60"})
    env = {"HOME": house.env["HOME"], "PATH": "/usr/bin:/bin"}
    first = subprocess.Popen(
        ["/bin/sh", "-c", f"exec {night.line}"], env=env, cwd=env["HOME"], stdin=subprocess.DEVNULL
    )
    mission_id = json.loads(house.read("mission.json"))["id"]
    until(lambda: (house.tree / "1.txt").exists())
    first.send_signal(signum)
    assert first.wait(timeout=60) == 143
    assert tagged(mission_id) == [] and house.result()["outcome"] == "killed"
    assert night.log()[-1].startswith("end: interrupted, exit 143 after ")


def test_a_long_wait_for_a_vendor_is_one_line_and_a_short_one_is_waited_out(night: Crontab) -> None:
    """The time is local; `--for 25m` has room for a wait that ends before."""
    house = night.house
    house.config('agent = "scripted"')
    until_then = clock.now() + 7200
    house.script("worker", {"fail": "limit", "reason": "the limit is reached", "until": until_then})
    house.role("worker")
    wait = house.result()["until"]
    assert [night.fires().code for _ in range(2)] == [75, 75]
    when = clock.local(wait, clock.now())
    assert night.log() == [f"WAIT until {when}: the limit is reached. {QUIET}"]
    assert house.harness("schedule", "add", "--every", "12h", "--for", "4h").code == 0
    env = {"HOME": house.env["HOME"], "PATH": "/usr/bin:/bin"}
    first = subprocess.Popen(
        ["/bin/sh", "-c", f"exec {night.line}"], env=env, cwd=env["HOME"], stdin=subprocess.DEVNULL
    )
    until(lambda: any("  > WAIT until" in line for line in night.log()))
    first.terminate()
    first.wait(timeout=60)


def test_a_run_log_that_cannot_be_read_is_in_the_log_and_not_in_the_mail(night: Crontab) -> None:
    """run.sh is started all the same, since it can make the file again."""
    night.house.work({"run": "touch 1.txt"})
    Path(night.house.layout.path(names.RUN_LOG)).write_bytes(b"\xff" * 3000)
    done = night.fires()
    assert (done.out, done.err) == ("", "") and night.log()[-1].startswith("end: "), (done, night.log())


def test_what_run_sh_says_again_and_again_is_written_once(night: Crontab) -> None:
    """As the refusal of a hook, which it asks until its time is over."""
    start._keep(ScheduleLog(night.house.layout), io.BytesIO(b"one\n\nno\nno\n no\nno\ntorn \xff"))
    assert night.log() == ["  one", "  no", "   no", "  no", "  torn \ufffd"]


def test_an_agent_that_was_refused_is_not_asked_again_for_an_hour(
    night: Crontab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such runs would use up the caps of a night; a person may try at once."""
    house = night.house
    house.config('agent = "scripted"')
    house.script("worker", {"fail": "auth", "reason": "its key is refused"})
    assert night.starts().code == 69
    assert [night.starts().code for _ in range(2)] == [11, 11]
    assert len(house.ran()) == 1
    (line,) = [line for line in night.log() if line.startswith("not started")]
    assert line.startswith("not started: scripted was refused (auth), its key is refused. The next try is after "), line
    assert house.harness("schedule", "run-now").code == 69 and len(house.ran()) == 2
    ended = next(runs.finished(house.layout)).ended
    for now in (ended - 7200, ended + start.REFUSED_SECONDS):  # a clock that was set back is no reason to wait
        monkeypatch.setattr(clock, "now", lambda now=now: now)
        assert start._refused(house.layout) == ""


def test_a_start_that_is_not_made_tells_the_hooks_why_once(night: Crontab) -> None:
    """No run.sh ends there, as after a checkpoint that a person laid between two starts; a hook that fails is named."""
    house = night.house
    told = house.folder / "told"
    hook = "[[on]]\nevent = 'checkpoint'\nrun = ['sh', '-c', \"{}\"]"
    house.config('agent = "scripted"', hook.format(f"cat >>'{told}'"), hook.format("echo no; false"))
    (house.state / "checkpoints").mkdir()
    (house.state / "checkpoints" / "look.md").write_text("Look.\n")
    assert [night.starts().code for _ in range(2)] == [8, 8]
    assert [json.loads(line)["checkpoint"] for line in told.read_text().splitlines()] == ["look"]
    warning, line = night.log()
    assert re.fullmatch(r"  warning: the hook '.*' failed for checkpoint-look-\w+: no", warning), warning
    assert line.startswith("CHECKPOINT look: ") and line.endswith(QUIET), line


def test_a_person_starts_it_as_the_machine_would_and_reads_along(night: Crontab) -> None:
    """`run-now` prints what the log gets, also where nothing is due."""
    done = night.house.harness("schedule", "run-now")
    log = night.log()
    assert log[0].startswith("start: NEXT worker F-001") and log[-1].startswith("end: exit"), log
    assert night.house.harness("schedule", "run-now").code == 5
    assert "BUDGET" in night.log()[-1] and night.log() == log and done.code in (0, 5)


def test_a_line_that_was_left_behind_says_how_to_remove_it(night: Crontab) -> None:
    """Where the settings are gone, cron mails a sentence with the command."""
    (night.house.state / "schedule" / "schedule.json").unlink()
    done = night.fires()
    assert done.code == 64 and "schedule remove" in done.err, done


def test_a_folder_that_is_gone_says_how_to_end_the_mails(night: Crontab) -> None:
    """Or how to go on, where it was moved; the command works anywhere."""
    name = night.line.split(" ")[-1]
    moved = night.house.project.rename(night.house.folder / "moved")
    done = night.fires()
    assert (done.code, done.out) == (64, "") and f"schedule remove {name}" in done.err, done
    ended = night.house.run([*shlex.split(night.line)[:2], "schedule", "remove", name], where=moved.parent)
    assert (ended.code, night.text) == (0, ""), ended


def test_the_next_mission_of_the_folder_is_started_too(night: Crontab) -> None:
    """`init --new` leaves the schedule and its log where they are."""
    night.house.harness("pause")
    night.starts()
    night.house.harness("resume")
    assert night.house.harness("init", "--new", "--abandon").code == 0
    night.house.config('agent = "mine"', "[agents.mine]", 'command = ["no-such-program"]')
    assert night.starts().code == 69
    assert any("no-such-program" in line for line in night.log()[1:]), night.log()
