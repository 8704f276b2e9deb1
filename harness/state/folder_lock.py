"""A lock on a folder, which survives an agent that removes lock files."""

from __future__ import annotations

import errno
import fcntl
import os

from harness.state.files import take_descriptor

# some network file systems cannot lock a folder
UNLOCKABLE = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP)


class FolderLock:
    """An flock on a folder; free when the last holder dies. Some network file systems do not support it."""

    def __init__(self, folder: str) -> None:
        self.folder, self.descriptor = folder, -1

    def take(self, *, wait: bool = False) -> bool:
        """Take the lock; False if another process has it. True if the file system cannot lock a folder."""
        self.descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as fault:
            if fault.errno in UNLOCKABLE:
                return True
            self.release()
            if fault.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        return True

    def release(self) -> None:
        """Close this process's descriptor."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def is_free(path: str) -> bool:
    """Whether no process holds a FolderLock on this path; True if it is not a folder or cannot be locked."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        return True
    try:
        return take_descriptor(descriptor, fcntl.LOCK_SH)
    except OSError as fault:
        if fault.errno in UNLOCKABLE:
            return True
        raise
    finally:
        os.close(descriptor)
