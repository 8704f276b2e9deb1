"""Kills a program at every system call that changes the disk, and proves after each kill that nothing is lost.

strace counts the calls of each process of the program (its own, its guardian, its listener, every git child) by name. So
one run without a fault tells how far to count, and the point (call, n) kills every process that comes to its n-th such
call, just before the call is carried out: `Sweep.run` does that for each point, on the same mission at the same path.
What is killed, what it works on, and what must hold afterwards are callables, so other programs and other faults
(`error=ENOSPC`) are swept by the same loop. `faults` and `digest` are the proof for a mission.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.git.checkouts import worktrees
from harness.memory import archive, pages
from harness.mission import mission, runs
from harness.state import files, names
from harness.state.layout import state_home
from tests.missions import CHECKOUT, Done, House, copied, enter, tagged, until

RUN_SH = str(CHECKOUT / "run.sh")
CALLS = (  # openat with O_CREAT leaves an empty file, which the next call finds
    *("write", "pwrite64", "fsync", "fdatasync", "ftruncate", "rename", "renameat", "renameat2", "link", "linkat"),
    *("unlink", "unlinkat", "mkdir", "mkdirat", "rmdir", "symlink", "symlinkat"),
)
KILL = "signal=SIGKILL"
LONGEST = 90  # seconds that one run under strace may take
STRACE = ("strace", "-f", "-qq", "-e", "signal=none")  # not --seccomp-bpf: with it, injected signals are lost


def why_not() -> str:
    """Why no program can be killed by strace here; "" where one can."""
    if not shutil.which("strace"):
        return "strace is not installed"
    words = [*STRACE, "-o", os.devnull, "-e", "trace=exit_group", "-e", f"inject=exit_group:{KILL}:when=1", "true"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return "" if done.returncode == -9 else f"strace cannot kill here: {done.stderr.strip()[:200]}"


class Template:
    """Folders below `top` as they are now; `restore` brings all of them back to the same paths, which worktrees need."""

    def __init__(self, top: Path, names: Iterable[str], store: Path) -> None:
        self.top, self.names, self.store = top, tuple(names), store
        store.mkdir(parents=True)
        self._copy(top, store)

    def restore(self) -> None:
        """Make the folders as they were, and nothing else in them."""
        subprocess.run(["rm", "-rf", *(self.top / name for name in self.names)], check=True)
        self._copy(self.store, self.top)

    def _copy(self, source: Path, target: Path) -> None:
        found = [source / name for name in self.names if (source / name).exists()]
        subprocess.run(["cp", "-a", *found, target], check=True)


class Kept:
    """A mission that is made once, by `make` on a copy of `template`, and copied again for each test that needs it."""

    def __init__(self, folder: Path, template: Path, make: Callable[[House], object]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            self.house = copied(template, folder, enter(patch, folder))
            make(self.house)
        self.template = Template(folder, ("my project", "state", "identity", "temporary"), folder / "kept")

    def again(self, patch: pytest.MonkeyPatch) -> House:
        """The mission as it was made; this process gets its environment."""
        enter(patch, self.house.folder)
        self.template.restore()
        return self.house


class Point(NamedTuple):
    """The n-th call of this name, of each process."""

    call: str
    number: int

    def __str__(self) -> str:
        return f"{self.call} {self.number}"


class Report:
    """What a sweep found: the `points` that struck a process, those `missed`, how often each state was recovered (by digest),
    and a line for each fault."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.missed: list[Point] = []
        self.states: Counter[str] = Counter()
        self.faults: list[str] = []

    def __repr__(self) -> str:
        numbers = f"{len(self.points)} points, {len(self.missed)} missed, {len(self.states)} states"
        return "\n".join([f"{numbers}, {len(self.faults)} faults", *self.faults])

    def unexpected(self, known: Mapping[str, str]) -> list[str]:
        """The faults that no pattern of `known` describes."""
        return [fault for fault in self.faults if not any(re.search(pattern, fault) for pattern in known)]


