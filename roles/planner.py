"""Planner: the plan lands whole, or goes back with its reasons."""

from harness.run import leave, main
from harness.run.settle import planner

if __name__ == "__main__":
    raise SystemExit(leave(main("planner", planner.settle, examine=planner.examine)))
