"""Planner: the plan lands whole, or goes back with its reasons."""

import sys

sys.path.append(__file__.rsplit("/", 2)[0])

from harness.model.open_run import Run
from harness.run import main
from harness.settle import planner


def settle(run: Run) -> None:
    """Lint the plan and lay it over what is there, as a patch by id."""
    planner.settle(run.opened, run.outcome)


if __name__ == "__main__":
    raise SystemExit(main("planner", settle))
