"""Durable appends per second for 1, 4 and 16 writers: ours, against a bare write + fsync and SQLite, on the same disk in one run.

    python bench/append.py [--seconds 2] [--rounds 3] [--folder DIR]

Every writer is a process that appends entries of 220 bytes and counts those that are acknowledged: `harness` by the path of
`harness note` (lock, tail repair, one write, fsync, then the acknowledgement), `write + fsync` into one file on a descriptor that
it keeps, without any of that, `SQLite` with WAL and synchronous=FULL. The rounds take turns, and the median counts. The aim:
at least 0.8 of the bare write for one writer, and more than SQLite for 16.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME))

from harness.state import journal, names
from harness.state.layout import Layout

ENTRY = b"[2026-04-24T10:05:12Z] worker F-001 TRICK: " + b"x" * 176 + b"\n"
WRITERS = (1, 4, 16)
LONGEST_WAIT = 60.0  # seconds that SQLite waits for its lock
Writer = Callable[[Path], Callable[[], object]]


def ours(folder: Path) -> Callable[[], object]:
    """An append to raw.md, as every note makes it."""
    layout = Layout(str(folder))
    return lambda: journal.append(layout, layout.path(names.RAW), ENTRY)


def bare(folder: Path) -> Callable[[], object]:
    """One write and one fsync on a descriptor that stays open: the limit of the disk."""
    descriptor = os.open(folder / "bare", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def append() -> None:
        os.write(descriptor, ENTRY)
        os.fsync(descriptor)

    return append


def sqlite(folder: Path) -> Callable[[], object]:
    """A row in a table, committed."""
    base = sqlite3.connect(folder / "base", timeout=LONGEST_WAIT, isolation_level=None)
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("PRAGMA synchronous=FULL")
    base.execute("CREATE TABLE IF NOT EXISTS entries (line BLOB)")
    return lambda: base.execute("INSERT INTO entries VALUES (?)", (ENTRY,))


MEANS: dict[str, Writer] = {"harness": ours, "write + fsync": bare, "SQLite": sqlite}


def write(folder: Path, make: Writer, begin: float, seconds: float) -> int:
    """Append from the moment `begin` on for so long; how many were acknowledged."""
    append, count = make(folder), 0
    time.sleep(max(0.0, begin - time.monotonic()))
    while time.monotonic() < begin + seconds:
        append()
        count += 1
    return count


def rate(folder: Path, make: Writer, writers: int, seconds: float) -> float:
    """Acknowledged appends per second of so many processes at once."""
    for name in (".harness/locks", ".harness/memory"):
        (folder / name).mkdir(parents=True)
    if make is sqlite:
        make(folder)  # the table is there before many want it at once
    begin, pipes = time.monotonic() + 0.2, []
    for _ in range(writers):
        reading, writing = os.pipe()
        pipes.append(reading)
        if not os.fork():
            os.write(writing, str(write(folder, make, begin, seconds)).encode())
            os._exit(0)
        os.close(writing)
    counts = [int(os.read(pipe, 100) or b"0") for pipe in pipes]
    for pipe in pipes:
        os.wait()
        os.close(pipe)
    check(folder, make, sum(counts))
    return sum(counts) / seconds


def check(folder: Path, make: Writer, count: int) -> None:
    """What was counted is there: as many whole entries."""
    if make is ours:
        assert (folder / ".harness/memory/raw.md").read_bytes() == ENTRY * count
    elif make is sqlite:
        base = sqlite3.connect(folder / "base")
        assert base.execute("SELECT count(*) FROM entries").fetchone() == (count,)
        base.close()


def measure(top: Path, seconds: float, rounds: int) -> dict[tuple[str, int], float]:
    """The median rate of each means with each number of writers."""
    found: dict[tuple[str, int], list[float]] = {}
    for turn in range(rounds):
        for writers in WRITERS:
            for number, (name, make) in enumerate(MEANS.items()):
                folder = top / f"{turn}-{writers}-{number}"
                found.setdefault((name, writers), []).append(rate(folder, make, writers, seconds))
    return {key: statistics.median(rates) for key, rates in found.items()}


def main() -> None:
    """Parse the command line, measure in a throw-away folder, print."""
    parser = argparse.ArgumentParser(description="Durable appends per second, against a bare write and SQLite.")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="on which disk; by default that of temporary files")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-", dir=asked.folder) as folder:
        found = measure(Path(folder), asked.seconds, asked.rounds)
    print(f"{'entries/s':16}" + "".join(f"{writers:>9}" for writers in WRITERS) + "   writers")
    for name in MEANS:
        print(f"{name:16}" + "".join(f"{found[name, writers]:9.0f}" for writers in WRITERS))
    one = found["harness", 1] / found["write + fsync", 1]
    many = found["harness", WRITERS[-1]] / found["SQLite", WRITERS[-1]]
    print(f"of a bare write, 1 writer: {one:.2f} (aim 0.80); of SQLite, 16 writers: {many:.1f} (aim > 1)")


if __name__ == "__main__":
    main()