class Sweep:
    """A program (`words`, in `where`, with `env`), and `prepare`, which lays out what it works on.

    `calls` are counted and struck; `fault` is what strace does there: KILL, or such as `error=ENOSPC`. `meanwhile` is called
    beside the program, with what says whether that lives.
    """

    def __init__(
        self,
        words: Sequence[str],
        prepare: Callable[[], object],
        *,
        where: Path,
        env: Mapping[str, str],
        calls: Sequence[str] = CALLS,
        fault: str = KILL,
        meanwhile: Callable[[Callable[[], bool]], object] = lambda lives: None,
    ) -> None:
        self.words, self.prepare, self.where, self.env = list(words), prepare, where, env
        self.calls, self.fault, self.meanwhile = tuple(calls), fault, meanwhile
        self.trace = where.parent / "trace"

    def strike(self, point: Point | None) -> Done:
        """Run the program to its end with the fault at this point, without one at None; all that it started has ended."""
        only = self.calls if point is None else (point.call,)
        words = [*STRACE, "-o", str(self.trace), "-e", f"trace={','.join(only)}"]
        words += ["-e", f"inject={point.call}:{self.fault}:when={point.number}"] if point else []
        return self.plainly(words)

    def plainly(self, around: Sequence[str] = ()) -> Done:
        """Run the program to its end, with these words before its own."""
        here = self.trace.parent
        with tempfile.TemporaryFile(dir=here) as out, tempfile.TemporaryFile(dir=here) as err:
            begun = subprocess.Popen(
                [*around, *self.words],
                cwd=self.where,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
            try:
                self.meanwhile(lambda: begun.poll() is None)
                code = begun.wait(LONGEST)
            finally:
                begun.kill()
                begun.wait()
            texts = [os.pread(one.fileno(), os.fstat(one.fileno()).st_size, 0) for one in (out, err)]
        return Done(code, *(text.decode("utf-8", "replace") for text in texts))

    def struck(self) -> bool:
        """Whether the last run came to its point: a call that was killed has no result, a failed one is marked."""
        text = self.trace.read_text(errors="replace")
        return " = ?" in text or "(INJECTED)" in text

    def points(self) -> list[Point]:
        """Every point of a run without a fault: for each call up to the most that one process makes."""
        self.prepare()
        done = self.strike(None)
        assert done.code == 0, done
        made = Counter(re.findall(r"^(\d+) +(\w+)\(", self.trace.read_text(errors="replace"), re.M))
        most = {call: max((made[one] for one in made if one[1] == call), default=0) for call in self.calls}
        return [Point(call, number + 1) for call in self.calls for number in range(most[call])]

    def run(
        self,
        points: Sequence[Point],
        recover: Callable[[Done], tuple[list[str], str]],
        go_on: Callable[[], list[str]],
        report: Callable[[str], object] = lambda line: None,
        *,
        found: Report | None = None,
        until: float = float("inf"),
    ) -> Report:
        """Strike at each point, up to the moment `until`; `recover` gives the faults that it finds, and the digest of what it
        recovered, from where `go_on` goes on, once for each. `found`: the report to which this adds."""
        found, begun = found or Report(), time.monotonic()
        for number, point in enumerate(points, start=1):
            if time.monotonic() > until:
                report(f"the time is up after {number - 1} of {len(points)} points")
                break
            self.prepare()
            done = self.strike(point)
            if not self.struck():
                found.missed.append(point)
                continue
            found.points.append(point)
            faults, state = recover(done)
            is_new = state not in found.states
            found.states[state] += 1
            faults += [f"from there on: {fault}" for fault in go_on()] if is_new else []
            found.faults += [f"{point}: {fault}" for fault in faults]
            line = f"{number}/{len(points)} {point}, {len(found.states)} states, {time.monotonic() - begun:.0f} s"
            report("\n  ".join([line, *faults]))
        return found


def sample(points: Sequence[Point], most: int, seed: str) -> list[Point]:
    """At most so many of the points, in their order: the same ones for the same seed."""
    chosen = random.Random(seed).sample(range(len(points)), min(most, len(points)))
    return [points[number] for number in sorted(chosen)]


# ---- the proof for a mission


def notes_of(house: House) -> list[str]:
    """Every entry that the mission took, compacted or not, in order."""
    curated = pages.parse_curated(files.read(house.layout.path(names.CURATED)))
    archived = list(archive.backwards(house.layout.path(names.ARCHIVE), curated.folded))[::-1]
    lines = (files.read(house.layout.path(names.RAW)) or b"").decode("utf-8", "replace").split("\n")
    return [row.entry for row in archived] + lines[curated.folded - curated.first_seq : -1]


def recovered(house: House, alive: Sequence[str] = ()) -> list[str]:
    """Faults of the recovery itself: once the dead run's guardian is gone, `init` settles it, as each start does. `alive`:
    runs that go on."""
    dead = [name for name in runs.open_runs(house.layout) if name not in alive]
    locks = [house.layout.path(names.MISSION_LOCK), *(house.layout.run(name).lock for name in dead)]
    until(lambda: all(files.is_free(lock) for lock in locks))
    done = house.run([RUN_SH, "init", "--quietly"])
    return [] if done.code == 0 else [f"init ended with {done}"]


def faults(house: House, acknowledged: Iterable[str], busy: Sequence[str] = (), *, taken: bool = True) -> list[str]:
    """What is lost, torn, doubled or left over in a mission without a live run, except those of the features `busy`."""
    layout, found = house.layout, []
    examined = house.harness("doctor", XDG_STATE_HOME=house.env["XDG_STATE_HOME"])
    if examined.code or re.search(r"^bad", examined.out, re.M):
        found.append(f"doctor: {examined}")
    notes = notes_of(house)
    counts = {text: sum(line.endswith(f" {text}") for line in notes) for text in dict.fromkeys(acknowledged)}
    found += [f"a note is there {count} times: {text}" for text, count in counts.items() if count != 1]
    alive = {name for name in runs.open_runs(layout) if not runs.is_dead(layout, name)}
    logged = Counter(row["run"] for row in house.ran())
    begun = [path.parent.name for path in Path(layout.path(names.RUNS)).glob("*/context.json")]
    found += [
        f"the run log has {logged[name]} lines of {name}" for name in begun if logged[name] != (name not in alive)
    ]
    found += [f"left over: run lock {name}" for name in runs.open_runs(layout) if not busy or name not in alive]
    found += [] if busy else [f"process {pid} of the mission lives" for pid in tagged(mission.load(layout).id)]
    queue = json.loads(files.read(layout.path(names.FEATURES)) or b"{}").get("features", [])
    found += [f"{one['id']} is stuck" for one in queue if one["status"] == "in_progress" and one["id"] not in busy]
    return found + torn(house) + left_over(house, alive, taken=taken)


def torn(house: House) -> list[str]:
    """JSON files of the mission and the identities that do not parse."""
    found = []
    for top in (house.state, house.identity):
        for path in sorted([*top.rglob("*.json"), *top.rglob("*.jsonl")]):
            text = path.read_text(errors="replace")
            try:
                for line in text.split("\n")[:-1] if path.suffix == ".jsonl" else [text]:
                    json.loads(line)
            except ValueError:
                found.append(f"torn: {path.relative_to(house.folder)}")
    return found


def left_over(house: House, alive: Iterable[str] = (), *, taken: bool = True) -> list[str]:
    """Files that a write leaves when it is cut short: temporary ones, journals, locks of git, folders of dead runs. What is in
    the tree, beside it and in its git folder is made right when it is `taken` next: by the next run."""
    tops = (house.project, house.identity, Path(state_home()))
    found = [path for top in tops for path in top.rglob("*.tmp") if not is_being_written(path)]
    found += [
        *Path(house.layout.path(names.JOURNAL)).glob("*"),
        Path(house.layout.folders.top, ".git/harness-landing.json"),
    ]
    found += [*(house.project / ".git").rglob("*.lock"), *trees_of_nobody(house)]
    if not taken:
        trees = [str(house.tree.parent / f"tree-{number}") for number in range(1, 10)]
        own = [worktrees._git_folder(str(house.project), tree) for tree in trees]
        found = [path for path in found if not any(map(path.is_relative_to, (*own, state_home())))]
        found = [
            path for path in found if path.suffix != ".lock" and not path.is_relative_to(house.identity)
        ]  # as above
    found += [
        path for path in (house.folder / "temporary").glob("harness-*") if not any(run in path.name for run in alive)
    ]
    return [f"left over: {path.relative_to(house.folder)}" for path in found if path.exists()]


def trees_of_nobody(house: House) -> list[Path]:
    """What git keeps of worktrees that are gone."""
    known = list((house.project / ".git/worktrees").glob("*"))
    return [
        own for own in known if not (own / "gitdir").exists() or not Path((own / "gitdir").read_text().strip()).exists()
    ]


def is_being_written(path: Path) -> bool:
    """Whether a `NAME.<pid>.tmp` belongs to a live process."""
    pid = path.name.split(".")[-2]
    return pid.isdigit() and Path("/proc", pid).exists()


OF_ONE_RUN = (  # what differs between two runs that do the same
    (re.compile(r"\b\d{10}-[a-z]+(-F-\d+)?(-\d+)?\b"), "RUN"),
    (re.compile(r"\bmy-project-[0-9a-f]{6}\b|\bO-[0-9a-f]{8}\b"), "NAME"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?Z?"), "TIME"),
    (re.compile(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{40}\b|\b[0-9a-f]{10,12}\b"), "HEX"),
    (re.compile(r"\b\d+\.\d+\b|\b\d{19}\b"), "SECONDS"),
    (re.compile(r"harness-[\w-]+?-[0-9a-f]{10}\b|\.\d+\.tmp\b"), "TEMPORARY"),
)
NO_STATE = ("runs/", "objects/", "snapshots/", "locks/", "cache/", "ledger.json", "git-config/", ".git/", "journal/")


def masked(text: str) -> str:
    """The text without times, ids of runs and digests."""
    for pattern, word in OF_ONE_RUN:
        text = pattern.sub(word, text)
    return text


def digest(house: House) -> str:
    """A digest of the mission that is the same for two kills after which the next run finds the same."""
    parts = []
    tree = [(house.tree, (".git",))] if (house.state / "mission.json").exists() else []
    for top, passed_over in ((house.state, NO_STATE), (house.identity, ("ledger",)), *tree):
        for path in sorted(path for path in top.rglob("*") if path.is_file()) if top.exists() else []:
            name = str(path.relative_to(top))
            if not name.startswith(passed_over):
                parts.append(masked(f"{name}\n{path.read_text(errors='replace')}"))
    refs = house.git("for-each-ref", "--format=%(refname) %(tree)").split("\n")
    parts += sorted(line if " " not in line else masked(line.split(" ")[0]) + line.split(" ")[1] for line in refs)
    parts += sorted(masked(path.name) for top, _ in tree for path in top.parent.glob("*.tmp"))
    parts.append(masked(house.git("status", "--porcelain", "--branch")))
    return files.digest("\0".join(parts).encode())


def is_kept(house: House, name: str) -> bool:
    """Whether the file is in the tree, or in a commit that a ref holds."""
    return (house.tree / name).exists() or f" {name}\n" in house.git("rev-list", "--all", "--objects") + "\n"
