"""Who may change a mission: one at a time, also where an agent has removed the file of a lock that it took for a stale one.

The mission lock is held twice: on its file, and on the folder .harness, which nobody removes in good faith.
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

# a folder, on some network file systems
UNLOCKABLE = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP)


class MissionLock(files.Lock):
    """The lock of the one who may change the mission. Whoever holds its file alone, as an older harness does, has it too."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout.mission_lock)
        self.layout, self.folder, self.beside = layout, layout.state, -1

    def take(self, *, wait: bool = False) -> bool:
        """Take both; False where somebody else has either."""
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
        """What the holder wrote; the run that lives where that is gone."""
        alive = [name for name in runs.open_runs(self.layout) if not runs.is_dead(self.layout, name)]
        return super().holder() or ({"run": alive[-1]} if alive else {})

    def release(self) -> None:
        """Give both descriptors back."""
        super().release()
        if self.beside >= 0:
            os.close(self.beside)
            self.beside = -1


def take(layout: Layout) -> MissionLock:
    """The mission lock, taken at once; raises Busy with who holds it and since when."""
    lock = MissionLock(layout)
    files.take_or_busy(lock, "The mission")
    return lock


def descriptors(locks: list[files.Lock]) -> list[int]:
    """What keeps these locked for as long as it is open."""
    return [descriptor for lock in locks for descriptor, _ in _places(lock)]


def _places(lock: files.Lock) -> list[tuple[int, str]]:
    """(descriptor, path) of all that a lock stands on."""
    places = [(lock.descriptor, lock.path)]
    if isinstance(lock, MissionLock):
        places.append((lock.beside, lock.folder))
    return [place for place in places if place[0] >= 0]


def put_back(locks: list[files.Lock]) -> list[str]:
    """Lock again at its path what was removed or exchanged while these were held, in the same descriptor; gives the paths."""
    found = []
    for lock in locks:
        for descriptor, path in _places(lock):
            if not _leads_to(path, descriptor):
                found.append(path)
                _lock_again(lock, descriptor, path)
    return found


def _leads_to(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _lock_again(lock: files.Lock, descriptor: int, path: str) -> None:
    is_file = descriptor == lock.descriptor
    new = files.open_regular(path, os.O_RDWR | os.O_CREAT) if is_file else os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    if files.take_descriptor(new):  # an older harness, which knows the file alone, may have been faster
        os.dup2(new, descriptor, inheritable=False)
        if is_file:
            lock.sign(lock.signed)
    os.close(new)
