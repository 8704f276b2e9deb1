"""Worker: what it changed becomes one commit, and its feature goes on to validation."""

from harness.run import leave, main
from harness.run.settle import worker

if __name__ == "__main__":
    raise SystemExit(leave(main("worker", worker.settle)))
