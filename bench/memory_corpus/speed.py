"""How fast notes become memory: folds of 20 on a long archive, each in a process of its own."""

from __future__ import annotations

import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from harness.run.settle import curator
from harness.run.settle.curator import CurationSite
from harness.state import names
from harness.state.layout import Layout
from memory_corpus import HALVES, load, streams

BENCH = Path(__file__).resolve().parent.parent
FOLD, ROUNDS = 20, 3
CASES = ((10_000, FOLD, 1000),)  # archived, new, the aim in ms
MOST_MEMORY = 200  # MB
SERVICES = 1000  # half of the lessons name one of so many: a long mission knows more than the corpus does
LINE = "import sys; sys.path[:0] = {path!r}; from memory_corpus import speed; speed.step({folder!r}, {count}, {seed})"


def lines(count: int, seed: int) -> Iterator[bytes]:
    """So many entries."""
    dice = random.Random(seed)
    corpora = [load(half) for half in HALVES]
    for number in range(0, count, 1000):
        corpus = corpora[number // 1000 % len(corpora)]
        for note in streams.stream(corpus, min(1000, count - number), seed + number, "all"):
            if note.kind == "lesson" and dice.random() < 0.5:
                note.text = f"service-{dice.randrange(SERVICES)}: {note.text}"
            yield note.line()


def step(folder: str, count: int, seed: int) -> None:
    """Append and compact; prints the seconds that compacting took, and the process's largest memory in MB."""
    layout = Layout(os.path.join(folder, "mission"))
    os.makedirs(os.path.dirname(layout.path(names.RAW)), exist_ok=True)
    os.makedirs(os.path.dirname(layout.path(names.STATE_LOCK)), exist_ok=True)
    with open(layout.path(names.RAW), "ab") as file:
        file.writelines(lines(count, seed))
    begun = time.perf_counter()
    own, run = os.path.join(folder, "identity"), f"{seed}-curator"
    curator.compact_all(CurationSite(layout=layout, folder=own, mission="mission", run=run, today="2026-04-24"))
    seconds = time.perf_counter() - begun
    print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def run(folder: str, count: int, seed: int) -> tuple[float, float]:
    """`step` in a process of its own."""
    words = LINE.format(path=[str(BENCH.parent), str(BENCH)], folder=folder, count=count, seed=seed)
    done = subprocess.run([sys.executable, "-c", words], check=True, capture_output=True, text=True)
    seconds, memory = json.loads(done.stdout)
    return seconds, memory


def start() -> float:
    """Seconds that `bash -c 'python -I -c pass'` takes here: the baseline."""
    words = ["bash", "-c", f"{sys.executable} -I -c pass"]
    times = []
    for _ in range(9):
        begun = time.perf_counter()
        subprocess.run(words, check=True)
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def rows() -> Iterator[list[str]]:
    """Archived, new, median ms of compacting, as a multiple of the baseline, the aim in ms, MB at most."""
    for archived, new, aim in CASES:
        with tempfile.TemporaryDirectory(prefix="memory-speed-") as folder:
            measured = []
            for number in range(ROUNDS):
                place = folder if archived else os.path.join(folder, str(number))
                if archived and not number:
                    run(place, archived, 1)
                    run(place, FOLD, 2)  # whatever is derived exists now
                measured.append(run(place, new, 3 + number))
            seconds = statistics.median(one for one, _ in measured)
            memory = max(one for _, one in measured)
            counts = [f"{archived:,}", f"{new:,}", f"{1000 * seconds:.0f}", f"{seconds / start():.0f}", f"{aim:,}"]
            yield [*counts, f"{memory:.0f}"]
