"""All sweeps, and one table: `python -m tests.torture [--full] [--only SWEEP…] [--minutes 15]`.

A sample with fixed seeds, bounded in time; --full sweeps every point without a bound. Each sweep is a process with a folder of
its own, as many at once as there are cores. Exit 1 where a sweep found a fault.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.missions import CHECKOUT, House, enter
from tests.torture import kills, limits, mutants, power, rivals, table
from tests.torture.kills import Effort
from tests.torture.operations import OPERATIONS
from tests.torture.table import Row

POINTS, FAILURES, CUTS, WHOLE_CUTS = 8, 6, 40, 5  # of a sample
ALL = 10**9
FEWEST_SECONDS, SHARE = 15.0, 1.5  # of a sweep: at least, and how much more than an even share of what is left
LONG_TESTS = " or ".join(  # rows that the suite samples
    [
        "torture",
        "crash",
        "kill",
        "signals",
        "misbehaves",
        "hunt",
        "gallery",
        "stage",
        "merged",
        "spec",
        "monorepo",
        "update",
        "test_v2",
        "reconcile",
        "rebuilt",
        "curator",
        "restoring",
        "beneath",
        "expressions",
        "walking",
        "sessions",
        "test_main",
        "test_homes",
        "compare_and_set",
    ]
)
Sweep = Callable[[Path, bool, float, Callable[[str], object]], list[Row]]


def operation(name: str) -> Sweep:
    """The sweep of kills and failing calls over one operation."""

    def sweep(folder: Path, full: bool, until: float, show: Callable[[str], object]) -> list[Row]:
        most = (ALL, ALL) if full else (POINTS, FAILURES)
        return [kills.sweep(name, folder, Effort(*most, until), show)]

    return sweep


def unconfined(folder: Path, full: bool, until: float, show: Callable[[str], object]) -> list[Row]:
    """The runs that keep copies of what their agents may change: where it is full."""
    rows = []
    for name in ("settle: worker", "settle: validator") if full else ():
        (folder / name[-5:]).mkdir()
        row = kills.sweep(name, folder / name[-5:], Effort(ALL, ALL, until), show, ('confine = "off"',))
        rows.append(dataclasses.replace(row, name=f"{name}, not confined"))
    return rows


def cuts(kind: str) -> Sweep:
    """The sweep of power cuts on a file system of this kind."""

    def sweep(folder: Path, full: bool, until: float, show: Callable[[str], object]) -> list[Row]:
        (folder / "load").mkdir()
        (folder / "whole").mkdir()
        many = 10 if full else 1
        load = power.sweep(folder / "load", kind, CUTS * many, until, show)
        return [load, power.whole(folder / "whole", kind, WHOLE_CUTS * many, until, show)]

    return sweep


def rival(folder: Path, full: bool, until: float, show: Callable[[str], object]) -> list[Row]:
    """The sweep of many processes at once."""
    (folder / "template").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        made = House(folder / "template", enter(patch, folder / "template"))
        made.repository()
        made.begin()
    return rivals.sweep(folder, folder / "template", 10 if full else 3, show)


def tests(name: str, *words: str, long: bool = False, always: bool = False) -> Sweep:
    """Tests of the suite as a sweep, with every row where it is full, or `always`; `long`: only where it is full."""

    def sweep(folder: Path, full: bool, until: float, show: Callable[[str], object]) -> list[Row]:
        row, begun = Row(name), time.monotonic()
        if long and not full:
            return []
        env = os.environ | ({"HARNESS_TORTURE": "1"} if full or always else {})
        asked = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--basetemp",
            str(folder / "base"),
            *words,
        ]
        done = subprocess.run(asked, cwd=CHECKOUT, env=env, capture_output=True, text=True, check=False)
        counts = {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|error|skipped)", done.stdout)}
        row.tried, row.points = counts.get("passed", 0), sum(counts.values()) - counts.get("skipped", 0)
        row.faults = re.findall(r"^(?:FAILED|ERROR) .*$", done.stdout, re.M)
        row.faults += [done.stdout[-500:]] if done.returncode and not row.faults else []
        row.seconds = time.monotonic() - begun
        show(f"{name}: {row.tried} of {row.points} tests")
        return [row]

    return sweep


SWEEPS: dict[str, Sweep] = {
    **{name: operation(name) for name in OPERATIONS},
    "unconfined": unconfined,
    "ext4": cuts("ext4"),
    "xfs": cuts("xfs"),
    "rivals": rival,
    "limits": lambda folder, full, until, show: limits.sweep(folder, 1 if full else 3, until, show),
    "mutants": lambda folder, full, until, show: mutants.sweep(folder, full, until, show),
    "hostile": tests("hostile tree", "tests/torture/test_hostile.py"),
    "states": tests(
        "enumerated crash states",
        "tests/torture/test_states.py",
        "tests/torture/test_states_of_missions.py",
        "tests/test_crash_journal.py",
    ),
    "team": tests("races of a team", "tests/team/test_status.py", "-k", "twice or writers", always=True),
    "workspaces": tests("races of a team's files", "tests/team/test_races.py", always=True),
    "killed turns": tests("killed turns of a team", "tests/team/test_hostile_turns.py", "-k", "killed", always=True),
    "killed lanes": tests("kills of lanes on machines", "tests/test_machines.py", "-k", "kills", always=True),
    "machines": tests("state machines", "tests/torture/test_machines.py"),
    "suite": tests("long tests of the suite", "tests", "-k", LONG_TESTS, long=True),
}
LONGEST_FIRST = (
    "suite",
    "killed lanes",
    "workspaces",
    "mutants",
    "limits",
    "archive",
    "init",
    "lease",
    "merge of a lane",
    "settle: worker",
    "ext4",
    "xfs",
)


def show(line: str) -> None:
    """Progress, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def one(name: str, rows: Path, full: bool, seconds: float) -> None:
    """Carry out one sweep, in this process; its rows go to a file."""
    with tempfile.TemporaryDirectory(prefix="harness-torture-", ignore_cleanup_errors=True) as folder:
        found = SWEEPS[name](Path(folder), full, time.monotonic() + seconds, show)
    rows.write_text(json.dumps([dataclasses.asdict(row) for row in found]))


