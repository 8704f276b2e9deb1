"""The operations that the sweeps interrupt: what lies there before each, its program, and what must hold behind it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from harness.base.encoding import decode
from harness.replay.upkeep import snapshots
from harness.state import files, names
from tests import kill_sweep
from tests.kill_sweep import RUN_SH
from tests.missions import CHECKOUT, Done, House, until
from tests.planned import reply
from tests.torture.whole import Beside, Missions, plan, scripts

APPENDED = "the port is 8123"
COMPACTING = """import sys; sys.path.insert(0, {checkout!r})
from harness.base.exits import guarded
from harness.memory.backlog import BatchLimit
from harness.state.layout import Layout
from tests import compacting
def work():
    bound = BatchLimit(entries=6, bytes=10**6)
    compacting.compact_all(Layout({project!r}), {identity!r}, "m-1", "run-9", "2026-04-24", bound=bound)
    return 0
sys.exit(guarded(work))
"""


class Operation:
    """A program on a mission as it was before the run `at`, that a sweep interrupts at any call; `written` counts the entries
    that were acknowledged, over all interruptions."""

    at, words = "worker F-001", [RUN_SH]

    def __init__(self, missions: Missions) -> None:
        self.missions, self.house = missions, missions.house
        self.written = 0

    @property
    def where(self) -> Path:
        """The folder in which the program starts."""
        return self.house.project

    def prepare(self) -> None:
        """Lay out what the program works on."""
        self.missions.kept[self.at].restore()

    def meanwhile(self, lives: Callable[[], bool]) -> None:
        """What others do beside the program."""

    def faults(self, done: Done) -> list[str]:
        """What is wrong with what this operation itself writes, once the mission is recovered."""
        return []

    def recover(self, done: Done) -> tuple[list[str], str]:
        """Let the next start recover; the faults, and the digest of the state."""
        self.written += len(self.missions.acknowledged(self.at))
        found, state = self.missions.settled(self.at)
        return found + self.faults(done), state

    def go_on(self) -> list[str]:
        """Take the mission to DONE from here; the faults."""
        return self.missions.to_done(self.at)


class Role(Operation):
    """A role's run, from its start to its settle."""

    def __init__(self, missions: Missions, at: str) -> None:
        super().__init__(missions)
        self.at, self.words = at, [RUN_SH, *at.split(" ")]


class Append(Operation):
    """A note of a person."""

    words = [RUN_SH, "note", "--tag", "CONTEXT", APPENDED]

    def recover(self, done: Done) -> tuple[list[str], str]:
        """It is there once its command has said so."""
        if done.code == 0:
            self.missions.acks.parent.mkdir(exist_ok=True)
            self.missions.acks.write_text(f"CONTEXT: {APPENDED}\n")
        return super().recover(done)


class Replace(Operation):
    """A file that is replaced whole."""

    words = [RUN_SH, "steer", "prefer the standard library"]

    def faults(self, done: Done) -> list[str]:
        """It is as before, or as it was to become; once that was acknowledged, as it was to become."""
        there = files.read(self.house.layout.path(names.STEER))
        allowed = [b"prefer the standard library\n", *([] if done.code == 0 else [None])]
        return [] if there in allowed else [f"lost: STEER.md is {there!r}"]


class Commit(Operation):
    """An order: several files that change together."""

    words = [RUN_SH, "feature", "set", "F-001", "title=Another part"]

    def faults(self, done: Done) -> list[str]:
        """The queue has it where the order is applied, and only there."""
        rows = [
            json.loads(line)
            for line in (files.read_text(self.house.layout.path(names.ORDERS)) or "").split("\n")
            if line
        ]
        applied, title = any(row.get("state") == "applied" for row in rows), self.house.feature().title
        found = [] if (title == "Another part") == applied else [f"torn: {rows} with the title {title}"]
        return found + ([f"lost: the order, {rows}"] if done.code == 0 and not applied else [])


class Curate(Operation):
    """Notes are compacted in several batches, and what recurs goes to the identities."""

    at = "curator"

    def __init__(self, missions: Missions) -> None:
        super().__init__(missions)
        names = {"checkout": str(CHECKOUT), "project": str(self.house.project), "identity": str(self.house.identity)}
        self.words = [sys.executable, "-P", "-c", COMPACTING.format(**names)]


