"""What `search` costs over a gigabyte of transcripts, warm, against a bare mmap.find.

    python bench/search.py [--megabytes 1024] [--runs 200] [--rounds 3]

It makes that many finished runs whose transcripts look like an agent's, and searches them for a text that only the oldest has, so
that all of it is read. Goals: at most 5 times `mmap.find`, and less than 64 MB of memory.
It prints medians, and the peak of resident memory of a search in a process of its own.
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME))

from harness.base import encoding
from harness.state import names
from harness.state.layout import Layout

NEEDLE = "the okapi crosses"
WORDS = ("test", "error", "file", "harness", "import", "return", "漢字", "value", "line", "commit")
SEARCH = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from harness.replay import query, search
from harness.state.layout import Layout
import time
begun = time.perf_counter()
found = search.search(Layout(sys.argv[2]), query.query([sys.argv[3]], len(sys.argv) > 4), ["runs"], search.Filter(), 20)
print(len(found.runs), time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def lay(layout: Layout, count: int, size: int) -> list[str]:
    """The missions's runs; the paths of their transcripts."""
    Path(layout.state).mkdir(parents=True)
    Path(layout.path(names.FORMAT)).write_text("2\n")
    Path(layout.path(names.MISSION)).write_text(
        '{"id":"a-000000","created":"t","host":"h","branch":"b","base_commit":"c"}'
    )
    chance, paths, log = random.Random(1), [], []
    texts = [" ".join(chance.choices(WORDS, k=40)) for _ in range(500)]
    rows = [encoding.dump_json({"at": 1.0, "kind": "output", "text": f'{text}\n"{text}"'}) for text in texts]
    block = b"".join(rows)
    for number in range(count):
        run = layout.run(f"r-{number}")
        os.makedirs(run.folder)
        with open(run.stream, "wb") as file:
            for _ in range(max(1, size // count // len(block))):
                file.write(block)
            if number == 0:
                file.write(encoding.dump_json({"at": 2.0, "kind": "said", "text": NEEDLE}))
        log.append(encoding.dump_json({"run": f"r-{number}", "role": "worker", "feature": "", "at": "t"}))
        paths.append(run.stream)
    Path(layout.path(names.RUN_LOG)).write_bytes(b"".join(log))
    return paths


def seconds(call: Callable[[], object], rounds: int) -> float:
    """The median of some calls."""
    found = []
    for _ in range(rounds):
        begun = time.perf_counter()
        call()
        found.append(time.perf_counter() - begun)
    return statistics.median(found)


def bare(paths: list[str]) -> None:
    """A look for the bytes in each file, by mmap."""
    for path in paths:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            data.find(NEEDLE.encode())


def searched(layout: Layout, rounds: int, *words: str) -> tuple[float, int]:
    """(median seconds of a search, the peak of its memory in KiB), in a process of its own."""
    found = []
    for _ in range(rounds):
        command = [sys.executable, "-c", SEARCH, str(HOME), layout.folders.project, *words]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        hits, took, peak = out.split()
        assert hits == "1", out
        found.append((float(took), int(peak)))
    return statistics.median(took for took, _ in found), max(peak for _, peak in found)


def main() -> None:
    """Make, measure, remove."""
    options = argparse.ArgumentParser()
    for name, value in (("megabytes", 1024), ("runs", 200), ("rounds", 3)):
        options.add_argument(f"--{name}", type=int, default=value)
    asked = options.parse_args()
    folder = tempfile.mkdtemp()
    try:
        layout = Layout(folder)
        paths = lay(layout, asked.runs, asked.megabytes * 1024 * 1024)
        bare(paths)
        base = seconds(lambda: bare(paths), asked.rounds)
        took, peak = searched(layout, asked.rounds, NEEDLE)
        print(f"mmap.find {base:.2f} s; search {took:.2f} s, {took / base:.1f} times, {peak / 1024:.0f} MB")
        took, _ = searched(layout, asked.rounds, r"okapi\s+\w+s", "-e")
        print(f"a regular expression {took:.2f} s, {took / base:.1f} times")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
