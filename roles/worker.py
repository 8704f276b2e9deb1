"""Worker: what it changed becomes one commit, and its feature goes on to validation."""

import sys

sys.path.append(__file__.rsplit("/", 2)[0])

from harness.model.open_run import Run
from harness.run import main
from harness.settle import worker


def settle(run: Run) -> None:
    """Commit the tree; nothing is believed yet."""
    worker.settle(run.opened, run.outcome)


if __name__ == "__main__":
    raise SystemExit(main("worker", settle))
