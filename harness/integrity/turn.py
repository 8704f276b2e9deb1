"""The turn of a lane: from what it decides until its run has claimed that, no other lane of run.sh decides.

The lock is on a descriptor that run.sh opened for itself (`HARNESS_TURN`) and that its children share, so it is gone with them.
"""

from __future__ import annotations

import fcntl
import os
import time

from harness.model import runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harness.store.layout import Layout

TURN = "HARNESS_TURN"
LOOK_SECONDS = 0.05


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


def lull(layout: Layout, seconds: float, decision: str) -> None:
    """Wait until a run has ended that the decision's line waits for, or, where it names none, one that lives now; at most so
    long."""
    until = time.monotonic() + seconds
    waited = [word.rstrip(",") for word in decision.split(" ")[3:]] if decision.startswith("WAIT 0 ") else []
    live = waited or [name for name in runs.open_runs(layout) if not runs.is_dead(layout, name)]
    while (left := until - time.monotonic()) > 0:
        if not set(live) <= set(runs.open_runs(layout)) or any(runs.is_dead(layout, name) for name in live):
            return
        time.sleep(min(LOOK_SECONDS, left) if live else left)
