"""A run that is killed at any disk call loses nothing: each role of a mission, under strace.

A sample of the points in the suite, each call's first, middle and last; HARNESS_TORTURE=1 sweeps all of them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.memory import raw
from harness.model import runs
from harness.settle import curator
from harness.store import files
from harness.store.layout import Layout
from tests import kill_sweep
from tests.crash import TORTURE
from tests.kill_sweep import RUN_SH, Point, Sweep, Template
from tests.missions import Done, House, differences, enter, listing, until
from tests.planned import reply

pytestmark = pytest.mark.skipif(bool(kill_sweep.why_not()), reason=kill_sweep.why_not() or "strace works")

Recover = Callable[[Done], tuple[list[str], str]]
FEWEST = 10  # kill points of a run; a sweep with fewer has not seen what it settles
FOLDERS = ("my project", "state", "identity", "temporary")
TRICK = "stop the dev server before you run e2e tests: they also need port 3000"
NOTE = 'text="{text} $(date +%s%N)"; harness note --tag {tag} "$text" && echo "{tag}: $text" >> acknowledged'
WAIT = """echo 2 > 2.txt; echo mine > "$TMPDIR/mine"; echo "$TMPDIR" > begun
until test -e enough -o ! -e .harness/hold; do sleep 0.05; done"""  # a worker that waits where a test holds it
SHORT = {  # each run, and its point in the suite: such a point proves that there are as many before it
    "planner": Point("fsync", 60),
    "worker F-001": Point("rename", 17),
    "validator F-001": Point("fsync", 35),
    "validator": Point("rename", 13),
    "curator": Point("fsync", 22),
}
GOES_ON = ("worker F-001", "curator")  # the runs from which the suite goes on to DONE, too


def noting(tag: str, text: str) -> str:
    """A shell line that takes a note of its own, and writes it down once it is acknowledged, in a file that git ignores."""
    return NOTE.format(tag=tag, text=text)


def plan(*numbers: int) -> dict[str, Any]:
    """A plan of independent features, each with a claim that its file exists."""
    made = [{"id": f"F-00{n}", "title": f"Part {n}", "claims": [f"VAL-{n}"]} for n in numbers]
    claims = [{"id": f"VAL-{n}", "claim": f"Part {n} works", "checks": [{"run": f"test -f {n}.txt"}]} for n in numbers]
    return reply(features=made, contract=claims, setup="test -f main.py")


def scripts(house: House, *numbers: int) -> None:
    """Agents that take a mission with these features to DONE, and note as they go."""
    many = [{"tag": "CONTEXT", "text": f"number {n} of the things to know about this program"} for n in range(11)]
    many.append({"tag": "FAIL", "text": TRICK})
    house.script("planner", {"run": noting("DECISION", "one part after the other")}, plan(*numbers))
    for n in numbers:
        work = f"echo {n} > {n}.txt; {noting('CONTEXT', 'the file is there')}" if n == 1 else WAIT
        house.script(f"worker-F-00{n}", {"run": work}, reply(status="implemented", notes=many if n == 1 else []))
    aimed = {"claim": "VAL-1", "run": "test -s 1.txt", "why": "it may be empty"}
    house.script("validator-F-001", {"run": noting("CONTEXT", "the file was looked at")}, reply(checks=[aimed]))
    house.script("validator", reply(checks=[]))


def begin(house: House, *numbers: int) -> None:
    """A mission that nothing was planned for; workers of another mission failed as one of this will."""
    house.repository(commit=False)
    house.write(".gitignore", "acknowledged\nbegun\nenough\n")
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
    """One mission, kept before each of its runs, up to the `last`: the templates of the sweeps, by what is due."""

    def __init__(
        self, folder: Path, env: dict[str, str], *numbers: int, base: tuple[str, ...] = (), last: str = ""
    ) -> None:
        self.house, self.kept = House(folder, env), dict[str, Template]()
        self.notes: dict[str, list[str]] = {}
        self.house.base = base
        begin(self.house, *numbers)
        due = self.due()
        while due.startswith("NEXT"):
            name = due.removeprefix("NEXT ").strip()
            assert name not in self.kept, f"{name} is due again"
            self.kept[name] = Template(folder, FOLDERS, folder / "kept" / name)
            self.notes[name] = [line.rpartition("] ")[2] for line in kill_sweep.notes_of(self.house)]
            if name == last:
                return
            done = self.house.run([RUN_SH, *name.split(" ")])
            assert done.code == 0, done
            due = self.due()
        assert due == "DONE", due

    def due(self) -> str:
        """What `harness next` says."""
        return self.house.harness("next").out.rstrip("\n")

    def acknowledged(self, name: str) -> list[str]:
        """The notes before this run, and those that its agent was told are there."""
        path = self.house.tree / "acknowledged"
        return [*self.notes[name], *(path.read_text().split("\n")[:-1] if path.exists() else [])]

    def settled(self, name: str, done: Done) -> tuple[list[str], str]:
        """Settle the run that was killed; the faults, and the digest of the state."""
        notes, has_work = self.acknowledged(name), (self.house.tree / "1.txt").exists()
        found = kill_sweep.recovered(self.house) + kill_sweep.faults(self.house, notes, taken=False)
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


KNOWN = {  # faults that stand, as patterns of `point: fault`, each with its reason
    r"(?s)run\.sh ended with exit 3.*ESCALATE setup": "the setup itself was killed, which is a red setup: a person decides",
}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], tuple[Path, dict[str, str]]]]:
    """Makes folders for missions; this process gets the environment of the last one."""
    with pytest.MonkeyPatch.context() as patch:

        def make(name: str) -> tuple[Path, dict[str, str]]:
            folder = tmp_path_factory.mktemp(name)
            return folder, enter(patch, folder)

        yield make


@pytest.fixture(scope="module")
def missions(here: Callable[[str], tuple[Path, dict[str, str]]]) -> Missions:
    """A mission with one feature, from its plan to its last curation."""
    return Missions(*here("one"), 1)


@pytest.fixture(scope="module")
def unconfined(here: Callable[[str], tuple[Path, dict[str, str]]]) -> Missions:
    """The same on a machine that cannot confine."""
    return Missions(*here("open"), 1, base=('confine = "off"',))


class Swept:
    """Sweeps over the points of a run, or over the one of the suite; fails with every fault that is not known."""

    def __init__(self, show: Callable[[str], object]) -> None:
        self.show = show

    def __call__(self, sweep: Sweep, name: str, recover: Recover, go_on: Callable[[], list[str]]) -> None:
        points = sweep.points() if TORTURE else [SHORT[name]]
        assert max(len(points), points[-1].number) >= FEWEST
        found = sweep.run(points, recover, go_on, self.show)
        self.show(repr(found))
        assert len(found.points) > len(points) // 2, f"most points were missed: {found}"
        assert found.unexpected(KNOWN) == [], found


@pytest.fixture
def swept(capsys: pytest.CaptureFixture[str]) -> Swept:
    """Sweeps that show how far they are: all points take minutes."""

    def show(line: str) -> None:
        with capsys.disabled():
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    return Swept(show if TORTURE else lambda line: None)


@pytest.mark.parametrize("name", SHORT)
def test_a_run_that_is_killed_at_any_disk_call_loses_nothing(missions: Missions, swept: Swept, name: str) -> None:
    """Whichever process dies at it, the next start settles the run, and the mission goes on to DONE."""
    go_on = TORTURE or name in GOES_ON
    swept(
        missions.sweep(name),
        name,
        lambda done: missions.settled(name, done),
        lambda: missions.to_done(name) if go_on else [],
    )


@pytest.mark.skipif(not TORTURE, reason="long: HARNESS_TORTURE=1")
@pytest.mark.parametrize("name", ["worker F-001", "validator F-001"])
def test_a_run_that_is_not_confined_loses_nothing_either(unconfined: Missions, swept: Swept, name: str) -> None:
    """It keeps copies of what its agent may change, and recovery puts those back."""
    swept(
        unconfined.sweep(name),
        name,
        lambda done: unconfined.settled(name, done),
        lambda: unconfined.to_done(name),
    )


# ---- two at once

LEASES = True  # whether a run holds a lease in place of the mission lock, so that several may be open
BESIDE = {
    "worker F-001": "worker F-001",
    "planner": "worker F-001",
    "validator F-001": "validator F-001",
    "curator": "worker F-002",
}


class Beside:
    """A worker's run of F-002 whose agent waits: it is alive while another run is killed and settled."""

    def __init__(self, missions: Missions) -> None:
        self.missions, self.house = missions, missions.house
        self.role: subprocess.Popen[bytes] | None = None

    def begin(self, template: str) -> None:
        """Lay out the mission with this run open in it, and what it has on disk."""
        self.end()
        self.missions.kept[template].restore()
        (self.house.state / "hold").touch()
        self.role = self.house.begin_role("worker", "F-002", session=True)
        until(lambda: bool(self.trees()))
        self.run = next(iter(runs.open_runs(self.house.layout)))
        self.lock, self.tree = Path(self.house.layout.run(self.run).lock), self.trees()[0]
        until(lambda: (self.tree / "begun").read_text() != "")
        self.temporary = Path((self.tree / "begun").read_text().strip())
        self.writing = self.house.state / f"features.json.{self.role.pid}.tmp"
        self.writing.write_text("half")
        assert {"role", "feature", "tree"} <= json.loads(self.lock.read_bytes()).keys()
        self.before = self.seen()

    def trees(self) -> list[Path]:
        """The trees in which this run's agent has begun."""
        return [path.parent for path in self.house.tree.parent.glob("tree-*/begun")]

    def seen(self) -> dict[str, bytes]:
        """All that belongs to this run: its lease, its temporary files, its feature, its tree."""
        found = {f"tree/{name}": data for name, data in listing(self.tree, ".git", ".harness").items()}
        found |= {f"temporary/{name}": data for name, data in listing(self.temporary).items()}
        found |= {path.name: path.read_bytes() for path in (self.lock, self.writing) if path.exists()}
        found["feature"] = self.house.feature("F-002").status.encode()
        found["lease"] = b"free" if files.is_free(str(self.lock)) else b"held"
        return found

    def settled(self, template: str) -> tuple[list[str], str]:
        """Settle the other run, which was killed, then let this one end; the faults, and the digest of the state."""
        notes = self.missions.acknowledged(template)
        found = kill_sweep.recovered(self.house, [self.run]) + [
            fault
            for fault in kill_sweep.faults(self.house, notes, ["F-002"], taken=False)
            if not fault.startswith("left over")  # that goes with the first start that finds no other run alive
        ]
        found += [f"of the run beside: {path}" for path in differences(self.before, self.seen())]
        found += self.ended() + kill_sweep.recovered(self.house)
        return found + kill_sweep.faults(self.house, notes, taken=False), kill_sweep.digest(self.house)

    def ended(self) -> list[str]:
        """Let the agent of this run end; the faults of how the run settles."""
        assert self.role is not None
        found = ["the run beside had ended"] if self.role.poll() is not None else []
        self.writing.unlink(missing_ok=True)
        (self.tree / "enough").touch()
        code, status = self.role.wait(20), self.house.feature("F-002").status
        return found + ([] if (code, status) == (0, "validating") else [f"the run beside: {code}, {status}"])

    def to_done(self, template: str) -> list[str]:
        """Go on with run.sh, without waiting workers; the faults at the end."""
        self.end()
        return self.missions.to_done(template)

    def end(self) -> None:
        """End what is left of this run; from now on a worker of F-002 does not wait."""
        (self.house.state / "hold").unlink(missing_ok=True)
        if self.role is not None and self.role.poll() is None:
            os.killpg(self.role.pid, signal.SIGTERM)
            self.role.wait(20)


