"""Whole missions for the sweeps: each kept as it was before each of its runs, and taken to DONE from whatever was recovered."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from harness.mission import runs
from harness.state import files, names, raw
from harness.state.layout import Layout
from tests import compacting, kill_sweep
from tests.kill_sweep import RUN_SH, Template
from tests.missions import House, differences, listing, until
from tests.planned import reply

FOLDERS = ("my project", "state", "identity", "temporary", "acks")
TRICK = "stop the dev server before you run e2e tests: they also need port 3000"
NOTE = 'text="{text} $(date +%s%N)"; harness note --tag {tag} "$text" && echo "{tag}: $text" >> acknowledged'
WAIT = """echo 2 > 2.txt; echo mine > "$TMPDIR/mine"; echo "$TMPDIR" > begun
until test -e enough -o ! -e .harness/hold; do sleep 0.05; done"""  # a worker that waits where a test holds it


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
    os.makedirs(other.path(names.LOCKS))
    os.makedirs(os.path.dirname(other.path(names.RAW)))
    raw.append(other, "worker", "F-001", [("FAIL", TRICK)])
    compacting.compact(other, str(house.identity), "m-0", "run-1", "2026-04-24")
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
        """The notes before this run, those that its agent was told are there, and those of a person."""
        paths = [self.house.tree / "acknowledged"] if (self.house.state / "mission.json").exists() else []
        told = [path.read_text() for path in (*paths, self.acks) if path.exists()]
        return [*self.notes[name], *(line for text in told for line in text.split("\n")[:-1])]

    @property
    def acks(self) -> Path:
        """Where a person writes down the notes that were acknowledged."""
        return self.house.folder / "acks" / "notes"

    def settled(self, name: str) -> tuple[list[str], str]:
        """Settle the run that was killed; the faults, and the digest of the state."""
        notes, has_work = self.acknowledged(name), (self.house.tree / "1.txt").exists()
        found = kill_sweep.recovered(self.house) + kill_sweep.faults(self.house, notes, taken=False)
        found += ["the work of the agent is gone"] if has_work and not kill_sweep.is_kept(self.house, "1.txt") else []
        return found, kill_sweep.digest(self.house)

    def to_done(self, name: str, *, taken: bool = True) -> list[str]:
        """Go on with run.sh; the faults at the end. `taken`: every tree has been worked in since."""
        notes = self.acknowledged(name)
        done = self.house.run([RUN_SH])
        return [f"run.sh ended with {done}"] if done.code else kill_sweep.faults(self.house, notes, taken=taken)


KNOWN = {  # faults that stand, as patterns of `point: fault`, each with its reason
    r"(?s)run\.sh ended with exit 3.*ESCALATE setup": "the setup itself was killed, which is a red setup: a person decides",
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
        code, status = self.role.wait(60), self.house.feature("F-002").status
        return found + ([] if (code, status) == (0, "validating") else [f"the run beside: {code}, {status}"])

    def to_done(self, template: str) -> list[str]:
        """Go on with run.sh, without waiting workers; the faults at the end."""
        self.end()
        return self.missions.to_done(template, taken=False)

    def end(self) -> None:
        """End what is left of this run; from now on a worker of F-002 does not wait."""
        (self.house.state / "hold").unlink(missing_ok=True)
        if self.role is not None and self.role.poll() is None:
            os.killpg(self.role.pid, signal.SIGTERM)
            self.role.wait(60)
