"""Specifier: what a person asks for becomes SPEC.md."""

from harness.run import leave, main
from harness.run.settle import specifier

if __name__ == "__main__":
    raise SystemExit(leave(main("specifier", specifier.settle)))
