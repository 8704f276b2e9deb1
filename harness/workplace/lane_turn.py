"""The turn of a lane: from its decision until its run has claimed the work, no other lane of run.sh decides.

The lock is on a descriptor that run.sh opened (`HARNESS_TURN`) and its children share, so it ends with them.
"""

from __future__ import annotations

import fcntl
import os
import time

from harness.mission import runs
from harness.state.layout import Layout

TURN = "HARNESS_TURN"
POLL_SECONDS = 0.05
IDLE_SECONDS = 1.0  # poll interval without a live run


def take() -> None:
    """Wait for this lane's turn; returns at once without lanes, or if it already has the turn."""
    if (descriptor := _descriptor()) >= 0:
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def release() -> None:
    """Let the next lane decide."""
    if (descriptor := _descriptor()) >= 0:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def pass_on() -> None:
    """As `release`, for the process of a run; its children do not inherit the descriptor."""
    if (descriptor := _descriptor()) >= 0:
        release()
        os.close(descriptor)
        os.environ.pop(TURN, None)


def _descriptor() -> int:
    """The descriptor; -1 without lanes, or if it is closed."""
    word = os.environ.get(TURN, "")
    try:
        return os.fstat(int(word)) and int(word) if word.isdecimal() else -1
    except OSError:
        return -1


def has_lanes() -> bool:
    """Whether there are several lanes."""
    return _descriptor() >= 0


def lull(layout: Layout, seconds: float, decision: str) -> bool:
    """Wait until a run that the decision's line waits for (or, if it names none, any live run) has ended, for at most
    `seconds` and while the parent process lives; returns whether one has. Idle lanes poll in-process, to avoid a Python
    start per poll."""
    until, parent = time.monotonic() + seconds, os.getppid()
    waited = [word.rstrip(",") for word in decision.split(" ")[3:]] if decision.startswith("WAIT 0 ") else []
    live = waited or [name for name in runs.open_runs(layout) if not runs.is_dead(layout, name)]
    while (left := until - time.monotonic()) > 0 and os.getppid() == parent:
        if not set(live) <= set(runs.open_runs(layout)) or any(runs.is_dead(layout, name) for name in live):
            return True
        time.sleep(min(POLL_SECONDS if live else IDLE_SECONDS, left))
    return False
