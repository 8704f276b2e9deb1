"""Lanes: several features at once, by several loops of run.sh on one mission."""

from __future__ import annotations

import fcntl
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from harness.mission import features, lease, mission
from harness.mission.contract import Check, Claim, Contract, Service
from harness.mission.features import Feature
from harness.state import names
from harness.workplace import lane_turn
from tests.crash import TORTURE
from tests.missions import CHECKOUT, PROGRAM, Done, House, listing, tagged, until
from tests.planned import accept_all, lay, reply
from tests.replay.test_playback import play

RUN_SH = str(CHECKOUT / "run.sh")
FEATURES = 3


def independent(house: House, number: int = FEATURES) -> None:
    """A mission whose features need nothing of each other: each wants a file of its own."""
    names = [str(n) for n in range(1, number + 1)]
    claims = [Claim(id=f"VAL-{n}", text=f"Part {n} works", checks=[Check(run=f"test -f {n}.txt")]) for n in names]
    lay(house, [Feature(id=f"F-{n}", title=f"Part {n}", claims=[f"VAL-{n}"]) for n in names], Contract(claims=claims))
    accept_all(house)
    for n in names:
        house.script(f"worker-F-{n}", {"run": f"echo {n} >{n}.txt; harness note --tag TRICK 'part {n} is a file'"})


def planned(house: House, number: int) -> None:
    """As `independent`, by a planner, so that all of it is in the records; not confined, so that workers can meet."""
    names = [str(n) for n in range(1, number + 1)]
    house.base = ('confine = "off"',)
    house.harness("init")
    house.config('agent = "scripted"')
    claims = [{"id": f"VAL-{n}", "claim": f"Part {n} works", "checks": [f"test -f {n}.txt"]} for n in names]
    found = [{"id": f"F-{n}", "title": f"Part {n}", "claims": [f"VAL-{n}"]} for n in names]
    house.script("planner", reply(features=found, contract=claims))


def ended(house: House) -> str:
    """Once run.sh has ended: nothing of the mission lives, holds a claim, or is in the way."""
    assert lease.alive(house.layout) == []
    assert tagged(mission.load(house.layout).id) == []
    doctor = house.run([RUN_SH, "doctor"])
    assert doctor.code == 0, doctor
    return house.git("show", "--name-only", "--format=", f"{mission.load(house.layout).branch}:")


def test_features_that_need_nothing_of_each_other_are_worked_on_at_once_and_all_land(unconfined: House) -> None:
    """Each worker waits for all to begin, so one alone would never end, and the branch has the work of all. No two lanes begin
    the same run, and none is refused: as many runs as one lane would make, and nothing on standard error."""
    number = FEATURES if TORTURE else 2
    independent(unconfined, number)
    meet = unconfined.folder / "meet"
    meet.mkdir()
    for n in range(1, number + 1):
        wait = f"touch '{meet}/{n}'; for i in $(seq 600); do [ $(ls '{meet}' | wc -l) = {number} ] && break; sleep 0.1; done"
        met = f"[ $(ls '{meet}' | wc -l) = {number} ]"
        unconfined.script(f"worker-F-{n}", {"run": f"{wait}; {met} && echo {n} >{n}.txt"})
    done = unconfined.run([RUN_SH, "--lanes", str(number)])
    assert (done.code, done.err, done.out.count("DONE  ")) == (0, "", 1), done
    assert {f"{n}.txt" for n in range(1, number + 1)} <= set(ended(unconfined).split())
    work = [(line["role"], line["feature"]) for line in unconfined.ran() if line["feature"]]
    assert len(work) == len(set(work)) == 2 * number
    assert {line["outcome"] for line in unconfined.ran()} == {"ok"}


