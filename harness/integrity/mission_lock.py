"""The mission lock: one process at a time may change a mission, even after an agent removes the lock file as stale.

The lock is taken twice: on its file, and on the folder .harness, which no honest agent removes.
"""

from __future__ import annotations

import errno
import fcntl
import os

from harness.model import runs
from harness.store import files
from harness.store.layout import Layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# some network file systems cannot lock a folder
UNLOCKABLE = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP)


class MissionLock(files.Lock):
    """The lock for changes to the mission. An older harness locks only the file; that counts as holding it too."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout.mission_lock)
        self.layout, self.folder, self.beside = layout, layout.state, -1

    def take(self, *, wait: bool = False) -> bool:
        """Take both; False where another process holds either."""
        if not super().take(wait=wait):
            return False
        self.beside = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(self.beside, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as fault:
            if fault.errno in UNLOCKABLE:
                return True
            self.release()
            if fault.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        return True

    def holder(self) -> dict[str, Any]:
        """What the holder wrote; where that is gone, the run that is alive."""
        alive = [name for name in runs.open_runs(self.layout) if not runs.is_dead(self.layout, name)]
        return super().holder() or ({"run": alive[-1]} if alive else {})

    def release(self) -> None:
        """Close both descriptors."""
        super().release()
        if self.beside >= 0:
            os.close(self.beside)
            self.beside = -1


def take(layout: Layout) -> MissionLock:
    """The mission lock, taken without waiting; raises Busy with its holder and the time."""
    lock = MissionLock(layout)
    files.take_or_busy(lock, "The mission")
    return lock


def descriptors(locks: list[files.Lock]) -> list[int]:
    """The descriptors that keep these locks while any copy of them is open."""
    beside = [lock.beside for lock in locks if isinstance(lock, MissionLock)]
    return [descriptor for descriptor in (*(lock.descriptor for lock in locks), *beside) if descriptor >= 0]
