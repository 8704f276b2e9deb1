"""Detects file changes by checks: a check that changes a test is red, and its leftovers are removed before the next.

A file *decides* if a check names it, or if it is a test. After each check these are compared with the commit, byte by byte.
Changes of them by setup or a check are reverted, and so are a check's changes of other tracked files. New tests of a check
are removed, and, before a check of another claim, new files that such a check names. `[checks] writes` names exempt files.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

from harness.base.encoding import few
from harness.git import contents
from harness.git.checkouts import placement, worktrees
from harness.mission.check_environment import CheckEnvironment, CheckWatch
from harness.mission.contract import Contract
from harness.mission.receipts import REWRITTEN, WARNING, Receipt
from harness.proof import _file_kinds

Look = tuple[int, ...]  # size, inode, mtime, and ctime, which programs cannot set; () for no file

PACKAGES = {"node_modules", ".venv", "venv", "site-packages"}  # third-party tests
LARGE_FILE_BYTES = 1024 * 1024  # bytes; larger files are compared by stat only
MAX_PATHS = 3
RED = "it changed {}: a check names that, or it is a test; [checks] writes in config.toml says where a check may write"
MISSED = "{}; before it {} was removed, since a check of {} made that: a check makes what it needs"


def watched(place: CheckEnvironment, known: Contract) -> CheckEnvironment:
    """`place` with a FileWatch for setup and checks of this contract; its files are as committed now."""
    if place.machine:
        place.machine.watch(known)
        return place
    return place.replace(watch=FileWatch(place, known)) if place.head else place


class FileWatch(CheckWatch):
    """The files of one place as the next check should find them."""

    def __init__(self, place: CheckEnvironment, known: Contract) -> None:
        self.root, self.writes, self.source = place.root, place.writes, place.source or place.root
        self.below = os.path.relpath(place.directory, place.root).removeprefix(".")
        self.names = {one.id: _file_kinds.NamedPaths(check.run for check in one.checks) for one in known.claims}
        self.named = _file_kinds.NamedPaths(check.run for one in known.claims for check in one.checks)
        self.tracked = contents.entries(self.source, place.head, ["."], sizes=False)
        looks = {path: self._look(path) for path in self.tracked if not self._is_meant(path)}
        self.looks = {path: look for path, look in looks.items() if look}
        deciding = [path for path, look in self.looks.items() if look[0] <= LARGE_FILE_BYTES and self._decides(path)]
        self.laid = {path: self._data(path) for path in deciding}
        self.others, self.removed, self.notes = set[str](), dict[str, str](), list[str]()
        self.kept = dict[str, str]()  # {file to remove before a check of another claim: the claim whose check made it}

    def begin(self) -> None:
        """Accept changes and files of setup, except in files that decide."""
        changed, _ = self._changed()
        back = [path for path in changed if self._decides(path)]
        self.looks = {path: look for path, look in self.looks.items() if path in back or path not in changed}
        self._put_back(back)
        self.notes = [f"{WARNING}setup changed {few(sorted(back), MAX_PATHS)}, which is put back"] if back else []
        self.looks = {path: self._look(path) for path in self.looks}
        self.others = self._untracked()

    def begin_check(self, claim: str) -> None:
        """Remove files that checks of other claims made and that checks of further claims name; "": all of them."""
        doomed = [path for path, by in self.kept.items() if by != claim]
        for path in doomed:
            worktrees.discard(self.root, path)
            self.removed[path] = self.kept.pop(path)
        self.others -= {*doomed}

    def examined(self, receipt: Receipt) -> Receipt:
        """The receipt of the check that just ended, with its file changes, which are reverted."""
        changed, rewritten = self._changed()
        red = [path for path in changed if self._decides(path)]
        made, names = self._untracked() - self.others, self.names.get(receipt.claim, ())
        doomed = {path for path in made if self._is_new_test(path, receipt.claim)}
        missed = [path for path in self.removed if self._seen(path) in names]
        notes = [*receipt.notes, *self.notes, *(f"rewrites {path}{REWRITTEN}" for path in rewritten)]
        notes += [f"{WARNING}the check changed {few(sorted(changed), MAX_PATHS)}, which is put back"] if changed else []
        reason = RED.format(few(sorted(red), MAX_PATHS)) if red and receipt.green else ""
        if missed and not receipt.green:
            reason = MISSED.format(receipt.fault, few(sorted(missed), MAX_PATHS), self.removed[missed[0]])
        self._put_back(changed)
        for path in doomed:
            worktrees.discard(self.root, path)
        self.looks |= {path: self._look(path) for path in (*changed, *rewritten)}
        self.others |= made - doomed
        self.kept |= {path: receipt.claim for path in made - doomed if self._is_for_others(path, receipt.claim)}
        self.removed |= dict.fromkeys(doomed, receipt.claim)
        return receipt.replace(notes=notes, reason=reason)

    def _changed(self) -> tuple[list[str], list[str]]:
        """(changed tracked files, tests that were written but are unchanged)."""
        touched = [path for path, look in self.looks.items() if self._look(path) != look]
        changed = [path for path, data in self.laid.items() if path in self.looks and self._data(path) != data]
        others = [path for path in touched if path not in self.laid]
        known = contents.blobs(self.source, [self.tracked[path].blob for path in others])
        for path in others:
            blob = known[self.tracked[path].blob]
            filtered = self.looks[path][0] != len(blob)  # by git, as it wrote the file
            changed += [path] * (not filtered and self._data(path) != blob)
        tests = (path for path in touched if path in self.laid and path not in changed)
        return changed, [
            path for path in tests if _file_kinds.TEST_FILE.search(path) or _file_kinds.CHECK_FILE.search(path)
        ]

    def _is_new_test(self, path: str, claim: str) -> bool:
        """Whether a new file of a check of this claim is a test, which is removed before the next check."""
        test = _file_kinds.TEST_FILE.search(path) and PACKAGES.isdisjoint(path.split("/"))
        return bool(test) and not self._is_meant(path) and self._seen(path) not in self.names.get(claim, ())

    def _is_for_others(self, path: str, claim: str) -> bool:
        """Whether checks of other claims name a file."""
        named = (names for one, names in self.names.items() if one != claim)
        return not self._is_meant(path) and any(self._seen(path) in names for names in named)

    def _decides(self, path: str) -> bool:
        return bool(_file_kinds.TEST_FILE.search(path)) or self._seen(path) in self.named

    def _is_meant(self, path: str) -> bool:
        return any((self._seen(path) + "/").startswith(one.rstrip("/") + "/") for one in self.writes)

    def _seen(self, path: str) -> str:
        return _file_kinds.as_seen(path, self.below)

    def _look(self, path: str) -> Look:
        try:
            found = os.lstat(os.path.join(self.root, path))
        except OSError:
            return ()
        return found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns

    def _data(self, path: str) -> bytes | None:
        """The content of a file, or the target of a link; None for anything else, or if unreadable."""
        whole = os.path.join(self.root, path)
        try:
            if self.tracked[path].mode == contents.LINK:
                return os.fsencode(os.readlink(whole))
            if os.path.isdir(whole):
                return None
            with open(os.open(whole, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                return file.read()
        except OSError:
            return None

    def _put_back(self, paths: Collection[str]) -> None:
        known = contents.blobs(self.source, [self.tracked[path].blob for path in paths])
        for path in paths:
            data = self.laid.get(path)
            placement.write(
                self.root, path, self.tracked[path].mode, known[self.tracked[path].blob] if data is None else data
            )
        if paths and (gone := [path for path in self.looks if not self._look(path)]):
            self._put_back(gone)  # they existed through a link in place of their folder

    def _untracked(self) -> set[str]:
        return {path for path in _files(self.root) if path not in self.tracked}


def _files(top: str) -> Iterator[str]:
    """The files and links below a folder, without those of git."""
    folders = [""]
    while folders:
        below = folders.pop()
        try:
            found = list(os.scandir(os.path.join(top, below)))
        except OSError:
            continue  # a check closed it
        for one in found:
            if not one.is_dir(follow_symlinks=False):
                yield below + one.name
            elif one.name != ".git":
                folders.append(f"{below}{one.name}/")
