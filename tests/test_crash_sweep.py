"""A run that is killed at any disk call loses nothing: each role of a mission, under strace.

A sample of the points in the suite, each call's first, middle and last; HARNESS_TORTURE=1 sweeps all of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.memory import raw
from harness.settle import curator
from harness.store.layout import Layout
from tests import kill_sweep
from tests.crash import TORTURE
from tests.kill_sweep import RUN_SH, Point, Sweep, Template
from tests.missions import SURROUNDINGS, Done, House, surroundings
from tests.planned import reply

pytestmark = pytest.mark.skipif(bool(kill_sweep.why_not()), reason=kill_sweep.why_not() or "strace works")

FEWEST = 10  # kill points of a run; a sweep with fewer has not seen what it settles
FOLDERS = ("my project", "state", "identity", "temporary")
TRICK = "stop the dev server before you run e2e tests: they also need port 3000"
NOTE = "harness note --tag {tag} '{text}' && echo '{text}' >> acknowledged"
STAGES = ("planner", "worker F-001", "validator F-001", "validator", "curator")


def noting(tag: str, text: str) -> str:
    """A shell line that writes down a note once it is acknowledged, in a file that git ignores."""
    return NOTE.format(tag=tag, text=text)


def plan(*numbers: int) -> dict[str, Any]:
    """A plan of independent features, each with a claim that its file exists."""
    made = [{"id": f"F-00{n}", "title": f"Part {n}", "claims": [f"VAL-{n}"]} for n in numbers]
    claims = [{"id": f"VAL-{n}", "claim": f"Part {n} works", "checks": [{"run": f"test -f {n}.txt"}]} for n in numbers]
    return reply(features=made, contract=claims, setup="test -f main.py")


def scripts(house: House, *numbers: int) -> None:
    """Agents that take a mission with these features to DONE, and note as they go."""
    many = [{"tag": "CONTEXT", "text": f"number {n} of the things to know about this program"} for n in range(11)]
    house.script("planner", {"run": noting("DECISION", "one part after the other")}, plan(*numbers))
    for n in numbers:
        work = f"echo {n} > {n}.txt; {noting('FAIL', TRICK)}" if n == 1 else f"echo {n} > {n}.txt"
        house.script(f"worker-F-00{n}", {"run": work}, reply(status="implemented", notes=many if n == 1 else []))
    aimed = {"claim": "VAL-1", "run": "test -s 1.txt", "why": "it may be empty"}
    house.script("validator-F-001", {"run": noting("CONTEXT", "the file was looked at")}, reply(checks=[aimed]))
    house.script("validator", reply(checks=[]))


def begin(house: House, *numbers: int) -> None:
    """A mission that nothing was planned for; workers of another mission failed as one of this will."""
    house.repository(commit=False)
    house.write(".gitignore", "acknowledged\n")
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "begin")
    other = Layout(str(house.folder / "other"))
    os.makedirs(other.locks)
    os.makedirs(os.path.dirname(other.raw))
    raw.append(other, "worker", "F-001", [("FAIL", TRICK)])
    curator.compact(other, str(house.identity), "m-0", "run-1", "2026-04-24")
    scripts(house, *numbers)
    done = house.run([RUN_SH, "init", "--quietly"])
    assert done.code == 0, done
    house.config('agent = "scripted"')


class Missions:
    """One mission, kept before each of its runs: the templates of the sweeps, by what is due."""

    def __init__(self, folder: Path, env: dict[str, str], *numbers: int, base: tuple[str, ...] = ()) -> None:
        self.house, self.kept = House(folder, env), dict[str, Template]()
        self.notes: dict[str, list[str]] = {}
        self.house.base = base
        begin(self.house, *numbers)
        due = self.due()
        while due.startswith("NEXT"):
            name = due.removeprefix("NEXT ").strip()
            assert name not in self.kept, f"{name} is due again"
            self.kept[name] = Template(folder, FOLDERS, folder / "kept" / name)
            self.notes[name] = [line.partition(" ")[2] for line in self.texts()]
            done = self.house.run([RUN_SH, "--once"])
            assert done.code == 0, done
            due = self.due()
        assert due == "DONE", due

    def due(self) -> str:
        """What `harness next` says."""
        return self.house.harness("next").out.rstrip("\n")

    def texts(self) -> list[str]:
        """The acknowledged notes so far, each with its tag."""
        return [line.rpartition("] ")[2] for line in kill_sweep.notes_of(self.house)]

    def acknowledged(self, name: str) -> list[str]:
        """The notes before this run, and those that its agent was told are there."""
        path = self.house.tree / "acknowledged"
        return [*self.notes[name], *(path.read_text().split("\n")[:-1] if path.exists() else [])]

    def settled(self, name: str, done: Done) -> tuple[list[str], str]:
        """Settle the run that was killed; the faults, and the digest of the state."""
        notes, has_work = self.acknowledged(name), (self.house.tree / "1.txt").exists()
        found = kill_sweep.recovered(self.house) + kill_sweep.faults(self.house, notes)
        found += ["the work of the agent is gone"] if has_work and not kill_sweep.is_kept(self.house, "1.txt") else []
        return found, kill_sweep.digest(self.house)

    def to_done(self, name: str) -> list[str]:
        """Go on with run.sh; the faults at the end."""
        notes = self.acknowledged(name)
        done = self.house.run([RUN_SH])
        return [f"run.sh ended with {done}"] if done.code else kill_sweep.faults(self.house, notes)

    def sweep(self, name: str) -> Sweep:
        """The sweep over the run that is due there."""
        words = [RUN_SH, *name.split(" ")]
        return Sweep(words, self.kept[name].restore, where=self.house.project, env=self.house.env)


def sample(points: Sequence[Point], most: int) -> list[Point]:
    """Spread over all calls and all of the run; every point under torture."""
    step = 1 if TORTURE else max(1, -(-len(points) // most))
    return list(points[step // 2 :: step])


KNOWN: dict[str, str] = {}  # faults that stand, as patterns of `point: fault`, each with its reason


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], tuple[Path, dict[str, str]]]]:
    """Makes folders for missions; this process gets the environment of the last one."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(SURROUNDINGS):
                patch.delenv(name)

        def make(name: str) -> tuple[Path, dict[str, str]]:
            folder = tmp_path_factory.mktemp(name)
            env = surroundings(folder)
            for key, value in env.items():
                patch.setenv(key, value)
            return folder, env

        yield make


@pytest.fixture(scope="module")
def missions(here: Callable[[str], tuple[Path, dict[str, str]]]) -> Missions:
    """A mission with one feature, from its plan to its last curation."""
    return Missions(*here("one"), 1)


@pytest.mark.parametrize("name", STAGES)
def test_a_run_that_is_killed_at_any_disk_call_loses_nothing(missions: Missions, name: str) -> None:
    """Whichever process dies at it, the next start settles the run, and the mission goes on to DONE."""
    sweep = missions.sweep(name)
    points = sweep.points()
    assert len(points) >= FEWEST
    found = sweep.run(
        sample(points, 4),
        lambda done: missions.settled(name, done),
        lambda: missions.to_done(name),
        kill_sweep.progress if TORTURE else lambda line: None,
    )
    assert found.points, found
    assert found.unexpected(KNOWN) == [], found
