"""Validator: the checks are fired first; an agent may aim more of them; the receipts decide."""

import sys

sys.path.append(__file__.rsplit("/", 2)[0])

from harness.model.open_run import Run
from harness.run import main
from harness.settle import validator


def settle(run: Run) -> None:
    """Apply the reply."""
    validator.settle(run.opened, run.outcome)


def prepare(run: Run) -> bool:
    """Give whether an agent is asked."""
    return validator.prepare(run.opened, run.outcome)


if __name__ == "__main__":
    raise SystemExit(main("validator", settle, prepare))