class Leased(Operation):
    """A worker's run beside another that lives: its lease is taken, and let go by its death."""

    def __init__(self, missions: Missions) -> None:
        super().__init__(missions)
        self.words = [RUN_SH, "worker", "F-001"]
        self.beside = Beside(missions)

    def prepare(self) -> None:
        """The other run is open."""
        self.beside.begin(self.at)

    def recover(self, done: Done) -> tuple[list[str], str]:
        """The other run is untouched, and settles well."""
        self.written += len(self.missions.acknowledged(self.at))
        return self.beside.settled(self.at)

    def go_on(self) -> list[str]:
        """From there on no worker waits."""
        return self.beside.to_done(self.at)


class Merge(Operation):
    """A lane's work is put on top of what another lane landed since it began."""

    words = [RUN_SH, "worker", "F-002"]

    def prepare(self) -> None:
        """Its worker will wait."""
        super().prepare()
        (self.house.state / "hold").touch()

    def meanwhile(self, lives: Callable[[], bool]) -> None:
        """The other lane lands; then this one may go on."""
        trees = self.house.tree.parent
        until(lambda: not lives() or any(path.read_text() for path in trees.glob("tree-*/begun")), 60)
        self.other = self.house.run([RUN_SH, "worker", "F-001"])
        (self.house.state / "hold").unlink(missing_ok=True)

    def faults(self, done: Done) -> list[str]:
        """What landed first is there."""
        found = [] if self.other.code == 0 else [f"the other lane: {self.other}"]
        landed = self.house.feature("F-001").status == "validating" and kill_sweep.is_kept(self.house, "1.txt")
        return found + ([] if landed else ["lost: what the other lane landed"])


class Snapshot(Operation):
    """The snapshot of a closed run, which a kill kept it from making."""

    words = [RUN_SH, "init", "--quietly"]

    def prepare(self) -> None:
        """The planner's run has closed, without a snapshot, and its lease is there still."""
        super().prepare()
        self.run = self.house.ran()[-1]["run"]
        Path(snapshots.path_of(self.house.layout, self.run)).unlink()
        Path(self.house.layout.run(self.run).lock).touch()

    def faults(self, done: Done) -> list[str]:
        """It is there, whole."""
        found = snapshots.then(self.house.layout, snapshots.load(self.house.layout, self.run))
        return [f"lost: {line}" for line in snapshots.is_whole(self.house.layout, found)]


class Restore(Operation):
    """The state goes back to a snapshot, and the code with it."""

    at = "validator"

    def __init__(self, missions: Missions) -> None:
        super().__init__(missions)
        missions.kept[self.at].restore()
        self.words = [RUN_SH, "snapshot", "restore", self.house.ran()[0]["run"]]
        self.was = self.house.feature().status

    def faults(self, done: Done) -> list[str]:
        """The one state or the other, whole."""
        there = (self.house.feature().status, len(kill_sweep.notes_of(self.house)))
        before = (self.was, len(self.missions.notes[self.at]))
        allowed = [("todo", len(self.missions.notes["worker F-001"])), *([] if done.code == 0 else [before])]
        return [] if there in allowed else [f"torn: features and notes are of two times: {there}, {done}"]

    def recover(self, done: Done) -> tuple[list[str], str]:
        """Notes that were made since are in the snapshot of now, where the state went back."""
        self.written += len(self.missions.acknowledged(self.at))
        found = kill_sweep.recovered(self.house)
        back = self.house.feature().status == "todo"
        notes = self.missions.notes["worker F-001"] if back else self.missions.acknowledged(self.at)
        found += kill_sweep.faults(self.house, notes, taken=False) + self.faults(done)
        state = kill_sweep.digest(self.house)
        locks = [one for one in found if one.startswith("left over") and one.endswith(".lock")]
        if locks:  # of a git that was killed: it is in nobody's way, and the next restore removes that of its branch
            again = self.house.run(self.words)
            found = [one for one in found if one not in locks] + ([f"again: {again}"] if again.code else [])
        return found + (self._kept() if back else []), state

    def _kept(self) -> list[str]:
        """Every note from before the restore is in the snapshot that it made."""
        row = json.loads((files.read_text(self.house.layout.path(names.RESTORES)) or "{}").split("\n")[0])
        then = snapshots.then(self.house.layout, snapshots.load(self.house.layout, row["kept"]))
        text = decode(then.files.get("memory/raw.md", b""), "raw.md")
        return [f"lost: {note}" for note in self.missions.notes[self.at] if f"{note}\n" not in text]

    def go_on(self) -> list[str]:
        """To DONE, with what is to be known by then; a lock on the name of a snapshot that never was is in nobody's way."""
        done = self.house.run([RUN_SH])
        found = [f"run.sh ended with {done}"] if done.code else kill_sweep.faults(self.house, [])
        return [one for one in found if not one.endswith("-before-restore.lock")]


