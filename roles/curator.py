"""Curator: raw becomes memory, memory becomes summary, and what recurs becomes identity."""

import sys

sys.path.append(__file__.rsplit("/", 2)[0])

from harness.model.open_run import Run
from harness.run import main
from harness.settle import curator


def settle(run: Run) -> None:
    """Apply the reply."""
    curator.settle(run.opened, run.outcome)


def prepare(run: Run) -> bool:
    """Give whether an agent is asked."""
    return curator.prepare(run.opened, run.outcome)


if __name__ == "__main__":
    raise SystemExit(main("curator", settle, prepare))
