"""Lanes: several features at once, by several loops of run.sh on one mission."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from harness.integrity import lease
from harness.model import mission
from harness.model.contract import Check, Claim, Contract
from harness.model.features import Feature
from tests.crash import TORTURE
from tests.missions import CHECKOUT, House, tagged, until
from tests.planned import accept_all, lay

RUN_SH = str(CHECKOUT / "run.sh")
FEATURES = 4


def independent(house: House, number: int = FEATURES) -> None:
    """A mission whose features need nothing of each other: each wants a file of its own."""
    names = [str(n) for n in range(1, number + 1)]
    claims = [Claim(id=f"VAL-{n}", text=f"Part {n} works", checks=[Check(run=f"test -f {n}.txt")]) for n in names]
    lay(house, [Feature(id=f"F-{n}", title=f"Part {n}", claims=[f"VAL-{n}"]) for n in names], Contract(claims=claims))
    accept_all(house)
    for n in names:
        house.script(f"worker-F-{n}", {"run": f"echo {n} >{n}.txt; harness note --tag TRICK 'part {n} is a file'"})


def ended(house: House) -> str:
    """Once run.sh has ended: nothing of the mission lives, holds a claim, or is in the way."""
    assert lease.alive(house.layout) == []
    assert tagged(mission.load(house.layout).id) == []
    doctor = house.run([RUN_SH, "doctor"])
    assert doctor.code == 0, doctor
    return house.git("show", "--name-only", "--format=", f"{mission.load(house.layout).branch}:")


def test_features_that_need_nothing_of_each_other_are_worked_on_at_once_and_all_land(unconfined: House) -> None:
    """Each worker waits for the other to begin, so one alone would never end; the branch has the work of both."""
    independent(unconfined)
    meet = unconfined.folder / "meet"
    meet.mkdir()
    for n in range(1, FEATURES + 1):
        wait = (
            f"touch '{meet}/{n}'; for i in $(seq 200); do [ $(ls '{meet}' | wc -l) -ge 2 ] && break; sleep 0.05; done"
        )
        unconfined.script(f"worker-F-{n}", {"run": f"{wait}; [ $(ls '{meet}' | wc -l) -ge 2 ] && echo {n} >{n}.txt"})
    done = unconfined.run([RUN_SH, "--lanes", "2"])
    assert done.code == 0, done
    assert {f"{n}.txt" for n in range(1, FEATURES + 1)} <= set(ended(unconfined).split())
    assert sum(line["role"] == "worker" for line in unconfined.ran()) == FEATURES
    assert done.out.count("DONE  ") == 1


def test_no_two_lanes_begin_the_same_run_and_none_is_refused(house: House) -> None:
    """Four lanes on four features: as many runs as one lane would make, and nothing on standard error."""
    independent(house)
    done = house.run([RUN_SH, "--lanes", "4"])
    assert (done.code, done.err) == (0, ""), done
    work = [(line["role"], line["feature"]) for line in house.ran() if line["feature"]]
    assert len(work) == len(set(work)) == 2 * FEATURES
    assert {line["outcome"] for line in house.ran()} == {"ok"}


def test_what_conflicts_is_done_again_on_top_of_what_landed(unconfined: House) -> None:
    """Both write the same line; who comes second is asked again, reads both sides, and nothing of the first is lost."""
    independent(unconfined, 2)
    meet = unconfined.folder / "meet"
    meet.mkdir()
    for n in (1, 2):
        wait = f"touch '{meet}/{n}'; for i in $(seq 200); do [ $(ls '{meet}' | wc -l) = 2 ] && break; sleep 0.05; done"
        unconfined.script(f"worker-F-{n}", {"run": f"{wait}; echo {n} >{n}.txt; echo {n} >>both.txt"})
    done = unconfined.run([RUN_SH, "--lanes", "2"])
    assert done.code == 0, done
    ended(unconfined)
    branch = mission.load(unconfined.layout).branch
    assert sorted(unconfined.git("show", f"{branch}:both.txt").split()) == ["1", "2"]
    second = [line for line in unconfined.ran() if line["role"] == "worker"][-1]
    prompt = Path(unconfined.layout.run(second["run"]).folder, "prompt.md").read_text()
    assert "both.txt" in prompt


@pytest.mark.parametrize("victim", ["the lane", *(["its run", "the first lane"] if TORTURE else [])])
def test_the_death_of_one_lane_stops_no_other(unconfined: House, victim: str) -> None:
    """kill -9 at work: the others go on; a further start finds nothing stuck, nothing twice."""
    independent(unconfined)
    slow = unconfined.folder / "slow"
    unconfined.script("worker-F-2", {"run": f"touch '{slow}'; sleep 1.5; rm -f '{slow}'; echo 2 >2.txt"})
    first = unconfined.loop("--lanes", "3")
    until(slow.exists)
    mine = next(one for one in lease.alive(unconfined.layout) if one.feature == "F-2")
    parent = int(Path(f"/proc/{mine.pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill({"the lane": parent, "its run": mine.pid, "the first lane": first.pid}[victim], signal.SIGKILL)
    first.communicate(timeout=60)
    until(lambda: not tagged(mission.load(unconfined.layout).id))
    done = unconfined.run([RUN_SH])
    assert done.code == 0, done
    ended(unconfined)
    assert sum(line["verdict"] == "green" for line in unconfined.ran() if line["feature"]) == FEATURES
    commits = unconfined.git("log", "--format=%s", mission.load(unconfined.layout).branch)
    assert all(len(re.findall(rf"^F-{n}\b", commits, re.M)) <= 2 for n in range(1, FEATURES + 1))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_run_sh_ends_every_lane(unconfined: House, number: signal.Signals) -> None:
    """With the code of the signal, and no process left."""
    independent(unconfined)
    for n in range(1, FEATURES + 1):
        unconfined.script(f"worker-F-{n}", {"run": f"touch '{unconfined.folder}/begun-{n}'; sleep 60"})
    loop = unconfined.loop("--lanes", "2")
    until(lambda: len(list(unconfined.folder.glob("begun-*"))) == 2)
    loop.send_signal(number)
    loop.communicate(timeout=30)
    assert loop.returncode == 128 + number
    until(lambda: not tagged(mission.load(unconfined.layout).id))
    assert [line["outcome"] for line in unconfined.ran()] == ["killed", "killed"]
    assert {unconfined.feature(f"F-{n}").status for n in range(1, FEATURES + 1)} == {"todo"}


def test_config_says_how_many_and_the_option_overrides_it(house: House) -> None:
    """One lane names each decision, more say which lane began what."""
    independent(house, 2)
    house.config('agent = "scripted"', "lanes = 2")
    assert "> lane 1: worker F-" in house.run([RUN_SH, "--for", "1s"]).out
    assert "> NEXT " in house.run([RUN_SH, "--lanes", "1"]).out


@pytest.mark.parametrize("words", [["--lanes", "0"], ["--lanes", "many"], ["--lanes"], ["--for", "5"], ["--for", "0m"]])
def test_an_option_that_says_nothing_starts_nothing(house: House, words: list[str]) -> None:
    """Exit 64 with the usage."""
    done = house.run([RUN_SH, *words])
    assert (done.code, "Usage: run.sh [--once | --lanes" in done.err) == (64, True), done
    assert house.ran() == []


def test_the_project_folder_has_room_for_one_lane(in_place: House) -> None:
    """Two agents in one folder would write over each other."""
    done = in_place.run([RUN_SH, "--lanes", "2"])
    assert (done.code, 'Take out workplace = "project"' in done.err) == (64, True), done


def test_after_its_time_nothing_begins_and_what_has_begun_ends_well(house: House) -> None:
    """Exit 75, as for every start that shall be tried again later."""
    independent(house)
    house.script("worker-F-1", {"run": "sleep 2; touch 1.txt"})
    done = house.run([RUN_SH, "--for", "1s"])
    assert done.code == 75, done
    assert [(line["role"], line["outcome"]) for line in house.ran()] == [("worker", "ok")]


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
    out, _ = loop.communicate(timeout=40)
    assert (loop.returncode, "DONE  " in out) == (0, True), out


def test_the_header_names_the_options() -> None:
    """The header of run.sh is its help."""
    done = subprocess.run([RUN_SH, "help"], capture_output=True, text=True, check=True)
    assert "--lanes N: N features at once; --for 25m" in done.stdout
