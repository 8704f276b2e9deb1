"""What a last look at everything costs before DONE: the digests of all runs, and all objects that their prompts are made of.

    python bench/seals.py [--runs 1000] [--rounds 5]

It makes a mission with that many finished runs of realistic size (a prompt of 20 KiB from 8 parts, a reply, receipts), and
prints medians. The goal is less than 2 s for 1,000 runs. The index over all receipts is beside it: built anew, and kept.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME))

from harness.base import encoding
from harness.decision import doubts
from harness.mission import receipts, runs
from harness.mission.receipts import Receipt
from harness.proof import index
from harness.state import manifests, names
from harness.state.layout import Layout

PARTS, PART_BYTES, CHECKS = 8, 2500, 5
WORDS = ("feature", "trigger", "outcome", "reason", "agent", "commit", "head", "mark")


def finished(layout: Layout, number: int) -> bytes:
    """The folder of one finished run, and its line in the run log."""
    run = layout.run(f"r-{number}")
    Path(run.folder).mkdir(parents=True)
    parts = [(f"part {part} of {number if part > 4 else 0}\n".encode() * 100, f"{part}.md") for part in range(PARTS)]
    parts = [(data[:PART_BYTES], source) for data, source in parts]
    Path(run.manifest).write_bytes(manifests.rendered(layout, parts))
    Path(run.prompt).write_bytes(b"".join(data for data, _ in parts))
    Path(run.context).write_bytes(b'{"live":{}}' * 100)
    Path(run.reply).write_bytes(b"done\n" * 100)
    Path(run.receipts).write_bytes(receipts.render([receipt(number, check) for check in range(CHECKS)]))
    words: dict[str, Any] = dict.fromkeys(WORDS, "")
    made = runs.RunResult(
        **words | {"run": f"r-{number}", "role": "validator", "verdict": "green", "at": "t", "seal": runs.seal(run)},
        accepted=None,
        sweep=None,
        usage=None,
        seconds=1.0,
        newly_green=0,
        kept_out=[],
        refused=[],
        totals=runs.Totals().asdict(),
    )
    line = encoding.dump_json(made.asdict())
    Path(run.result).write_bytes(line)
    return line


def receipt(number: int, check: int) -> Receipt:
    """A green receipt."""
    plain: dict[str, Any] = {
        "output": "ok\n" * 50,
        "output_sha256": "0" * 64,
        "by": "r",
        "host": "h",
        "at": "t",
        "head": "c" * 40,
    }
    claim, command = f"VAL-{check}", f"test -f {check}"
    return Receipt(
        claim=claim, command=command, phase="after", exit=0, seconds=0.1, tree=f"{number // 9:040x}", **plain
    )


def took(rounds: int, body: Callable[[], object]) -> float:
    """The median seconds of a call."""
    found = []
    for _ in range(rounds):
        started = time.perf_counter()
        body()
        found.append(time.perf_counter() - started)
    return statistics.median(found)


def main() -> None:
    """Parse the command line, measure in a throw-away folder, print."""
    parser = argparse.ArgumentParser(description="What a last look at everything costs before DONE.")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        layout = Layout(folder)
        Path(layout.path(names.LOCKS)).mkdir(parents=True)
        Path(layout.path(names.RUN_LOG)).write_bytes(b"".join(finished(layout, number) for number in range(asked.runs)))
        assert doubts.changed(layout) == []
        print(f"{asked.runs} runs, {len(list(Path(layout.path(names.OBJECTS)).glob('??/*')))} objects")
        print(
            f"  digests of all runs        {took(asked.rounds, lambda: runs.broken_seals(layout, sys.maxsize)):7.3f} s"
        )
        print(f"  all objects                {took(asked.rounds, lambda: manifests.lost(layout)):7.3f} s")
        print(f"  both, as before DONE       {took(asked.rounds, lambda: doubts.changed(layout)):7.3f} s  (goal: 2 s)")

        def anew() -> None:
            shutil.rmtree(layout.cache, ignore_errors=True)
            index.load(layout)

        print(f"  index of proof, built anew {took(asked.rounds, anew):7.3f} s")
        print(f"  index of proof, kept       {took(asked.rounds, lambda: index.load(layout)):7.3f} s")


if __name__ == "__main__":
    main()
