"""The child: one run of the built-in agent. The order is its argument, the prompt its standard input, JSON lines its output."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from harness.base import console, encoding, exits
from harness.builtin._order import parse
from harness.builtin._resend import send
from harness.builtin._run import run

QUIET_SECONDS = 0.5  # the least time between two signs of life


class Reporter:
    """Tells what happens, a JSON line each."""

    def __init__(self) -> None:
        self.told = 0.0

    def __call__(self, row: dict[str, Any]) -> None:
        """Print one event; pieces of an answer are printed twice a second."""
        if row.get("delta"):
            if time.monotonic() - self.told < QUIET_SECONDS:
                return
            self.told = time.monotonic()
        console.print_line(encoding.compact(row, ascii_only=True))


def main(words: list[str]) -> int:
    """Carry out the order; the outcome is the last line, and only a bug gives an exit code."""
    order = parse(words[0] if words else "")
    report = Reporter()
    if order.turn:
        return send(order, report)
    report({"type": "begin", "model": order.parameters["model"]})
    return run(order, sys.stdin.buffer.read(), report)


if __name__ == "__main__":
    raise SystemExit(exits.guarded(lambda: main(sys.argv[1:])))