def test_what_conflicts_is_done_again_on_top_of_what_landed(unbegun: House) -> None:
    """Both write the same line (in `make torture`, a third one works beside them); who comes second is asked again, reads both
    sides, and nothing of the first is lost. `replay --mission` plays it all back, run by run; `gc` leaves what did not land."""
    number = 3 if TORTURE else 2
    planned(unbegun, number)
    meet = unbegun.folder / "meet"
    meet.mkdir()
    for n in range(1, number + 1):
        met = f"[ $(ls '{meet}' | wc -l) = {number} ]"
        wait = f"touch '{meet}/{n}'; for i in $(seq 600); do {met} && break; sleep 0.1; done"
        shared = f"echo side-{n} >>both.txt" if n < 3 else "true"
        unbegun.script(f"worker-F-{n}", {"run": f"{wait}; echo {n} >{n}.txt; {shared}"})
    done = unbegun.run([RUN_SH, "--lanes", str(number)])
    assert done.code == 0, done
    ended(unbegun)
    branch = mission.load(unbegun.layout).branch
    assert sorted(unbegun.git("show", f"{branch}:both.txt").split()) == ["side-1", "side-2"]
    (clash,) = [line for line in unbegun.ran() if line["outcome"] == "conflict"]
    second = [line for line in unbegun.ran() if line["role"] == "worker" and line["feature"] == clash["feature"]][-1]
    prompt = Path(unbegun.layout.run(second["run"]).folder, "prompt.md").read_text()
    assert all(side in prompt for side in ("both.txt", "side-1", "side-2"))
    (kept,) = unbegun.git("for-each-ref", "--format=%(refname)", "refs/harness/refused", "refs/harness/partial").split()
    assert unbegun.program("gc", "--keep-days", "0").code == 0
    unbegun.git("gc", "-q", "--prune=now")
    mine = "side-" + clash["feature"][-1]
    assert unbegun.git("show", f"{kept}:both.txt") == mine, "what did not land is there as it was"
    shutil.rmtree(unbegun.scripts)
    made = play(unbegun)
    assert (made["code"], made["first"], made["played"]) == (0, None, len(unbegun.ran())), made


def meeting(house: House, answer: str) -> Done:
    """A mission of one feature whose worker meets a person's commit of the line that it changes; asked again, it does
    `answer`. Played by run.sh to its end."""
    house.base = ('confine = "off"',)
    house.harness("init")
    house.config('agent = "scripted"')
    claims = [{"id": "VAL-1", "claim": "It greets", "checks": ["grep run main.py"]}]
    house.script("planner", reply(features=[{"id": "F-001", "title": "Greet", "claims": ["VAL-1"]}], contract=claims))
    commits = f"git -C '{house.project}' -c user.name=p -c user.email=p@localhost commit -qam mine"
    mine = f"echo \"print('mine')\" >'{house.project}/main.py'; {commits}"
    first = f"touch '{house.folder}/met'; {mine}; echo \"print('run')\" >main.py"
    house.script("worker", {"run": f"if [ -e '{house.folder}/met' ]; then {answer}; else {first}; fi"})
    return house.run([RUN_SH])


def test_a_worker_settles_what_a_person_and_a_run_changed_in_one_line(unbegun: House) -> None:
    """It is shown both sides, its result has both as parents, is validated and lands in the person's folder, with what else
    they changed; nobody is asked."""
    unbegun.write("other.txt", "old\n")
    unbegun.git("add", "-A")
    unbegun.git("commit", "-qm", "more")
    answer = "echo \"print('mine'); print('run')\" >main.py"
    done = meeting(unbegun, f"echo new >'{unbegun.project}/other.txt'; {answer}")
    assert done.code == 0, done
    assert (unbegun.project / "main.py").read_text() == "print('mine'); print('run')\n"
    assert (unbegun.project / "other.txt").read_text() == "new\n"
    last = [line for line in unbegun.ran() if line["role"] == "worker"][-1]
    told = unbegun.prompt(last["run"])
    assert told.index("Your task now") < told.index("+print('run')") < told.index("+print('mine')")
    theirs = unbegun.git("show", "-s", "--format=%P", last["commit"]).split()[1]
    assert unbegun.git("show", f"{theirs}:main.py") == "print('mine')"
    assert [line["role"] for line in unbegun.ran()] == ["planner", *["worker", "validator"] * 2, "validator", "curator"]
    assert not TORTURE or play(unbegun)["first"] is None


@pytest.mark.parametrize("answer", ["true", "echo >>else.txt"])
def test_what_a_worker_cannot_settle_is_a_persons_after_one_try(unbegun: House, answer: str) -> None:
    """It changed nothing, or not that file: their side and its own stay as they are, and the mission escalates."""
    done = meeting(unbegun, answer)
    assert (done.code, "ESCALATE unlanded" in done.out) == (3, True), done
    assert (unbegun.project / "main.py").read_text() == "print('mine')\n"
    assert sum(line["role"] == "worker" for line in unbegun.ran()) == 2
    assert unbegun.feature().status == "passed"


