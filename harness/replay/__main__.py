"""`python -m harness.replay FOLDER` plays a mission back in the copy below FOLDER, as `replay --mission` does."""

from __future__ import annotations

import os
import sys

from harness.base.exits import guarded, handle_signals
from harness.process import supervise
from harness.replay import playback


def main() -> int:
    """Play the job in the folder of the first argument; returns the exit code."""
    handle_signals()
    supervise.end_with_parent(os.getppid())
    return guarded(lambda: playback.play_job(sys.argv[1]))


if __name__ == "__main__":
    raise SystemExit(main())
