"""Git's own lock on a person's index, under which the harness replaces the index and moves their branch."""

from __future__ import annotations

import os

from harness.git import dotgit, settings
from harness.git.checkouts import placement
from harness.state import files


class IndexLock:
    """Git's own lock on a person's index, as a context manager; `taken` is False if a git of theirs holds it.
    The lock is a hard link to a file of the harness, so that a lock left by a kill is recognised and removed. A lock on
    the git folder excludes other missions.
    """

    def __init__(self, project: str) -> None:
        own = dotgit.folders(project)[0]
        self.project, self.index, self.path = project, own + "/index", own + "/index.lock"
        self.ours, self.taken = own + "/harness-index", False
        self.next = os.path.join(settings.private(project), "next-index")
        self.mutex = settings.HeldLock(os.path.join(settings.private(project), "project.lock"), own)

    def __enter__(self) -> IndexLock:
        self.mutex.__enter__()
        if os.path.exists(self.ours) and os.path.exists(self.path) and os.path.samefile(self.ours, self.path):
            files.remove(self.path)
        files.remove(self.ours)  # first, because it may be a hard link to the person's index
        files.stage(self.ours, b"")
        try:
            placement.put(self.ours, os.path.dirname(self.path), os.path.basename(self.path))
            self.taken = True
        except FileExistsError:
            files.remove(self.ours)
        return self

    def copy(self) -> dict[str, str]:
        """Copy the index to work on; returns the variable for git calls."""
        files.remove(self.next + ".lock")
        dotgit.copy_index(self.project, self.next)
        return {"GIT_INDEX_FILE": self.next}

    def install(self) -> None:
        """Replace the index by the copy, durably, and release the lock."""
        made = os.stat(self.next).st_mtime_ns
        files.stage(self.ours, files.read(self.next) or b"")
        os.utime(self.ours, ns=(made, made))
        files.move(self.path, self.index)
        files.remove(self.ours)
        self.taken = False

    def __exit__(self, *_: object) -> None:
        if self.taken:
            files.remove(self.path)
            files.remove(self.ours)
        self.mutex.__exit__()
