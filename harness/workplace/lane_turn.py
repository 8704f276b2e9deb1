"""The turn of a lane: from what it decides until its run has claimed that, no other lane of run.sh decides.

The lock is on a descriptor that run.sh opened for itself (`HARNESS_TURN`) and that its children share, so it is gone with them.
"""

from __future__ import annotations

import fcntl
import os
import time

from harness.mission import runs
from harness.state.layout import Layout

TURN = "HARNESS_TURN"
LOOK_SECONDS = 0.05
IDLE_SECONDS = 1.0  # where no run lives


def take() -> None:
    """Wait for this lane's turn; at once where there are no lanes, or it is this lane's already."""
    if (descriptor := _descriptor()) >= 0:
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def release() -> None:
    """The next lane may decide."""
    if (descriptor := _descriptor()) >= 0:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def pass_on() -> None:
    """As `release`, for the process of a run, none of whose children inherits the descriptor."""
    if (descriptor := _descriptor()) >= 0:
        release()
        os.close(descriptor)
        os.environ.pop(TURN, None)


def _descriptor() -> int:
    """The descriptor; -1 without lanes, or where it is closed."""
    word = os.environ.get(TURN, "")
    try:
        return os.fstat(int(word)) and int(word) if word.isdecimal() else -1
    except OSError:
        return -1


def has_lanes() -> bool:
    """Whether there are lanes, which take turns."""
    return _descriptor() >= 0


def lull(layout: Layout, seconds: float, decision: str) -> bool:
    """Wait until a run has ended that the decision's line waits for, or, where it names none, one that lives now; at most so
    long, and only while who started this process lives. Whether one has."""
    until, parent = time.monotonic() + seconds, os.getppid()
    waited = [word.rstrip(",") for word in decision.split(" ")[3:]] if decision.startswith("WAIT 0 ") else []
    live = waited or [name for name in runs.open_runs(layout) if not runs.is_dead(layout, name)]
    while (left := until - time.monotonic()) > 0 and os.getppid() == parent:
        if not set(live) <= set(runs.open_runs(layout)) or any(runs.is_dead(layout, name) for name in live):
            return True
        time.sleep(min(LOOK_SECONDS if live else IDLE_SECONDS, left))
    return False
