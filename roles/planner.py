"""Planner: the plan lands whole, or goes back with its reasons."""

import sys

sys.path.append(__file__.rsplit("/", 2)[0])

from harness.run import leave, main
from harness.settle import planner

if __name__ == "__main__":
    raise SystemExit(leave(main("planner", planner.settle, examine=planner.examine)))
