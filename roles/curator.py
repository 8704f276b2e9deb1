"""Curator: raw becomes memory, memory becomes summary, and what recurs becomes identity."""

import sys

sys.path.append(__file__.rsplit("/", 2)[0])

from harness.model.open_run import Run
from harness.run import main
from harness.settle import curator


def prepare(run: Run) -> bool:
    """Nobody is asked: what is folded is computed, and an agent's operations are not carried out yet."""
    return False


def settle(run: Run) -> None:
    """Fold what waits in raw.md by code, within all bounds."""
    curator.settle(run.opened, run.outcome)


if __name__ == "__main__":
    raise SystemExit(main("curator", settle, prepare, agent_optional=True))
