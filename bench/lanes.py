"""What lanes are worth: a mission of independent features whose agent sleeps, by one lane and by several.

    python bench/lanes.py [--features 16] [--seconds 2] [--lanes 1,2,4] [--on here|dask]
    python bench/lanes.py --files 5000

For each number of lanes: wall seconds from the first worker's start to DONE, the speed-up against one lane and its share of
the number of lanes, runs, and what a run costs besides the agent's sleep (seconds of its own, and CPU seconds of all that
was started). The plan is there already, so that only work that can be shared is measured, with the final sweep and curation.
Lanes work at home, or `--on` this machine through the empty prefix, or on workers of Dask that the bench starts.

With `--files`: what travels for a run that changes one file in a repository of so many, and its seconds beside one at home.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME))

from harness.mission import contract, features
from harness.mission.contract import Check, Claim, Contract
from harness.mission.features import Feature
from harness.state import names
from harness.state.layout import Layout
from harness.state.state import State
from tests.run.machines.cluster import cluster

RUN_SH = str(HOME / "run.sh")
COUNT = """import os, subprocess, sys, threading
process = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
ends, passed = ((0, process.stdin.fileno()), (process.stdout.fileno(), 1)), [0, 0]
def follow(way):
    source, target = ends[way]
    while data := os.read(source, 1 << 20):
        passed[way] += len(data)
        while data:
            data = data[os.write(target, data):]
    os.close(target)
