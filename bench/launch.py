"""What one launch costs: whole-process wall time against `bash -c 'python -I -c pass'`, run in turn on the same machine.

    python bench/launch.py [--rounds 15] [--features 10,200,1000,10000] [--files 50000]

It prints medians as ratios to the baseline's median of the same round. Git, fsync, the guardian and confinement, which only
a run needs, are measured separately and taken off: git and fsync as what a no-op run waits for them, the guardian as a
supervised `true` minus a plain one, confinement as a confined one minus that. So are renames and unlinks, with the disk: where
it is mounted with `discard`, freeing the blocks of a replaced file takes 2 ms.
`inside` is a note of an agent, through the inbox of its run, in multiples of the baseline. `imports` is what a worker's run
loads, in a process that does nothing else, without the baseline: a part of the run that is not taken off.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME))

from harness.mission import contract, features
from harness.mission.contract import Check, Claim, Contract
from harness.mission.features import Feature
from harness.state import names
from harness.state.layout import Layout
from harness.state.state import State

RUN_SH = str(HOME / "run.sh")
RAW_ENTRIES = 100_000


def mission(folder: Path, number: int) -> Layout:
    """A mission with `number` features, two claims each, in a real repository, with an agent that does nothing."""
    project = folder / f"mission-{number}"
    project.mkdir()
    (project / "SPEC.md").write_text("# A program\n\n## Part\n\nIt works.\n")
    (project / "main.py").write_text("print('hello')\n")
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run(["git", "-c", "user.name=b", "-c", "user.email=b@localhost", *words], cwd=project, check=True)
    (folder / f"identity-{number}").mkdir()
    os.environ["XDG_STATE_HOME"] = str(folder / "trees")
    os.environ["HARNESS_IDENTITY"] = str(folder / f"identity-{number}")
    subprocess.run([RUN_SH, "init"], cwd=project, check=True, stdout=subprocess.DEVNULL)
    layout = Layout(str(project))
    Path(layout.path(names.CONFIG)).write_text('agent = "nothing"\n[agents.nothing]\ncommand = ["true"]\n')
    Path(layout.path(names.SPEC)).write_text((project / "SPEC.md").read_text())
    Path(layout.path(names.CONTRACT)).write_text(
        contract.render(Contract(claims=[claim(n) for n in range(2 * number)]))
    )
    reset(layout, number)
    return layout


def claim(number: int) -> Claim:
    """A claim with one check."""
    return Claim(
        id=f"VAL-{number:05d}", text=f"Part {number} works as the spec says", checks=[Check(run="python3 main.py")]
    )


def reset(layout: Layout, number: int) -> None:
    """All features to do, as before the first worker."""
    rows = [
        Feature(
            id=f"F-{n:03d}",
            title=f"Part {n} of the program",
            description="What it does, in a sentence or two that a worker can act upon.",
            claims=[f"VAL-{2 * n - 2:05d}", f"VAL-{2 * n - 1:05d}"],
            spec_refs=["Part"],
        )
        for n in range(1, number + 1)
    ]
    State(layout).put(names.FEATURES, features.render(rows))


def fill_raw(layout: Layout) -> None:
    """A raw.md with very many entries, all compacted but the last: an old mission without a recent curator."""
    line = "[2026-04-24T10:05:12Z] worker F-023 TRICK: psql -f drizzle/*.sql applies migrations in filename order {}\n"
    Path(layout.path(names.RAW)).write_text("".join(line.format(n) for n in range(RAW_ENTRIES)))


def wall(words: list[str], cwd: str) -> float:
    """The wall time of the command as a whole process, in seconds."""
    started = time.perf_counter()
    subprocess.run(words, cwd=cwd, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=False)
    return time.perf_counter() - started


IMPORTS = """
import os, sys
sys.path.append(sys.argv[1])
from harness.run import main
from harness.run.settle import worker
import harness.agents._command
os._exit(0)
"""


def table(layout: Layout, number: int, rounds: int) -> dict[str, float]:
    """Medians in seconds: the baseline and each command, in turn."""
    commands = {
        "baseline": ["bash", "-c", f'"{sys.executable}" -I -c pass'],
        "imports": ["bash", "-c", '"$0" -P -c "$1" "$2"', sys.executable, IMPORTS, str(HOME)],
        "next": [RUN_SH, "next"],
        "note": [RUN_SH, "note", "--tag", "TRICK", "one line for the next stranger"],
        "run": [RUN_SH, "worker", "F-001"],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        reset(layout, number)
        commands["run"][-1] = f"F-{turn % 10 + 1:03d}"  # three runs on one feature would look like a stall
        for name, words in commands.items():
            seconds[name].append(wall(words, layout.folders.project))
    return {name: statistics.median(values[1:]) for name, values in seconds.items()}


def median_of(rounds: int, body: Callable[[], object]) -> float:
    """The median seconds of a few calls in this process."""
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        body()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


TIMED_WORKER = """
import os, sys, time
sys.path.append(os.environ["HARNESS_HOME"])
from harness.run import leave, main
main
from harness.git import settings
from harness.run.settle import worker
parts = ("git", "fsync", "replace")
spent, count = dict.fromkeys(parts, 0.0), dict.fromkeys(parts, 0)
def time_calls(name, owner, attribute):
    call = getattr(owner, attribute)
    def timed(*words, **named):
        start = time.perf_counter()
        try:
            return call(*words, **named)
        finally:
            spent[name] += time.perf_counter() - start
            count[name] += 1
    setattr(owner, attribute, timed)
