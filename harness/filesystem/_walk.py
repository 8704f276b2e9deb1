"""Walks the files below a folder without following links (each folder is opened from its parent), and skips hidden
files and those of .gitignore."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

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


class WalkedFolder(NamedTuple):
    """A folder of a walk. `path`: with a slash, from the root; `start`: the length of the path of the first folder; `fd`: an open
    descriptor, and `files`: its files, both valid until the walk continues."""

    path: str
    start: int
    fd: int
    files: list[os.DirEntry[str]]


def walk(
    beneath: Root, names: Sequence[str], skipped: dict[str, str], *, hidden: bool = False
) -> Iterator[WalkedFolder]:
    """The folder at `names` below a root, and all folders below it that are not skipped. `hidden`: include names that begin with
    a dot. Adds unreadable folders to `skipped`, with the reason."""
    fd, names = beneath.listed(names)
    try:
        path, chain = "".join(f"{name}/" for name in names), above(beneath, names)
        if names and ignores(chain, path[:-1], True):  # a folder named by the caller is walked even if ignored
            chain = []
        yield from _walked(fd, path, len(path), chain, skipped, hidden)
    finally:
        os.close(fd)


def _walked(
    fd: int, path: str, start: int, chain: list[IgnoreRules], skipped: dict[str, str], hidden: bool
) -> Iterator[WalkedFolder]:
    with os.scandir(fd) as entries:
        listed = list(entries)
    if any(one.name == IGNORE for one in listed) and (rules := rules_in(fd, len(path))):
        chain = [*chain, rules]
    folders, regular = list[str](), list[os.DirEntry[str]]()
    for one in listed:
        is_folder = one.is_dir(follow_symlinks=False)
        if skips(chain, path + one.name, is_folder, hidden=hidden):
            continue
        if is_folder:
            folders.append(one.name)
        elif one.is_file(follow_symlinks=False):
            regular.append(one)
    yield WalkedFolder(path, start, fd, regular)
    for name in folders:
        try:
            below = os.open(name, LISTED, dir_fd=fd)
        except FileNotFoundError:
            continue
        except OSError as fault:
            skipped[path + name] = why(fault)
            continue
        try:
            if path.count("/") < DEEPEST:
                yield from _walked(below, f"{path}{name}/", start, chain, skipped, hidden)
            else:
                skipped[path + name] = "too deep"
        finally:
            os.close(below)


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
