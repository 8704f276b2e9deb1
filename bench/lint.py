"""What the lint of a large plan costs, as a multiple of reading and writing its JSON, measured in turn.

    python bench/lint.py [--rounds 7] [--features 1000,5000]

Each feature has two claims with one or two checks, and depends on the one before it. *json* is `json.loads` and `json.dumps`
of the reply; *lint* is what `harness reply` does before it runs a check: the schema of the reply, the draft with every rule,
and the contract rendered and parsed back. A ratio that grows with the number of features is a cost that is not linear.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME))

from harness.mission import replies
from harness.mission.contract import Contract
from harness.run.settle import _plan


def reply(number: int) -> str:
    """A first plan, as a planner writes it."""
    return json.dumps(
        {"features": [feature(n) for n in range(number)], "contract": [claim(n) for n in range(2 * number)]}
    )


def feature(number: int) -> dict[str, Any]:
    """A feature that depends on the one before it."""
    return {
        "id": f"F-{number:05d}",
        "title": f"Part {number} of the program",
        "description": "What it does, in a sentence or two that a worker can act upon.",
        "claims": [f"VAL-{2 * number:05d}", f"VAL-{2 * number + 1:05d}"],
        "depends_on": [f"F-{number - 1:05d}"] if number else [],
        "spec_refs": ["Part"],
    }


def claim(number: int) -> dict[str, Any]:
    """A claim with one check, or with two."""
    checks: list[Any] = [f"python3 main.py {number}"]
    checks += [{"run": f"test -f part{number}\ngrep x part{number} >/dev/null", "seconds": 30}] if number % 2 else []
    return {"id": f"VAL-{number:05d}", "claim": f"Part {number} works as the spec says", "checks": checks}


def wall(body: Callable[[], object]) -> float:
    """The duration of a call in seconds."""
    started = time.perf_counter()
    body()
    return time.perf_counter() - started


def table(text: str, rounds: int) -> dict[str, float]:
    """Median seconds of the baseline and of each part of the lint, in turn."""
    value = replies.parse("plans", text)
    made, faults = _plan.draft(value, [], Contract(), [])
    assert not faults
    parts: dict[str, Callable[[], object]] = {
        "json": lambda: json.dumps(json.loads(text)),
        "schema": lambda: replies.parse("plans", text),
        "draft": lambda: _plan.draft(value, [], Contract(), []),
        "contract": lambda: _plan.write_faults(made.contract),
    }
    seconds: dict[str, list[float]] = {name: [] for name in parts}
    for _ in range(rounds):
        for name, body in parts.items():
            seconds[name].append(wall(body))
    return {name: statistics.median(values) for name, values in seconds.items()}


def report(sizes: list[int], rounds: int) -> None:
    """Print the ratios, one line per size."""
    print(f"{'features':>9} {'json ms':>8} {'lint s':>7} {'ratio':>6}   of which schema, draft, contract")
    table(reply(10), 1)  # loads the parsers
    for number in sizes:
        found = table(reply(number), rounds)
        base, parts = found.pop("json"), found
        ratios = ", ".join(f"{seconds / base:.1f}" for seconds in parts.values())
        lint = sum(parts.values())
        print(f"{number:>9} {1e3 * base:8.1f} {lint:7.2f} {lint / base:6.1f}   {ratios}", flush=True)


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description="What the lint of a large plan costs.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--features", default="1000,5000")
    asked = parser.parse_args()
    report([int(size) for size in asked.features.split(",")], asked.rounds)


if __name__ == "__main__":
    main()