time_calls("git", settings, "call")
time_calls("fsync", os, "fsync")
time_calls("replace", os, "replace")
time_calls("replace", os, "unlink")
code = main("worker", worker.settle)
print(*(f"{spent[name]} {count[name]}" for name in parts), flush=True)
raise SystemExit(leave(code))
"""


def timed_home(folder: Path) -> Path:
    """A checkout of links, but for the worker's script: `TIMED_WORKER`, started as the shipped one is."""
    home = folder / "home"
    if not home.exists():
        (home / "roles").mkdir(parents=True)
        for path in HOME.iterdir():
            if path.name != "roles":
                (home / path.name).symlink_to(path)
        for path in (HOME / "roles").iterdir():
            if path.name != "worker.py":
                (home / "roles" / path.name).symlink_to(path)
        (home / "roles" / "worker.py").write_text(TIMED_WORKER)
    return home


def apart(layout: Layout, number: int, rounds: int) -> tuple[float, list[tuple[float, int]]]:
    """(seconds without them, [(seconds, calls) of git, fsync, and renames and unlinks]) of a no-op run, medians: in each run
    what it waited for them is taken off, so that a slow moment of the machine does not count twice or not at all."""
    env = {**os.environ, "HARNESS_HOME": str(timed_home(Path(layout.folders.project).parent))}
    rows, rest = [], []
    for turn in range(rounds + 1):
        reset(layout, number)
        started = time.perf_counter()
        words = [RUN_SH, "worker", f"F-{turn % 10 + 1:03d}"]
        done = subprocess.run(words, cwd=layout.folders.project, env=env, capture_output=True, text=True, check=True)
        took = time.perf_counter() - started
        found = [float(word) for word in done.stdout.splitlines()[-1].split()]
        rows.append(list(zip(found[::2], map(int, found[1::2]), strict=True)))
        rest.append(took - sum(found[::2]))
    return statistics.median(rest[1:]), [sorted(part)[rounds // 2] for part in zip(*rows[1:], strict=True)]


ONE_GUARDIAN = """
import os, sys, time, json
sys.path.insert(0, sys.argv[1])
from harness.process import spawn, supervise
def took(body):
    start = time.perf_counter()
    body()
    return time.perf_counter() - start
plain = took(lambda: spawn.capture(["true"], cwd="."))
run = lambda: supervise.run(["true"], cwd=".", env=dict(os.environ), wall_seconds=10, sink=lambda *_: None)
first = took(run) - plain
from harness.process.confine import Confinement, Glass, available
glass = Confinement(glass=Glass(writable=[os.getcwd()]), tier=available())
confined = lambda: supervise.run(["true"], cwd=".", env=dict(os.environ), wall_seconds=10, sink=lambda *_: None, confine=glass)
took(confined)
print(first, took(confined) - took(run))
"""
NOTING = """
import os, subprocess, time
for _ in range(9):
    for name, words in (("bare", [os.environ["BENCH_PYTHON"], "-I", "-c", "pass"]), ("note", ["harness", "note", "one line"])):
        start = time.perf_counter()
        subprocess.run(["bash", "-c", '"$0" "$@"', *words], check=True)
        print(name, time.perf_counter() - start, flush=True)
"""


def inside(layout: Layout) -> float:
    """The cost of a note inside a run as a multiple of the baseline: an agent makes nine, and as many bare starts."""
    program = Path(layout.folders.project, "noting.py")
    program.write_text(NOTING)
    config, python = Path(layout.path(names.CONFIG)), json.dumps(sys.executable)
    before = config.read_text()
    table = f"[agents.noting]\ncommand = [{python}, {json.dumps(str(program))}]\nenv = {{ BENCH_PYTHON = {python} }}\n"
    config.write_text('agent = "noting"\n' + table)
    subprocess.run([RUN_SH, "worker"], cwd=layout.folders.project, check=False, stdout=subprocess.DEVNULL)
    config.write_text(before)
    program.unlink()
    newest = max(Path(layout.path(names.RUNS)).iterdir(), key=lambda folder: folder.stat().st_mtime)
    rows = [line.split() for line in (newest / "reply.md").read_text().splitlines()]
    seconds = {name: [float(row[1]) for row in rows if row[:1] == [name]] for name in ("bare", "note")}
    return statistics.median(seconds["note"]) / statistics.median(seconds["bare"])


def guardian_seconds(layout: Layout, rounds: int) -> tuple[float, float]:
    """What the first guardian adds to a launch, one whose child does nothing in a fresh interpreter; and what confinement."""
    words = [sys.executable, "-I", "-c", ONE_GUARDIAN, str(HOME)]
    found = [
        subprocess.run(words, cwd=layout.folders.project, capture_output=True, text=True, check=True)
        for _ in range(rounds)
    ]
    rows = [[max(0.0, float(word)) for word in done.stdout.split()] for done in found]
    return statistics.median(row[0] for row in rows), statistics.median(row[1] for row in rows)


def report(folder: Path, sizes: list[int], rounds: int) -> None:
    """Print the table, one line per size."""
    print(
        f"{'features':>9} {'bare ms':>8} {'next':>6} {'note':>6} {'inside':>6} {'run':>6} {'run without':>12}"
        "   ms: git, fsync, renames and unlinks, guardian, confinement, imports"
    )
    for number in sizes:
        layout = mission(folder, number)
        shown(layout, number, rounds, str(number))
        if number == 200:
            fill_raw(layout)
            shown(layout, number, rounds, "200+raw")


def shown(layout: Layout, number: int, rounds: int, title: str) -> None:
    """One line of the table."""
    found = table(layout, number, rounds)
    bare, (guardian, glass) = found["baseline"], guardian_seconds(layout, rounds)
    rest, waited = apart(layout, number, rounds)
    rest -= guardian + glass
    ratios = [f"{found[name] / bare:6.2f}" for name in ("next", "note")]
    ratios += [f"{inside(layout):6.2f}", f"{found['run'] / bare:6.2f}"]
    parts = [f"{seconds * 1e3:.1f} ({calls} calls)" for seconds, calls in waited]
    parts += [f"{seconds * 1e3:.1f}" for seconds in (guardian, glass, found["imports"] - bare)]
    print(f"{title:>9} {bare * 1e3:8.1f} {' '.join(ratios)} {rest / bare:12.2f}   {', '.join(parts)}", flush=True)


def large(folder: Path, count: int, rounds: int) -> None:
    """A repository of `count` files: the first run, which makes its tree, then a usual one, git's part, and the rest."""
    layout = mission(folder, 10)
    for number in range(count):
        path = Path(layout.folders.project, f"part-{number // 500}", f"file-{number}.txt")
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n" * 20)
    for words in (["add", "-A"], ["commit", "-qm", "many files"]):
        subprocess.run(
            ["git", "-c", "user.name=b", "-c", "user.email=b@localhost", *words], cwd=layout.folders.project, check=True
        )
    seconds = []
    for turn in range(rounds + 1):
        reset(layout, 10)
        seconds.append(wall([RUN_SH, "worker", f"F-{turn % 10 + 1:03d}"], layout.folders.project))
    usual, git = statistics.median(seconds[1:]), apart(layout, 10, rounds)[1][0][0]
    print(
        f"{count} files: first run {seconds[0]:.2f} s, then {usual:.2f} s, of which git {git:.2f} s, own {usual - git:.2f} s"
    )


def main() -> None:
    """Parse the command line, make the missions in a throw-away folder, print."""
    parser = argparse.ArgumentParser(description="What one launch costs.")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--features", default="10,200,1000,10000")
    parser.add_argument("--files", type=int, default=0, help="a repository of so many files instead")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        if asked.files:
            large(Path(folder), asked.files, min(asked.rounds, 5))
            return
        report(Path(folder), [int(size) for size in asked.features.split(",")], asked.rounds)


if __name__ == "__main__":
    main()
