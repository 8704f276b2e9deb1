"""The mission lock: held for the milliseconds in which a run opens or settles, and during changes of the queue.

The lock is taken twice: on its file, and on the folder .harness, which no honest agent removes. Operations that need an
idle mission first take the locks of all loops.
"""

from __future__ import annotations

import time
from contextlib import ExitStack

from harness.base.errors import LockBusy
from harness.process import tree
from harness.state import files, journal, names
from harness.state.folder_lock import FolderLock
from harness.state.layout import Layout

PATIENCE_SECONDS = 3.0  # maximum wait; holders need milliseconds, a recovery or large merge some seconds
POLL_SECONDS = 0.005


class MissionLock(files.Lock):
    """The lock for changes to the mission. An older harness locks only the file; that counts as holding it too."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout.path(names.MISSION_LOCK))
        self.beside = FolderLock(layout.state)

    def take(self, *, wait: bool = False) -> bool:
        """Take both; False if another process holds either."""
        if not super().take(wait=wait):
            return False
        if self.beside.take(wait=wait):
            return True
        self.release()
        return False

    def release(self) -> None:
        """Close both descriptors."""
        super().release()
        self.beside.release()

    def __enter__(self) -> MissionLock:
        super().__enter__()
        return self


def take(layout: Layout) -> MissionLock:
    """Take the mission lock; raises LockBusy with its holder and since when after PATIENCE_SECONDS, and BrokenFile if a
    folder of the state is a link."""
    journal.require_folders(layout)
    lock, until = MissionLock(layout), time.monotonic() + PATIENCE_SECONDS
    while not lock.take():
        if time.monotonic() > until:
            files.take_or_busy(lock, "The mission")
            break
        time.sleep(POLL_SECONDS)
    return lock


def held(layout: Layout) -> MissionLock:
    """The mission lock as a context manager that waits for it."""
    return MissionLock(layout)


def loops(layout: Layout) -> list[files.Lock]:
    """The lock of each lane's loop, always including the first lane."""
    folder, _, first = layout.path(names.LOOP_LOCK).rpartition("/")
    found = {first, *(name for name in files.names(folder) if name.startswith(first))}
    return [files.Lock(f"{folder}/{name}") for name in sorted(found)]


def looping(layout: Layout) -> bool:
    """Whether a run.sh loops on the mission. Checks its pid first, because probing the lock could block a start."""
    return any(_loops(lock) for lock in loops(layout))


def _loops(lock: files.Lock) -> bool:
    pid = lock.holder().get("pid")
    return isinstance(pid, int) and tree.lives(pid) and not files.is_free(lock.path)


def without_loops(layout: Layout) -> ExitStack:
    """Hold the lock of every lane's loop to the end of the block, so that none starts. Raises LockBusy if one loops."""
    held = ExitStack()
    for lock in loops(layout):
        if not lock.take():
            held.close()
            pid = lock.holder().get("pid", "?")
            raise LockBusy(f"run.sh is looping on this mission: pid {pid}. Stop it, or wait for it to end.")
        held.enter_context(lock)
    return held
