"""What a long history costs: the size of 10,000 runs, and every command that looks at them, at 100 and at 10,000 runs.

    python bench/history.py [--runs 100,10000] [--rounds 7]

It plays the example to its end, and copies its runs, each with an id, a prompt, a digest and a snapshot of its own: `doctor`
finds nothing wrong. Objects that name their run are other ones in each copy, and so is each page of memory. It prints medians
of whole processes, warm, and their ratio (goal: 1.3), and the apparent size, folders counted too (goal: 400 MB for 10,000 runs).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME))

from harness.base import encoding
from harness.mission import features, runs
from harness.state import journal, names, objects
from harness.state.layout import Layout

RUN_SH = str(HOME / "run.sh")
SECONDS = 60  # between two runs
GOAL, LARGEST = 1.3, 400e6


def example(folder: Path) -> Layout:
    """The todo example, played to its end."""
    project = folder / "todo"
    shutil.copytree(HOME / "examples/todo", project)
    os.environ["XDG_STATE_HOME"], os.environ["HARNESS_IDENTITY"] = str(folder / "trees"), str(folder / "identity")
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run(["git", "-c", "user.name=b", "-c", "user.email=b@localhost", *words], cwd=project, check=True)
    (project / ".harness").mkdir()
    (project / ".harness/config.toml").write_text("[limits]\nmax_runs = 1000000\nmax_hours = 1000000\n")
    subprocess.run([RUN_SH], cwd=project, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return Layout(str(project))


class Growing:
    """A mission whose runs are copied. `seed`: the results of the runs that were played, in order."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.seed = list(runs.finished(layout))[::-1]
        self.made = len(self.seed)
        self.begun = int(self.seed[0].run.partition("-")[0])
        self.log = Path(layout.path(names.RUN_LOG)).read_bytes()
        self.known: dict[tuple[str, int], str] = {}

    def to(self, wanted: int) -> None:
        """Add runs until there are so many; the last feature is todo, so that the mission is not done."""
        lines = []
        while self.made < wanted:
            number = self.made
            lines.append(self.run(self.seed[number % len(self.seed)], number))
            self.made += 1
        Path(self.layout.path(names.RUN_LOG)).write_bytes(self.log)
        rows = features.load(self.layout)
        rows[-1].status = "todo"
        Path(self.layout.path(names.FEATURES)).write_bytes(features.render(rows))
        journal.adopt(self.layout)
        objects.put(self.layout, Path(self.layout.path(names.FEATURES)).read_bytes())

    def run(self, old: runs.RunResult, number: int) -> bytes:
        """One copy of a run; returns its line."""
        at = self.begun + number * SECONDS
        run_id = runs.new_id(old.role, old.feature, at)
        source, target = self.layout.run(old.run), self.layout.run(run_id)
        Path(target.folder).mkdir()
        for path in Path(source.folder).iterdir():
            if path.is_file() and path.name != names.RESULT:
                data = path.read_bytes().replace(old.run.encode(), run_id.encode())
                Path(target.folder, path.name).write_bytes(self.renamed(data, number))
        rows = json.loads(Path(target.manifest).read_bytes())
        parts = (row["text"].encode() if "text" in row else objects.get(self.layout, row["object"]) for row in rows)
        Path(target.prompt).write_bytes(b"".join(parts))
        total = old.totals | {"runs": number + 1}
        made = old.replace(run=run_id, at=stamp(at), seal=runs.seal(target), totals=total)
        line = encoding.dump_json(made.asdict())
        Path(target.result).write_bytes(line)
        self.log += line
        self.snapshot(old, run_id, number)
        return line

    def snapshot(self, old: runs.RunResult, run_id: str, number: int) -> None:
        """The snapshot of a copy."""
        row = json.loads(Path(self.layout.path(names.SNAPSHOTS), f"{old.run}.json").read_bytes())
        row |= {"run": run_id, "at": stamp(self.begun + number * SECONDS)}
        row["grown"][names.RUN_LOG] = ["", len(self.log)]
        Path(self.layout.path(names.SNAPSHOTS), f"{run_id}.json").write_bytes(
            self.renamed(encoding.dump_json(row), number)
        )

    def renamed(self, data: bytes, number: int) -> bytes:
        """A file of JSON with the objects of this copy in the place of those of the run that was played."""
        parts = data.split(b'"')
        for at, part in enumerate(parts):
            if len(part) == 64 and os.path.exists(objects.path_of(self.layout, part.decode("utf-8", "replace"))):
                parts[at] = self.object(part.decode(), number // len(self.seed)).encode()
        return self.sized(b'"'.join(parts))

    def sized(self, data: bytes) -> bytes:
        """A manifest with the lengths of its objects."""
        if not data.startswith(b"[{"):
            return data
        rows: list[dict[str, Any]] = json.loads(data)
        for row in rows:
            if "object" in row:
                row["bytes"] = len(objects.get(self.layout, row["object"]))
        return encoding.dump_json(rows)

    def object(self, name: str, turn: int) -> str:
        """The object as it is in this turn: runs that it names are those of the turn, and a page of memory has a line more."""
        if (name, turn) not in self.known:
            data = objects.get(self.layout, name)
            for one in self.seed:
                place = self.seed.index(one) + turn * len(self.seed)
                new = runs.new_id(one.role, one.feature, self.begun + place * SECONDS)
                data = data.replace(one.run.encode(), new.encode())
            if data.startswith((b"## ", b'{"format"')):
                data += b"\n" * (turn % 7) + f"<!-- {turn} -->\n".encode()
            made = encoding.digest(data)
            path = Path(objects.path_of(self.layout, made))
            path.parent.mkdir(exist_ok=True)
            if not path.exists():
                path.write_bytes(data)
            self.known[name, turn] = made
        return self.known[name, turn]


def stamp(at: int) -> str:
    """A time as the harness writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def commands(layout: Layout) -> dict[str, list[str]]:
    """What is measured: the run in the middle, and what looks at the newest."""
    ids = [one.run for one in runs.finished(layout)]
    middle = next(one for one in ids[len(ids) // 2 :] if "worker" in one)
    return {
        "next": ["next"],
        "status": ["status"],
        "replay RUN": ["replay", middle],
        "replay --explain": ["replay", middle, "--explain"],
        "runs list": ["runs", "list"],
        "runs show": ["runs", "show", middle],
        "runs show --prompt": ["runs", "show", middle, "--prompt"],
        "log": ["log", middle],
        "search -n 5": ["search", "TODO_FILE", "-n", "5"],
        "search raw memory": ["search", "pattern", "--in", "raw", "--in", "memory"],
        "memory at": ["memory", "at", middle],
        "features at": ["features", "at", middle],
        "snapshot list": ["snapshot", "list"],
        "snapshot show": ["snapshot", "show", middle],
        "snapshot diff": ["snapshot", "diff", middle],
        "note": ["note", "one line for the next stranger"],
    }


def measure(missions: list[Layout], rounds: int) -> list[dict[str, float]]:
    """Medians in seconds of whole processes, of each mission; each command was called before, and the missions take turns."""
    found: list[dict[str, list[float]]] = [{} for _ in missions]
    asked = [commands(layout) for layout in missions]
    for turn in range(rounds + 1):
        for name in asked[0]:
            for layout, words, mine in zip(missions, asked, found, strict=True):
                begun = time.perf_counter()
                done = subprocess.run(
                    [RUN_SH, *words[name]], cwd=layout.folders.project, capture_output=True, check=False
                )
                if done.returncode:
                    raise SystemExit(f"{name} ended with {done.returncode}: {done.stderr.decode()}")
                mine.setdefault(name, []).append(time.perf_counter() - begun)
                mine[name] = mine[name] if turn else []
    return [{name: statistics.median(values) for name, values in mine.items()} for mine in found]


def apparent(folder: str) -> int:
    """Bytes of all files and folders, as `du -sb` counts them."""
    size = os.lstat(folder).st_size
    for path, folders, left in os.walk(folder):
        size += sum(os.lstat(os.path.join(path, name)).st_size for name in (*folders, *left))
    return size


def main() -> None:
    """Parse the command line, make the mission in a throw-away folder, print."""
    parser = argparse.ArgumentParser(description="What a long history costs.")
    parser.add_argument("--runs", default="100,10000")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--doctor", action="store_true", help="end where doctor finds something wrong")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        played, missions = example(Path(folder)), list[Layout]()
        for wanted in map(int, asked.runs.split(",")):
            project = Path(folder, f"todo-{wanted}")
            shutil.copytree(played.folders.project, project, symlinks=True)
            layout = Layout(str(project))
            Growing(layout).to(wanted)
            size = apparent(layout.state)
            above = "  above the goal" if size / wanted > LARGEST / 10_000 else ""
            print(f"{wanted} runs: {size / 1e6:.1f} MB, {size / wanted / 1e3:.1f} KB a run{above}", flush=True)
            if asked.doctor:
                subprocess.run([RUN_SH, "doctor"], cwd=layout.folders.project, stdout=subprocess.DEVNULL, check=True)
            missions.append(layout)
        columns = measure(missions, asked.rounds)
        print(f"\n{'ms':<20} " + " ".join(f"{one:>8}" for one in asked.runs.split(",")) + "    ratio")
        for name, first in columns[0].items():
            values = " ".join(f"{column[name] * 1e3:8.1f}" for column in columns)
            ratio = columns[-1][name] / first
            print(f"{name:<20} {values} {ratio:8.2f}{'' if ratio <= GOAL else '  above the goal'}")


if __name__ == "__main__":
    main()
