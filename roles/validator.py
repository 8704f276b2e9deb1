"""Validator: the checks are fired first; an agent may aim more of them; the receipts decide."""

import sys

sys.path.append(__file__.rsplit("/", 2)[0])

from harness import judge
from harness.current import Run
from harness.run import main


def prepare(run: Run) -> bool:
    """Fire the checks; only when all are green is an agent asked."""
    return judge.prepare(run)


def settle(run: Run) -> None:
    """Fire what the agent aims, then let the receipts decide."""
    judge.settle(run)


if __name__ == "__main__":
    raise SystemExit(main("validator", settle, prepare, agent_optional=True))