def test_each_lane_has_services_of_its_own(unconfined: House) -> None:
    """Two validations at the same time, each with a server of its own on a port of its own, that serves its own tree."""
    independent(unconfined, 2)
    meet = unconfined.folder / "meet"
    meet.mkdir()
    wait = f"for i in $(seq 1200); do [ $(ls '{meet}' | wc -l) = 2 ] && break; sleep 0.05; done"
    checks = {
        n: f"echo $PORT >>'{meet}/{n}'; {wait}; curl -fs localhost:$PORT/{n}.txt | grep -x {n}" for n in ("1", "2")
    }
    web = Service(name="web", run="exec python3 -m http.server $PORT", ready="curl -fs localhost:$PORT >/dev/null")
    claims = [Claim(id=f"VAL-{n}", text=f"Part {n} works", checks=[Check(run=checks[n], seconds=30)]) for n in checks]
    lay(unconfined, features.load(unconfined.layout), Contract(claims=claims, services=[web]))
    accept_all(unconfined)
    done = unconfined.run([RUN_SH, "--lanes", "2", "--for", "40s"])
    assert {(line["feature"], line["verdict"]) for line in unconfined.ran() if line["role"] == "validator"} >= {
        ("F-1", "green"),
        ("F-2", "green"),
    }, done
    assert len({(meet / n).read_text().split()[0] for n in checks}) == 2
    ended(unconfined)


def test_the_work_of_a_try_that_failed_is_there_for_the_next(unconfined: House) -> None:
    """Its tree is not taken from it by another lane's run, and the retry begins with what it had."""
    independent(unconfined, 2)
    unconfined.script("worker-F-1.1", {"run": "echo half >half.txt"}, {"fail": "wall", "reason": "too long"})
    unconfined.script("worker-F-1", {"run": "grep -x half half.txt && echo 1 >1.txt"})
    done = unconfined.run([RUN_SH, "--lanes", "2"])
    assert done.code == 0, done
    assert {"half.txt", "1.txt", "2.txt"} <= set(ended(unconfined).split())


