"""Validator: the checks are fired first; an agent may aim more of them; the receipts decide."""

from harness.run import leave, main
from harness.run.settle import validator

if __name__ == "__main__":
    raise SystemExit(leave(main("validator", validator.settle, validator.prepare, validator.examine)))
