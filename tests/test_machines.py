"""Lanes on machines, whole missions through run.sh: the same tree and the same proof as at home, whatever dies in between."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from harness.mission import config, receipts, runs
from harness.state import names
from harness.state.layout import Layout
from tests.crash import TORTURE
from tests.missions import CHECKOUT, House, until
from tests.run.machines.cluster import cluster
from tests.test_lanes import ended, independent

RUN_SH = str(CHECKOUT / "run.sh")
HERE = ("[machines.here]", "command = []", "lanes = 3")
BEAT = {"HARNESS_BEAT_SECONDS": "10"}  # six beats are more than a start takes, whatever else runs
SOONER = {"HARNESS_BEAT_SECONDS": "1"}  # a machine that lost three runs in a row rests for twelve beats
FEATURES = 4 if TORTURE else 2
KILLS = 200


def proof(house: House) -> tuple[str, set[tuple[str, str, str]], list[str]]:
    """(the tree, the receipts as claim, phase and verdict, the notes without who made them)."""
    found = set()
    for result in runs.finished(house.layout):
        for one in receipts.load(house.layout.run(result.run).receipts):
            found |= (
                {(one.claim, one.phase, one.verdict)} if one.phase != "blame" else set()
            )  # its order is that of lanes
    notes = sorted(line.rpartition("] ")[2] for line in house.read("memory/raw.md").splitlines() if "is a file" in line)
    return house.git("rev-parse", "HEAD^{tree}"), found, notes


@pytest.fixture
def words(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[str]]:
    """The options for three lanes: at home, through the empty prefix, or on three workers of Dask."""
    if request.param == "dask":
        pytest.importorskip("distributed", reason="Dask is not installed: make setup")
        with cluster(tmp_path / "dask", {"one": 1, "two": 1, "three": 1}) as own:
            yield ["--lanes", "3", "--on", own.address]
    else:
        lanes = ["--lanes", "3" if TORTURE else "2"]
        yield {"home": lanes, "here": [*lanes, "--on", "here"]}[request.param]


@pytest.mark.parametrize("words", ["home", "here", "dask"], indirect=True)
def test_three_lanes_anywhere_give_the_same_as_one_here(house: House, tmp_path: Path, words: list[str]) -> None:
    """Tree, receipts and notes; only the host in the receipts differs."""
    independent(house, FEATURES)
    house.config('agent = "scripted"', *HERE)
    house.env |= BEAT if "here" in words else {}
    done = house.run([RUN_SH, *words])
    assert done.code == 0, done
    ended(house)
    there = proof(house)
    found = (receipts.load(house.layout.run(result.run).receipts) for result in runs.finished(house.layout))
    assert (words[-1] in {one.host for rows in found for one in rows}) == ("--on" in words)

    (tmp_path / "other").mkdir()
    other = House(tmp_path / "other", {**house.env})
    other.repository()
    other.begin()
    independent(other, FEATURES)
    assert other.run([RUN_SH]).code == 0
    assert proof(other) == there


def test_options_name_machines_that_there_are(house: House) -> None:
    """With room for as many lanes; each line says what there is."""
    house.config('agent = "scripted"', *HERE, "[machines.there]", "command = []")
    for words, why in (
        (["--on", "elsewhere"], "no [machines.elsewhere] in config.toml. There are: here, there."),
        (["--on", "here,there", "--lanes", "5"], "here, there take 4 lanes"),
        (["--on"], "Usage: run.sh"),
    ):
        done = house.run([RUN_SH, *words])
        assert (done.code, why in done.err) == (64, True), done
    layout = Layout(str(house.project))
    assert config.load(layout).machines.keys() == {"here", "there"}


def test_a_machine_without_the_program_is_left_out(house: House) -> None:
    """With one line, also where it is that of the first lane; the mission ends as without it. With no machine left, that is
    the end of the loop."""
    independent(house, 1)
    house.config('agent = "scripted"', *HERE, "[machines.bare]", 'command = ["env"]', 'program = "no-such-harness"')
    house.env |= BEAT
    alone = house.run([RUN_SH, "--on", "bare"])
    assert (alone.code, house.ran()) == (69, []), alone
    done = house.run([RUN_SH, "--lanes", "2", "--on", "bare,here"])
    assert done.code == 0 and "DONE" in done.out, done
    for one in (alone, done):
        assert one.err.count("The machine bare lacks the program no-such-harness") == 1, one
        assert "set program in [machines.bare]" in one.err
    ended(house)


def test_doctor_tries_each_machine_and_spends_nothing(house: House) -> None:
    """One that is ready, one that cannot be reached, and one that lacks an agent."""
    house.config('agent = "scripted"', *HERE, "[machines.gone]", 'command = ["sh", "-c", "echo no route >&2; exit 1"]')
    done = house.program("doctor", "machines")
    assert (
        done.code != 0,
        "here: ready" in done.out,
        "gone: the machine gone cannot be reached: no route" in done.out,
    ) == (True,) * 3, done
    house.config('agent = "codex"', 'trust = "full"', *HERE)
    done = house.program("doctor", "machines", PATH="/usr/bin:/bin")
    assert "here: codex: " in done.out, done
    assert house.ran() == []


def ours(house: House, *words: str) -> list[int]:
    """The processes of this mission, at home and there, whose command has one of these words. What an agent starts is its
    own: its end costs an attempt."""
    found, mark = list[int](), f"HOME={house.folder}/".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (folder / "cmdline").read_bytes()
            if mark in (folder / "environ").read_bytes() and any(word.encode() in line for word in words):
                found.append(int(folder.name))
    return found


@pytest.fixture
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[list[str], Callable[[], object] | None]]:
    """(the options for three lanes there, what cuts the power of all that is no process of the mission)."""
    if request.param == "dask":
        pytest.importorskip("distributed", reason="Dask is not installed: make setup")
        with cluster(tmp_path / "dask", {"one": 2, "two": 2}) as own:
            yield ["--lanes", "3", "--on", own.address], own.restart
    else:
        yield ["--on", "here"], None


@pytest.mark.parametrize("machine", ["here", "dask"], indirect=True)
def test_kills_at_random_moments_lose_and_repeat_nothing(
    house: House, machine: tuple[list[str], Callable[[], object] | None]
) -> None:
    """Of any process of the mission, at home and there, and of Dask's: every feature passes once, every acknowledged note is
    kept once, and nothing is left."""
    options, cut_power = machine
    chance = random.Random(7)
    independent(house, 8)
    for n in range(1, 9):
        note = f"r=$RANDOM$RANDOM; harness note --tag TRICK part {n} $r && echo ACK-$r"
        house.script(f"worker-F-{n}", {"run": f"sleep 0.$RANDOM; {note}; echo {n} >{n}.txt; sleep 0.$RANDOM"})
    house.config('agent = "scripted"', *HERE, "[limits]", "max_runs = 1000", "stall_after = 1000")
    house.env |= SOONER
    killed = 0
    end = time.monotonic() + 600 + 4 * KILLS
    code = -1
    while code != 0:
        assert time.monotonic() < end, f"the mission is not done after {killed} kills"
        loop = house.loop(*options)
        while ours(house, "run.sh"):
            time.sleep(chance.uniform(0.05, 0.8))
            victims = ours(house, "harness.run", "machine\0--beat", *["run.sh"] * (chance.random() < 0.1))
            if cut_power and killed < KILLS and chance.random() < 0.05:
                cut_power()
                killed += 1
            elif killed < KILLS and victims:
                with suppress(ProcessLookupError):
                    os.kill(chance.choice(victims), signal.SIGKILL)
                    killed += 1
        out, err = loop.communicate()
        code = loop.returncode
        assert code in (0, 75, -9, 137), (code, out, err)
    ended(house)
    said = "".join(path.read_text() for path in Path(house.layout.path(names.RUNS)).glob("*/stream.jsonl"))
    acknowledged = re.findall(r"ACK-(\d+)", said)
    kept = [house.read(name) for name in (names.RAW, names.MEMORY, names.ARCHIVE) if (house.state / name).exists()]
    assert acknowledged and all(any(f" {one}" in text for text in kept) for one in acknowledged), kept
    runs_notes = "".join(path.read_text() for path in Path(house.layout.path(names.RUNS)).glob("*/notes.jsonl"))
    assert {runs_notes.count(f" {one}") for one in acknowledged} == {1}
    assert {f"{n}.txt" for n in range(1, 9)} <= set(house.git("ls-tree", "--name-only", "HEAD").split())
    passed = [line["feature"] for line in house.ran() if line["role"] == "validator" and line.get("verdict") == "green"]
    assert sorted(one for one in passed if one) == sorted({one for one in passed if one})
    assert all(house.feature(f"F-{n}").attempts <= 1 for n in range(1, 9))
    assert killed
    until(lambda: ours(house, "machine\0--beat") == [])