@pytest.mark.parametrize("victim", ["the lane", *(["its run", "the first lane"] if TORTURE else [])])
def test_the_death_of_one_lane_stops_no_other(unconfined: House, victim: str) -> None:
    """kill -9 at work: the others go on; a further start finds nothing stuck, nothing twice."""
    number = FEATURES if TORTURE else 2
    independent(unconfined, number)
    slow = unconfined.folder / "slow"
    unconfined.script("worker-F-2", {"run": f"touch '{slow}'; sleep 1.5; rm -f '{slow}'; echo 2 >2.txt"})
    first = unconfined.loop("--lanes", str(number))
    until(slow.exists)
    mine = next(one for one in lease.alive(unconfined.layout) if one.feature == "F-2")
    parent = int(Path(f"/proc/{mine.pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill({"the lane": parent, "its run": mine.pid, "the first lane": first.pid}[victim], signal.SIGKILL)
    first.communicate(timeout=60)
    until(lambda: not tagged(mission.load(unconfined.layout).id))
    done = unconfined.run([RUN_SH])
    assert done.code == 0, done
    ended(unconfined)
    assert sum(line["verdict"] == "green" for line in unconfined.ran() if line["feature"]) == number
    commits = unconfined.git("log", "--format=%s", mission.load(unconfined.layout).branch)
    assert all(len(re.findall(rf"^F-{n}\b", commits, re.M)) <= 2 for n in range(1, number + 1))


@pytest.mark.skipif(not TORTURE, reason="long: HARNESS_TORTURE=1")
@pytest.mark.parametrize("seed", range(6))
def test_torture_any_lane_may_be_killed_at_any_moment(unconfined: House, seed: int) -> None:
    """Anything of the mission, again and again: a lane, a run, a guardian, the first lane. A start goes on each time; in the
    end each feature has passed, nothing is merged twice, and what the records say can be played back."""
    chance = random.Random(seed)
    independent(unconfined, 6)
    for _ in range(8):
        loop = unconfined.loop("--lanes", "3")
        time.sleep(chance.uniform(0.1, 2.0))
        victims = [loop.pid, *tagged(mission.load(unconfined.layout).id)]
        victims += [
            int(pid) for pid in subprocess.run(["pgrep", "-P", str(loop.pid)], capture_output=True).stdout.split()
        ]
        with suppress(ProcessLookupError):
            os.kill(chance.choice(victims), signal.SIGKILL)
        loop.communicate(timeout=120)
        until(lambda: not tagged(mission.load(unconfined.layout).id))
    done = unconfined.run([RUN_SH, "--lanes", "3"])
    assert done.code == 0, done
    assert {f"{n}.txt" for n in range(1, 7)} <= set(ended(unconfined).split())
    assert [one.status for one in features.load(unconfined.layout)] == ["passed"] * 6
    commits = unconfined.git("log", "--format=%s", mission.load(unconfined.layout).branch)
    assert all(len(re.findall(rf"^F-{n}\b", commits, re.M)) <= 2 for n in range(1, 7)), commits


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_run_sh_ends_every_lane(unconfined: House, number: signal.Signals) -> None:
    """With the code of the signal, and no process left."""
    independent(unconfined)
    for n in range(1, FEATURES + 1):
        unconfined.script(f"worker-F-{n}", {"run": f"touch '{unconfined.folder}/begun-{n}'; sleep 60"})
    loop = unconfined.loop("--lanes", "2")
    until(lambda: len(list(unconfined.folder.glob("begun-*"))) == 2)
    loop.send_signal(number)
    loop.communicate(timeout=60)
    assert loop.returncode == 128 + number
    until(lambda: not tagged(mission.load(unconfined.layout).id))
    assert [line["outcome"] for line in unconfined.ran()] == ["killed", "killed"]
    assert {unconfined.feature(f"F-{n}").status for n in range(1, FEATURES + 1)} == {"todo"}


def test_config_says_how_many_and_the_option_overrides_it(house: House) -> None:
    """One lane names each decision, more say which lane began what."""
    independent(house, 1)
    house.script("worker-F-1", {"run": "touch begun; sleep 60"})
    house.config('agent = "scripted"', "lanes = 2")
    for words, line in ([], "> lane [12]: worker F-1\n"), (["--lanes", "1"], "> NEXT worker F-1\n"):
        loop = house.loop(*words)
        assert loop.stdout is not None
        assert re.fullmatch(line, next(said for said in loop.stdout if said.startswith("> ")))
        until(lambda: any(lease.alive(house.layout)))
        loop.terminate()
        loop.communicate(timeout=60)


@pytest.mark.parametrize("words", [["--lanes", "0"], ["--lanes", "many"], ["--lanes"], ["--for", "5"], ["--for", "0m"]])
def test_an_option_that_says_nothing_starts_nothing(house: House, words: list[str]) -> None:
    """Exit 64 with the usage."""
    done = house.run([RUN_SH, *words])
    assert (done.code, "Usage: run.sh [--once | --lanes" in done.err) == (64, True), done
    assert house.ran() == []


@pytest.mark.parametrize("words", [["--lanes", "99"], ["--for", "5"], ["--once", "--lanes", "2"]])
def test_an_option_that_is_refused_begins_no_mission(unbegun: House, words: list[str]) -> None:
    """The folder is as it was."""
    before = listing(unbegun.project)
    done = unbegun.run([RUN_SH, *words])
    assert (done.code, done.out, listing(unbegun.project) == before) == (64, "", True), done


def test_init_takes_no_words_of_a_loop_from_a_person(unbegun: House) -> None:
    """They are for run.sh's own call of it."""
    done = unbegun.program("init", "--", "--lanes", "2")
    assert (done.code, "unexpected extra argument" in done.err, unbegun.state.exists()) == (64, True, False), done


def test_after_its_time_nothing_begins_and_what_has_begun_ends_well(house: House) -> None:
    """Exit 75, as for every start that shall be tried again later."""
    independent(house)
    for seconds in (3, 10, 30, 60):  # a start takes longer where the machine has other work; then nothing begins
        house.script("worker-F-1", {"run": f"sleep {seconds}; touch 1.txt"})
        done = house.run([RUN_SH, "--for", f"{seconds}s"])
        assert done.code == 75, done
        assert "TIME  " in done.out and "the time limit of --for is reached" in done.out
        if house.ran():
            break
    assert [(line["role"], line["outcome"]) for line in house.ran()] == [("worker", "ok")]
    assert "\nruns      1 in " in done.out


PYTHON_THAT_TELLS_NAPS = """#!/bin/bash
# An interpreter that writes down for how many seconds a loop waits each time.
case " $* " in *" --lull "*) for word; do [ "$last" != --lull ] || echo "$word"; last=$word; done ;; esac >>'{naps}'
exec "{python}" "$@"
"""


def test_a_wait_ends_with_the_time(house: House) -> None:
    """A start that waits for its turn is over before the next one comes."""
    house.config('agent = "scripted"', "[[on]]", 'event = "run"', "before = true", 'run = ["false"]')
    house.script("worker", {"run": "touch 1.txt"})
    python, naps = house.folder / "python", house.folder / "naps"
    python.write_text(PYTHON_THAT_TELLS_NAPS.format(naps=naps, python=sys.executable))
    python.chmod(0o755)
    for seconds in (4, 15, 60):  # a machine with other work may need more than 4 s to come to its first nap
        began = time.monotonic()
        done = house.run([RUN_SH, "--for", f"{seconds}s"], env={"HARNESS_PYTHON": str(python)})
        assert (done.code, time.monotonic() - began >= seconds - 1) == (75, True), done
        if any(told := [int(nap) for nap in naps.read_text().split()]):
            break
    assert 0 < sum(told) <= seconds + 1, "each of them as long as it would be without a limit"


def test_a_loop_that_finds_all_work_taken_goes_on_as_soon_as_that_ends(unconfined: House) -> None:
    """It does not sleep through its minute."""
    independent(unconfined, 1)
    enough = unconfined.folder / "enough"
    unconfined.script("worker-F-1", {"run": f"touch begun; until test -e '{enough}'; do sleep 0.05; done; touch 1.txt"})
    hand = unconfined.begin_role("worker", "F-1")
    until((unconfined.tree / "begun").exists)
    loop = unconfined.loop()
    assert loop.stdout is not None
    assert re.match(r"> WAIT for \d+-worker-F-1\S*: under way\n", loop.stdout.readline())
    enough.touch()
    hand.wait()
    out, _ = loop.communicate(timeout=60)
    assert (loop.returncode, "DONE  " in out) == (0, True), out


def test_the_header_names_the_options() -> None:
    """The header of run.sh is its help."""
    done = subprocess.run([RUN_SH, "help"], capture_output=True, text=True, check=True)
    assert "--lanes N: N features at once; --for 25m" in done.stdout


def test_a_run_that_is_killed_before_it_claims_anything_holds_up_no_other_lane(unconfined: House) -> None:
    """Its lane has the turn then, and ends once the others have; they do all the work."""
    independent(unconfined, 1)
    folder = Path(unconfined.layout.path(names.ROLES))
    folder.mkdir(exist_ok=True)
    role = CHECKOUT / "roles" / "worker.py"
    first = "import os, runpy\nif os.environ.get('HARNESS_LANE') == '1':\n    os.kill(os.getpid(), 9)\n"
    (folder / "worker.py").write_text(f"{first}runpy.run_path({str(role)!r}, run_name='__main__')\n")
    done = unconfined.run([RUN_SH, "--lanes", "2"])
    assert done.code == 75 or "lane 1: worker" not in done.out, done  # or the other lane came first
    assert "1.txt" in ended(unconfined).split()


def test_a_lane_that_waits_goes_on_with_the_turn_and_only_once_something_is_due(unconfined: House) -> None:
    """Not each time that a run ends: its looks would take the processor from the lanes that work."""
    passed, done = (unconfined.folder / name for name in ("passed", "done"))
    wait = "until test -e '{}'; do sleep 0.02; done"
    claims = [Claim(id="VAL-1", text="It is judged", checks=[Check(run=wait.format(passed), seconds=30)])]
    claims += [Claim(id="VAL-2", text="It works", checks=[Check(run="test -e 2.txt")])]
    found = [
        Feature(id="F-1", title="One", claims=["VAL-1"], status="validating"),
        Feature(id="F-2", title="Two", claims=["VAL-2"]),
    ]
    lay(unconfined, found, Contract(claims=claims))
    accept_all(unconfined)
    unconfined.script("worker-F-2", {"run": f"{wait.format(done)}; touch 2.txt"})
    hands = [unconfined.begin_role("validator", "F-1"), unconfined.begin_role("worker", "F-2")]
    until(lambda: len([one for one in lease.alive(unconfined.layout) if one.feature]) == 2)
    lock = os.open(unconfined.state / "locks/turn", os.O_RDWR | os.O_CREAT, 0o600)
    words = [sys.executable, "-P", str(PROGRAM), "next", "--lull", "60", unconfined.harness("next").out.strip()]
    with subprocess.Popen(
        words, cwd=unconfined.project, env={**unconfined.env, lane_turn.TURN: str(lock)}, pass_fds=[lock]
    ) as lull:
        passed.touch()
        hands[0].wait()
        time.sleep(0.5)
        assert lull.poll() is None, "the worker is still at it, so nothing is due"
        done.touch()
        assert lull.wait(60) == 0
    assert unconfined.harness("next").out == "NEXT validator F-2\n"
    other = os.open(unconfined.state / "locks/turn", os.O_RDWR)
    with pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(lock)
    os.close(other)
