"""Validator: the checks are fired first; an agent may aim more of them; the receipts decide."""

import sys

sys.path.append(__file__.rsplit("/", 2)[0])

from harness.run import leave, main
from harness.settle import validator

if __name__ == "__main__":
    raise SystemExit(leave(main("validator", validator.settle, validator.prepare, validator.examine)))
