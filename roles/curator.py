"""Curator: raw becomes memory, memory becomes summary, and what recurs becomes identity."""

import sys

sys.path.append(__file__.rsplit("/", 2)[0])

from harness import curate
from harness.current import Run
from harness.run import main


def settle(run: Run) -> None:
    """Fold what waits in raw.md by code, within all bounds."""
    curate.settle(run)


if __name__ == "__main__":
    raise SystemExit(main("curator", settle, agent_optional=True))
