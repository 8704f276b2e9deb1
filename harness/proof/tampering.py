"""What checks do to the files of their place: one that changes a test is red, and what it leaves is not there for the next.

A file *decides* where a check names it, or where it is a test. Those are compared by digest with the commit after each check.
What setup or a check changed of them, and a check of others, is put back. Of what a check made, new tests go, and files that a
check of another claim names. `[checks] writes` names files for which none of this holds.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator

from harness.git import contents, placing, worktrees
from harness.git.contents import LINK
from harness.model import receipts
from harness.model.check_environment import CheckEnvironment
from harness.model.contract import Contract
from harness.model.receipts import WARNING, Receipt
from harness.proof import file_kinds

Look = tuple[int, ...]  # mode, inode, size, times of the content and of any change; () where there is no such file

CACHES = "/__pycache__/"
PACKAGES = {"node_modules", ".venv", "venv", "site-packages"}  # their tests are none of the project
LARGE = (
    1024 * 1024
)  # bytes; such a file is not read again if it was not touched: no program can set the time of a change
SHOWN = 3
MEANT = "[checks] writes in config.toml says where a check may write"


def watched(place: CheckEnvironment, known: Contract) -> CheckEnvironment:
    """`place` with a watch on its files while setup and checks of this contract run; they are as committed now."""
    return place.replace(watch=Watch(place, known)) if place.head else place


class Watch:
    """The files of one place as the next check should find them."""

    def __init__(self, place: CheckEnvironment, known: Contract) -> None:
        self.root, self.writes, self.source = place.root, place.writes, place.source or place.root
        self.below = os.path.relpath(place.directory, place.root).removeprefix(".")
        self.names = {one.id: file_kinds.Named(check.run for check in one.checks) for one in known.claims}
        self.tracked = contents.entries(self.source, place.head, ["."])
        looks = {path: self._look(path) for path in self.tracked if not self._is_meant(path)}
        self.looks = {path: look for path, look in looks.items() if look}
        self.deciding = {path for path in self.looks if self._decides(path)}
        filtered = [path for path, look in self.looks.items() if look[2] != self.tracked[path].size]
        self.kept = {
            path: self._data(path) for path in filtered
        }  # a filter of git made these; no other file is held in memory
        self.others, self.removed, self.notes = set[str](), dict[str, str](), list[str]()

    def begin(self) -> None:
        """Setup has run: of what decides nothing is changed by that; else its changes are meant."""
        changed = [path for path, look in self.looks.items() if self._done_to(path, look) in ("red", "other")]
        back = [path for path in changed if path in self.deciding]
        self.notes = [f"{WARNING}setup changed {_some(back)}, which is put back"] if back else []
        self.looks = {path: () for path in self.looks if path in back or path not in changed}
        self._put_back(back)
        self.looks = {path: self._look(path) for path in self.looks}
        self.others = self._untracked()

    def examined(self, receipt: Receipt) -> Receipt:
        """The receipt of the check that has just ended, with what it did to files; that is undone."""
        found = {path: how for path, look in self.looks.items() if (how := self._done_to(path, look))}
        red, again, other = ([path for path in found if found[path] == how] for how in ("red", "again", "other"))
        made, names = self._untracked() - self.others, self.names.get(receipt.claim, ())
        doomed = {path for path in made if self._goes(path, receipt.claim)}
        notes = [*receipt.notes, *self.notes, *(f"rewrites {path}{receipts.REWRITTEN}" for path in again)]
        notes += [f"{WARNING}the check changed {_some(some)}, which is put back" for some in (red, other) if some]
        missed = {} if receipt.green else {path: by for path, by in self.removed.items() if self._seen(path) in names}
        notes += [
            f"{WARNING}{path} was removed, since a check of another claim made it: {missed[path]}" for path in missed
        ]
        self._put_back([*red, *other])
        for path in doomed:
            worktrees.discard(self.root, path)
        self.looks |= {path: self._look(path) for path in found}
        self.others |= made - doomed
        self.removed |= {path: receipt.claim for path in doomed if CACHES not in path}
        reason = (
            f"it changed {_some(red)}: a check names that, or it is a test; {MEANT}" if red and receipt.green else ""
        )
        return receipt.replace(notes=notes, reason=reason)

    def _done_to(self, path: str, before: Look) -> str:
        """What was done to a tracked file: `red` to one that decides, `again` to a test that is as it was by now, `other`; "" for
        nothing, or other rights alone."""
        look, decides = self._look(path), path in self.deciding
        if look == before and (not decides or look[2] > LARGE):
            return ""
        if not look or not self._is_as_laid(path):
            return "red" if decides else "other"
        is_test = file_kinds.TEST_FILE.search(path) or file_kinds.CHECK_FILE.search(path)
        return "again" if decides and is_test and look != before else ""

    def _goes(self, path: str, claim: str) -> bool:
        """Whether a new file of a check of this claim is removed before the next check."""
        named = {one for one, names in self.names.items() if self._seen(path) in names}
        test = file_kinds.TEST_FILE.search(path) and claim not in named and PACKAGES.isdisjoint(path.split("/"))
        return not self._is_meant(path) and bool(test or named - {claim})

    def _decides(self, path: str) -> bool:
        return bool(file_kinds.TEST_FILE.search(path)) or any(
            self._seen(path) in names for names in self.names.values()
        )

    def _is_meant(self, path: str) -> bool:
        return any((self._seen(path) + "/").startswith(one.rstrip("/") + "/") for one in self.writes)

    def _seen(self, path: str) -> str:
        return file_kinds.as_seen(path, self.below)

    def _look(self, path: str) -> Look:
        try:
            found = os.lstat(os.path.join(self.root, path))
        except OSError:
            return ()
        return found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def _data(self, path: str) -> bytes | None:
        """What is in the file, or where the link leads; None where it is neither, or cannot be read."""
        whole = os.path.join(self.root, path)
        try:
            if self.tracked[path].mode == LINK:
                return os.fsencode(os.readlink(whole))
            with open(os.open(whole, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                return file.read()
        except OSError:
            return None

    def _is_as_laid(self, path: str) -> bool:
        data, blob = self._data(path), self.tracked[path].blob
        if path in self.kept or data is None:
            return data is not None and data == self.kept[path]
        return (hashlib.sha256 if len(blob) == 64 else hashlib.sha1)(
            b"blob %d\0" % len(data) + data
        ).hexdigest() == blob

    def _put_back(self, paths: Collection[str]) -> None:
        found = contents.blobs(self.source, [self.tracked[path].blob for path in paths if path not in self.kept])
        for path in paths:
            entry, kept = self.tracked[path], self.kept.get(path)
            placing.write(self.root, path, entry.mode, found.get(entry.blob, b"") if kept is None else kept)
        if paths and (gone := [path for path in self.looks if not self._look(path)]):
            self._put_back(gone)  # which were there by a link in the place of their folder

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


def _some(paths: Collection[str]) -> str:
    shown = sorted(paths)
    return ", ".join(shown[:SHOWN]) + (f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else "")
