"""Walks the files below a folder without following links (each folder is opened from its parent), and skips hidden
files and those of .gitignore."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress

from harness.filesystem._root import LISTED, READ, Root
from harness.filesystem.protocol import FileEntry

IGNORE = ".gitignore"
NEVER = (".git", ".harness")  # never searched, even with `hidden`
MAX_RULE_BYTES = 1024 * 1024  # bytes of a .gitignore
KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
DEEPEST = 256  # folders; a deeper tree is circular by mounts


class IgnoreRules:
    """The rules of one .gitignore. `start`: the length of its folder's path with a slash; rules apply to the rest of a
    path."""

    def __init__(self, data: bytes, start: int) -> None:
        from pathspec import GitIgnoreSpec  # of the extra `agent`, not needed at start
        from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # as above

        kept = list[GitIgnoreSpecPattern]()
        text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
        for line in text.split("\n"):
            with suppress(ValueError, re.error):  # git also ignores an invalid pattern
                kept.append(GitIgnoreSpecPattern(line.removesuffix("\r")))
        self.start, self.spec = start, GitIgnoreSpec(kept, backend="simple")


def ignores(chain: Sequence[IgnoreRules], path: str, is_folder: bool) -> bool:
    """Whether the nearest .gitignore with a matching rule ignores the path."""
    for rules in reversed(chain):
        said = rules.spec.check_file(path[rules.start :] + "/" * is_folder).include
        if said is not None:
            return said
    return False


def skips(chain: Sequence[IgnoreRules], path: str, is_folder: bool, *, hidden: bool) -> bool:
    """Whether a search skips this file or folder. `hidden`: it looks at names that begin with a dot."""
    name = path.rpartition("/")[2]
    return (name[0] == "." and (not hidden or name in NEVER)) or (bool(chain) and ignores(chain, path, is_folder))


def rules_in(fd: int, start: int) -> IgnoreRules | None:
    """The rules of an open folder; None without a readable .gitignore."""
    try:
        file = os.open(IGNORE, READ, dir_fd=fd)
    except OSError:  # absent, a link, or unreadable: git ignores such a file too
        return None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        return IgnoreRules(os.pread(file, MAX_RULE_BYTES, 0), start)
    finally:
        os.close(file)


def above(beneath: Root, names: Sequence[str]) -> list[IgnoreRules]:
    """The rules of the folders above this one, from the root on."""
    chain, start = list[IgnoreRules](), 0
    for count in range(len(names)):
        fd, _ = beneath.listed(names[:count])
        try:
            if found := rules_in(fd, start):
                chain.append(found)
        finally:
            os.close(fd)
        start += len(names[count]) + 1
    return chain


class Level:
    """A folder of a walk: its path with a slash, an open descriptor, the rules that apply, and the folders still to visit."""

    def __init__(self, path: str, fd: int, chain: list[IgnoreRules]) -> None:
        self.path, self.fd, self.chain = path, fd, chain
        self.folders = list[str]()


class Walk:
    """One walk of the folder at `names` below a root. `hidden`: include names that begin with a dot; `skipped`:
    unreadable folders with the reason. Paths are relative to the root."""

    def __init__(self, beneath: Root, names: Sequence[str], *, hidden: bool = False) -> None:
        self.hidden = hidden
        self.skipped = dict[str, str]()
        top, names = beneath.listed(names)
        path, chain = "".join(f"{name}/" for name in names), above(beneath, names)
        if names and ignores(chain, path[:-1], True):  # a folder named by the caller is walked even if ignored
            chain = []
        self.levels = [Level(path, top, chain)]

    def files(self) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
        """(path of a folder with a slash, its files) for every folder; the entries are valid until the walk continues."""
        try:
            yield self.levels[0].path, self._listed(self.levels[0])
            while self.levels:
                here = self.levels[-1]
                if not here.folders:
                    os.close(self.levels.pop().fd)
                elif below := self._entered(here, here.folders.pop()):
                    self.levels.append(below)
                    yield below.path, self._listed(below)
        finally:
            for level in self.levels:
                os.close(level.fd)
            self.levels = []

    def _entered(self, above: Level, name: str) -> Level | None:
        """The subfolder; None if it is gone, no longer a folder, unreadable, or too deep."""
        path = above.path + name
        if len(self.levels) > DEEPEST:
            self.skipped[path] = "too deep"
            return None
        try:
            return Level(path + "/", os.open(name, LISTED, dir_fd=above.fd), above.chain)
        except FileNotFoundError:
            return None
        except OSError as fault:
            self.skipped[path] = why(fault)
            return None

    def _listed(self, level: Level) -> list[os.DirEntry[str]]:
        """The files of a folder that are not skipped; its subfolders are queued."""
        found = list[os.DirEntry[str]]()
        with os.scandir(level.fd) as entries:
            listed = list(entries)
        if any(one.name == IGNORE for one in listed) and (rules := rules_in(level.fd, len(level.path))):
            level.chain = [*level.chain, rules]
        path, chain = level.path, level.chain
        for entry in listed:
            name = entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if skips(chain, path + name, is_folder, hidden=self.hidden):
                continue
            if is_folder:
                level.folders.append(name)
            elif entry.is_file(follow_symlinks=False):
                found.append(entry)
        return found


def why(fault: OSError) -> str:
    """The reason in a few words, the same for all callers."""
    return (fault.strerror or str(fault)).lower()


def entry(path: str, found: os.stat_result) -> FileEntry:
    """The listing entry of a file or folder."""
    kind = stat.S_IFMT(found.st_mode)
    name = KINDS.get(kind, "other")
    size = 0 if kind == stat.S_IFDIR else found.st_size
    return FileEntry.whole({"path": path, "kind": name, "size": size, "changed": found.st_mtime})


def order(path: str) -> list[str]:
    """The sort key of a path: name by name, so that a folder's files stay together."""
    return path.split("/")