def begin(name: str, folder: Path, full: bool, seconds: float) -> subprocess.Popen[bytes]:
    """Start the process of one sweep."""
    words = [
        sys.executable,
        "-m",
        "tests.torture",
        "--only",
        name,
        "--rows",
        str(folder / f"{name}.json".replace(":", "")),
    ]
    words += ["--seconds", str(seconds), *(["--full"] if full else [])]
    return subprocess.Popen(words, cwd=CHECKOUT, stdin=subprocess.DEVNULL)


def every(names: list[str], full: bool, seconds: float, folder: Path) -> Iterator[Row]:
    """Carry out these sweeps, as many at once as there are cores; their rows in the order of SWEEPS."""
    waiting = sorted(names, key=lambda name: LONGEST_FIRST.index(name) if name in LONGEST_FIRST else len(LONGEST_FIRST))
    alive: dict[str, subprocess.Popen[bytes]] = {}
    end, codes, cores = time.monotonic() + seconds, dict[str, int](), os.cpu_count() or 1
    while waiting or alive:
        while waiting and len(alive) < cores:
            name = waiting.pop(0)
            left = max(0.0, end - time.monotonic())
            share = max(FEWEST_SECONDS, SHARE * left * cores / (len(waiting) + cores))
            alive[name] = begin(name, folder, full, left if full else min(left, share))
        for name, process in list(alive.items()):
            if process.poll() is not None:
                codes[name] = alive.pop(name).returncode
                show(
                    f"--- {name} ended; {len(alive) + len(waiting)} sweeps to go, {max(0, round(end - time.monotonic()))} s left"
                )
        time.sleep(0.1)
    for name in names:
        path = folder / f"{name}.json".replace(":", "")
        if path.exists():
            yield from (Row(**row) for row in json.loads(path.read_text()))
        else:
            yield Row(name, faults=[f"the sweep itself ended with {codes[name]}"])


def main() -> int:
    """Parse the command line, sweep, print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description="All sweeps, and one table.")
    parser.add_argument("--full", action="store_true", help="every point, without a bound in time")
    parser.add_argument(
        "--only", nargs="+", choices=SWEEPS, default=list(SWEEPS), metavar="SWEEP", help=", ".join(SWEEPS)
    )
    parser.add_argument("--minutes", type=float, default=15, help="when a sample ends, done or not")
    parser.add_argument("--rows", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.rows:
        one(asked.only[0], asked.rows, asked.full, asked.seconds)
        return 0
    begun, most = time.monotonic(), ALL if asked.full else asked.minutes * 60 - 60
    with tempfile.TemporaryDirectory() as folder:
        rows = list(every(asked.only, asked.full, most, Path(folder)))
    show(f"\n{table.render(rows)}{time.monotonic() - begun:.0f} seconds")
    return int(any(row.faults for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
