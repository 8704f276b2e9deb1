"""A start by the crontab's own line, in cron's environment: what it does, what it logs, and when it is silent."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.base import clock
from harness.state import names
from harness.unattended import _preflight, schedules, start
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


def remember(house: House, **values: Any) -> None:
    """Write what the log remembers between starts, and an older schedule."""
    folder = house.state / "schedule"
    path = folder / "state.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**found, **values}))
    made = json.loads((folder / "schedule.json").read_text())
    (folder / "schedule.json").write_text(json.dumps({**made, "added": "2026-01-01T00:00:00Z"}))


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
    assert re.fullmatch(
        rf"skipped: run\.sh is working on it: pid {loop.pid}, since \S+Z, run \d+-worker-F-001", night.log()[-1]
    )
    loop.terminate()
    loop.communicate(timeout=60)


def test_a_start_that_finds_the_one_before_is_skipped_and_one_that_was_killed_is_said(night: Crontab) -> None:
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
    unfinished = rf"the start of \d\d:\d\d \(pid {skipped[1]}\) did not end: it was killed, or the machine went down"
    assert re.fullmatch(unfinished, night.log()[-2]), night.log()
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


def test_starts_that_did_not_come_are_said_by_the_next(night: Crontab) -> None:
    """How many, from when to when, and why as far as that is known; each once."""
    now = clock.now()
    half_hour = now - now % 1800
    remember(night.house, seen=half_hour - 3 * 1800 - 60)
    night.starts()
    missed = [line for line in night.log() if line.startswith("missed")]
    first, last = (clock.local(half_hour - back * 1800, now) for back in (3, 1))
    assert missed == [
        f"missed 3 starts, {first} to {last}: the machine was off or asleep, or its scheduler did not run"
    ]
    night.starts()
    assert len([line for line in night.log() if line.startswith("missed")]) == 1
    remember(night.house, seen=half_hour - 1900, told="", began=half_hour - 1850, ended=half_hour - 60)
    night.starts()
    assert night.log()[-1].startswith("missed the start of") or "the previous start ran until then" in "".join(
        night.log()
    )


def test_while_nothing_can_go_on_no_start_is_missed(night: Crontab) -> None:
    """A machine that sleeps each night after DONE does not fill the log."""
    night.house.harness("pause")
    night.starts()
    remember(night.house, seen=clock.now() - 5 * 3600)
    night.starts()
    assert len(night.log()) == 1, night.log()


def test_a_clock_that_was_set_back_or_ahead_is_no_fault(night: Crontab) -> None:
    """Nothing is counted twice, or without end."""
    night.house.harness("pause")
    for seen in (clock.now() + 10**6, 1):
        remember(night.house, seen=seen, told="")
        assert night.starts().code == 9
    assert len([line for line in night.log() if line.startswith("missed")]) == 1


def test_an_agent_that_was_refused_is_not_asked_again_until_something_changes(night: Crontab) -> None:
    """Such runs would use up the caps of a night; a person may try at once, and a change of the settings is tried by itself."""
    house = night.house
    house.config('agent = "scripted"')
    house.script("worker", {"fail": "auth", "reason": "its key is refused"})
    assert night.starts().code == 69
    for _ in range(2):
        assert night.starts().code == 11
    assert len(house.ran()) == 1
    assert night.log()[-1] == f"not started: agent: scripted was refused (auth): its key is refused. {QUIET}"
    done = house.harness("schedule", "run-now")
    assert done.code == 69 and len(house.ran()) == 2
    assert night.starts().code == 11 and len(house.ran()) == 2
    house.config('agent = "scripted"', *ONE_RUN, "max_hours = 9")
    house.script("worker", {"run": "touch 1.txt"})
    Path(house.layout.path(names.CONFIG)).write_text(
        Path(house.layout.path(names.CONFIG)).read_text().replace("max_runs = 1", "max_runs = 3")
    )
    night.starts()
    assert house.ran()[2]["outcome"] == "ok"


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


def test_a_run_of_another_is_waited_for_by_its_name(night: Crontab) -> None:
    """It has no time at which it ends."""
    house = night.house
    house.config('agent = "scripted"')
    house.lay(house.feature("F-001"))
    house.script("worker", {"run": "touch begun; sleep 60"})
    house.begin_role("worker", "F-001")
    until(lambda: (house.tree / "begun").exists())
    assert re.fullmatch(r"WAIT for \d+-worker-F-001", start._look(house.layout).text)


def test_what_run_sh_says_again_and_again_is_written_once(night: Crontab) -> None:
    """As the refusal of a hook, which it asks until its time is over."""
    house = night.house
    hook = ["[[on]]", 'event = "run"', "before = true", 'run = ["sh", "-c", "echo not before 20:00; false"]']
    house.config('agent = "scripted"', *hook)
    assert house.harness("schedule", "add", "--every", "1h", "--for", "1m").code == 0
    path = house.state / "schedule" / "schedule.json"
    path.write_text(path.read_text().replace('"1m"', '"6s"'))
    assert night.starts().code == 75
    assert len([line for line in night.log() if "not before 20:00" in line]) == 1, night.log()


def test_what_is_known_to_fail_is_not_started(night: Crontab, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent without its program: nothing is opened, no run is spent, and the log says it once, with the remedy."""
    night.house.config('agent = "mine"', "[agents.mine]", 'command = ["no-such-program"]')
    assert [night.starts().code for _ in range(2)] == [11, 11]
    assert night.house.ran() == [] and len(night.log()) == 1
    assert "no-such-program" in night.log()[0] and "whole path" in night.log()[0]