found = [threading.Thread(target=follow, args=[way]) for way in (0, 1)]
[one.start() for one in found], [one.join() for one in found]
open(sys.argv[1], "w").write(f"{passed[0]} {passed[1]}")
"""  # a prefix that counts what goes through it


def mission(folder: Path, number: int, seconds: float, many: int = 0) -> Layout:
    """A mission with an accepted plan of `number` features that need nothing of each other, in a repository of `many` more
    files."""
    project = folder / "project"
    project.mkdir(parents=True)
    (project / "SPEC.md").write_text("# Parts\n\nEach part is a file.\n")
    for count in range(many):
        path = project / "many" / f"{count % 50}" / f"{count}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{count}\n" * 20)
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run(["git", "-c", "user.name=b", "-c", "user.email=b@localhost", *words], cwd=project, check=True)
    os.environ["XDG_STATE_HOME"], os.environ["HARNESS_IDENTITY"] = str(folder / "trees"), str(folder / "identity")
    subprocess.run([RUN_SH, "init"], cwd=project, check=True, stdout=subprocess.DEVNULL)
    layout = Layout(str(project))
    scripts = folder / "scripts"
    scripts.mkdir()
    Path(layout.path(names.CONFIG)).write_text(
        f'agent = "scripted"\n[agents.scripted]\npath = {json.dumps(str(scripts))}\n'
        "[machines.here]\ncommand = []\nlanes = 32\n[machines.counted]\n"
        f"command = {json.dumps([sys.executable, '-c', COUNT, str(folder / 'count')])}\n"
        f"program = {json.dumps(RUN_SH)}\n"
    )
    Path(layout.path(names.SPEC)).write_bytes(Path(layout.folders.asked_spec).read_bytes())
    ids = [f"F-{n:03d}" for n in range(1, number + 1)]
    claims = [Claim(id=f"VAL-{one}", text=f"Part {one} is there", checks=[Check(run=f"test -s {one}")]) for one in ids]
    Path(layout.path(names.CONTRACT)).write_text(contract.render(Contract(claims=claims)))
    State(layout).put(
        names.FEATURES, features.render([Feature(id=one, title=one, claims=[f"VAL-{one}"]) for one in ids])
    )
    for one in ids:
        (scripts / f"worker-{one}.jsonl").write_text(json.dumps({"run": f"sleep {seconds}; echo done >{one}"}) + "\n")
    accepted = [RUN_SH, "claim", "accept", *(claim.id for claim in claims)]
    subprocess.run(accepted, cwd=project, check=True, stdout=subprocess.DEVNULL)
    return layout


def measure(lanes: int, number: int, seconds: float, on: str) -> dict[str, float]:
    """One mission: its wall seconds, runs, and what they cost."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        layout = mission(Path(folder), number, seconds)
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        words = [RUN_SH, "--lanes", str(lanes), *(["--on", on] if on else [])]
        done = subprocess.run(words, cwd=layout.folders.project, capture_output=True, text=True, check=False)
        wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            raise SystemExit(f"the mission ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        rows = [json.loads(line) for line in Path(layout.path(names.RUN_LOG)).read_text().splitlines()]
        slept = seconds * sum(row["role"] == "worker" for row in rows)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        own = sum(row["seconds"] for row in rows) - slept
        return {"wall": wall, "runs": len(rows), "own": own / len(rows), "cpu": cpu / len(rows)}


def travel(many: int) -> None:
    """Print what a worker's run sends and receives, and its seconds: the first on a machine, one after a changed file, and one
    at home."""
    print(f"{'run':>24} {'bytes out':>10} {'bytes back':>11} {'seconds':>8}")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        layout = mission(Path(folder), 4, 0, many)
        os.environ["HARNESS_MACHINE"] = "counted"
        for feature, about in ((1, "everything is new"), (2, "one file has changed")):
            seconds = run(layout, feature)
            out, back = map(int, (Path(folder) / "count").read_text().split())
            print(f"{about:>24} {out:10,} {back:11,} {seconds:8.2f}", flush=True)
        del os.environ["HARNESS_MACHINE"]
        run(layout, 3)  # which makes the tree at home
        print(f"{'the same, at home':>24} {'':>22} {run(layout, 4):8.2f}")


def run(layout: Layout, feature: int) -> float:
    """The seconds of a worker's run on this feature."""
    started = time.perf_counter()
    done = subprocess.run(
        [RUN_SH, "worker", f"F-{feature:03d}"], cwd=layout.folders.project, capture_output=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"the run ended with {done.returncode}: {done.stderr.decode()}")
    return time.perf_counter() - started


@contextlib.contextmanager
def place(name: str, lanes: int) -> Iterator[str]:
    """What `--on` takes: "" for home, the empty prefix, or the address of Dask with a worker for each lane."""
    if name != "dask":
        yield name
        return
    workers = {f"worker-{one}": 1 for one in range(lanes)}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, cluster(Path(folder), workers) as own:
        yield own.address


def main() -> None:
    """Parse the command line and print a line for each number of lanes."""
    parser = argparse.ArgumentParser(description="What lanes are worth.")
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--lanes", default="1,2,4")
    parser.add_argument("--on", choices=["", "here", "dask"], default="", help="where lanes work; unless set, at home")
    parser.add_argument("--files", type=int, help="what travels in a repository of so many")
    asked = parser.parse_args()
    if asked.files:
        travel(asked.files)
        return
    print(
        f"{asked.features} features, an agent that sleeps {asked.seconds:g} s, {os.cpu_count()} cores, {asked.on or 'home'}"
    )
    print(
        f"{'lanes':>5} {'wall s':>7} {'speed-up':>9} {'of lanes':>9} {'runs':>5} {'own s a run':>12} {'CPU s a run':>12}"
    )
    one = 0.0
    for lanes in map(int, asked.lanes.split(",")):
        with place(asked.on, lanes) as on:
            found = measure(lanes, asked.features, asked.seconds, on)
        one = one or found["wall"]
        gain = one / found["wall"]
        shown = f"{lanes:>5} {found['wall']:7.1f} {gain:9.2f} {gain / lanes:9.2f} {found['runs']:5.0f}"
        print(f"{shown} {found['own']:12.3f} {found['cpu']:12.3f}", flush=True)


if __name__ == "__main__":
    main()