@pytest.fixture(scope="module")
def pair(here: Callable[[str], tuple[Path, dict[str, str]]]) -> Missions:
    """A mission with two independent features."""
    return Missions(*here("two"), 1, 2, last="" if TORTURE else "worker F-001")


@pytest.fixture
def beside(pair: Missions) -> Iterator[Beside]:
    """A run of the second feature, which ends with the test."""
    made = Beside(pair)
    yield made
    made.end()


leases = pytest.mark.skipif(not LEASES, reason="one run at a time holds the mission lock, so a second one is refused")


@leases
def test_a_start_on_a_feature_that_a_run_has_claimed_says_who_holds_it(pair: Missions, beside: Beside) -> None:
    """Exit 75; the run that holds it goes on."""
    beside.begin("worker F-001")
    done = pair.house.run([RUN_SH, "worker", "F-002"])
    assert (done.code, beside.run in done.err) == (75, True), done
    assert beside.ended() == []


@leases
@pytest.mark.parametrize("name", BESIDE if TORTURE else ["worker F-001"])
def test_a_run_that_is_killed_leaves_the_run_beside_it_alone(
    pair: Missions, beside: Beside, swept: Swept, name: str
) -> None:
    """Its lease, its temporary files, its feature and its tree are untouched, and it settles green once its agent ends."""
    template = BESIDE[name]
    sweep = Sweep(
        [RUN_SH, *name.split(" ")], lambda: beside.begin(template), where=pair.house.project, env=pair.house.env
    )
    swept(sweep, name, lambda done: beside.settled(template), lambda: beside.to_done(template))