def test_how_much_room_is_left_is_no_change(night: Crontab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fills up is one line of the log, not one a start."""
    for least in (10**9, 10**9 + 7):
        monkeypatch.setattr(_preflight, "MIN_FREE_MIB", least)
        assert night.starts().code == 11
    assert len(night.log()) == 1 and f"less than {10**9} left" in night.log()[0], night.log()


def test_a_start_that_can_begin_no_run_is_written_once(night: Crontab) -> None:
    """As where an agent finds out only then; each start tries it, so that it goes on by itself, and another fault is written."""
    house = night.house
    house.config('agent = "playbook"', *ONE_RUN)
    house.write("playbooks/planner.md")
    assert [night.starts().code for _ in range(2)] == [69, 69]
    log = night.log()
    assert [line for line in log if line.startswith(("start:", "end:"))] == [log[0], log[-1]], log
    assert "There is no playbook" in log[-2] and log[-1].startswith("end: exit 69") and log[-1].endswith(QUIET), log
    house.write("playbooks/worker-F-001.md", "```sh\ntouch 1.txt\n```\n")
    night.starts()
    assert house.ran()[0]["outcome"] == "ok"
    assert night.log()[len(log)].startswith("start:"), night.log()


def test_what_is_held_back_is_written_as_soon_as_it_lasts(night: Crontab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person reads along, with the times at which it was said."""
    monkeypatch.setattr(start, "HELD_SECONDS", 0.2)
    night.house.script("worker", {"run": "touch begun; sleep 60"})
    remember(night.house, fault="the fault of the start before")
    pid = os.fork()
    if not pid:
        os._exit(night.starts().code)
    until(lambda: any("  > NEXT worker" in line for line in night.log()))
    until(lambda: (night.house.tree / "begun").exists())
    (started,) = re.findall(r"^start: .* pid (\d+)\)$", "\n".join(night.log()), re.MULTILINE)
    os.kill(int(started), signal.SIGTERM)
    os.waitpid(pid, 0)
    assert night.log()[-1].startswith("end: interrupted"), night.log()


def test_a_start_that_is_not_made_tells_the_hooks_why_once(night: Crontab) -> None:
    """No run.sh ends there: a checkpoint that a person laid between two starts, and an agent that cannot answer."""
    house = night.house
    told = house.folder / "told"
    hooks = [f"[[on]]\nevent = '{name}'\nrun = ['sh', '-c', \"cat >>'{told}'\"]" for name in ("checkpoint", "auth")]
    house.config('agent = "scripted"', *hooks)
    (house.state / "checkpoints").mkdir()
    (house.state / "checkpoints" / "look.md").write_text("Look.\n")
    assert [night.starts().code for _ in range(2)] == [8, 8]
    assert [json.loads(line)["checkpoint"] for line in told.read_text().splitlines()] == ["look"]
    (house.state / "checkpoints" / "look.md").unlink()
    house.config('agent = "mine"', *hooks, "[agents.mine]", 'command = ["no-such-program"]')
    assert [night.starts().code for _ in range(2)] == [11, 11]
    found = [json.loads(line) for line in told.read_text().splitlines()]
    assert [one["event"] for one in found] == ["checkpoint", "auth"] and "no-such-program" in found[1]["text"]
    house.config(
        'agent = "mine"', hooks[1].replace("cat >>", "echo no; false <"), "[agents.mine]", 'command = ["no-such"]'
    )
    assert night.starts().code == 11
    assert re.fullmatch(r"  warning: the hook '.*' failed for not-started-\w+: no", night.log()[-1]), night.log()


def test_a_person_starts_it_as_the_machine_would_and_reads_along(night: Crontab) -> None:
    """`run-now` prints what the log gets, also where nothing is due."""
    done = night.house.harness("schedule", "run-now")
    log = night.log()
    assert log[0].startswith("start: NEXT worker F-001") and log[-1].startswith("end: exit"), log
    assert night.house.harness("schedule", "run-now").code == 5
    assert [line[21:] for line in (night.house.state / "schedule/log").read_text().split("\n") if line] == night.log()
    assert "BUDGET" in night.log()[-1] and len(night.log()) == len(log) + 1 and done.code in (0, 5)


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
    assert night.starts().code == 11
    assert len(night.log()) == 2 and "no-such-program" in night.log()[1]