class Init(Operation):
    """The first start in a repository."""

    at, words = "planner", [RUN_SH, "init", "--quietly"]

    def prepare(self) -> None:
        """A repository without a mission."""
        self.missions.kept["planner"].restore()
        for name in ("my project", "state"):
            shutil.rmtree(self.house.folder / name, ignore_errors=True)
        self.house.repository(commit=False)
        self.house.write(".gitignore", "acknowledged\nbegun\nenough\n")
        self.house.git("add", "-A")
        self.house.git("commit", "-q", "-m", "begin")
        scripts(self.house, 1)

    def recover(self, done: Done) -> tuple[list[str], str]:
        """The next start makes the mission, and the person's commit is there."""
        found = kill_sweep.recovered(self.house)
        if found:
            return found, kill_sweep.digest(self.house)
        self.house.config('agent = "scripted"')
        found += kill_sweep.faults(self.house, [], taken=False)
        found += [] if self.house.git("log", "--format=%s", "main") == "begin" else ["lost: the person's commit"]
        return found, kill_sweep.digest(self.house)

    def go_on(self) -> list[str]:
        """The mission is planned and done."""
        done = self.house.run([RUN_SH])
        return [f"run.sh ended with {done}"] if done.code else kill_sweep.faults(self.house, [])


class Archive(Operation):
    """A mission is archived, and the next one starts in its folder."""

    at, words = "curator", [RUN_SH, "init", "--new", "--abandon", "--quietly"]

    def recover(self, done: Done) -> tuple[list[str], str]:
        """One of the two is there, the other whole in the archive; no note is lost."""
        notes = self.missions.notes[self.at]
        self.written += len(notes)
        found = kill_sweep.recovered(self.house)
        if found:
            return found, kill_sweep.digest(self.house)
        away = [path.parent for path in (self.house.state / "archive").glob("*/memory")]
        found += [] if len(away) < 2 else [f"the mission is in {away}"]
        found += kill_sweep.faults(self.house, [] if away else notes, taken=False)
        for folder in away:
            text = "".join(
                (folder / "memory" / name).read_text() for name in ("raw.md",) if (folder / "memory" / name).exists()
            )
            found += [f"lost: {note}" for note in notes if f" {note}\n" not in text]
        found += [f"lost: {done}"] if done.code == 0 and not away else []
        return found, kill_sweep.digest(self.house)

    def go_on(self) -> list[str]:
        """The mission that is there now is planned, where it is new, and done: what the first one made is there already."""
        self.house.script("planner", plan(3))
        self.house.script("worker-F-003", {"run": "echo 3 > 3.txt"}, reply(status="implemented"))
        done = self.house.run([RUN_SH])
        return [f"run.sh ended with {done}"] if done.code else kill_sweep.faults(self.house, [])


def role(at: str) -> Callable[[Missions], Operation]:
    """The operation of a role's run."""
    return lambda missions: Role(missions, at)


OPERATIONS: dict[
    str, tuple[Callable[[Missions], Operation], int, str]
] = {  # makes it; features; the last run before it
    "append": (Append, 1, "worker F-001"),
    "replace": (Replace, 1, "worker F-001"),
    "multi-file commit": (Commit, 1, "worker F-001"),
    "curate": (Curate, 1, "curator"),
    "settle: planner": (role("planner"), 1, "planner"),
    "settle: worker": (role("worker F-001"), 1, "worker F-001"),
    "settle: validator": (role("validator F-001"), 1, "validator F-001"),
    "settle: final sweep": (role("validator"), 1, "validator"),
    "settle: curator": (role("curator"), 1, "curator"),
    "lease": (Leased, 2, "worker F-001"),
    "merge of a lane": (Merge, 2, "worker F-001"),
    "snapshot": (Snapshot, 1, "worker F-001"),
    "restore": (Restore, 1, "validator"),
    "init": (Init, 1, "planner"),
    "archive": (Archive, 1, "curator"),
}


def made(name: str, house: House, base: tuple[str, ...] = ()) -> Operation:
    """The operation of this name, on a mission that is made in the house's folder."""
    make, count, last = OPERATIONS[name]
    return make(Missions(house.folder, house.env, *range(1, count + 1), base=base, last=last))


def leave(one: Operation) -> None:
    """End what the operation keeps alive."""
    if isinstance(one, Leased):
        one.beside.end()


def is_settle(name: str) -> bool:
    """Whether the operation settles a run: a sweep with few points has not seen what it settles."""
    return name.startswith("settle")
