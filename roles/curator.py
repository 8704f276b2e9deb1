"""Curator: raw becomes memory, memory becomes summary, and what recurs becomes identity."""

from harness.run import leave, main
from harness.run.settle import curator

if __name__ == "__main__":
    raise SystemExit(leave(main("curator", curator.settle, curator.prepare)))
