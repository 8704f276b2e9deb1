"""Searches the files below a folder: by path (glob), and by line (grep), with ripgrep where it is there, else with our own code.

Both find the same. ripgrep opens paths by their names, so what it says of a file is only believed where the same bytes are found
by a descriptor that is known to be beneath the root. Its own answer to hidden files and to folders above the search is checked
against ours. The other way is a process too, `plain_grep`, so that a slow pattern ends at its time.
"""

from __future__ import annotations

import errno
import os
import stat

from harness.base import lean
from harness.base.record import Record
from harness.filesystem import lines, patterns, ripgrep
from harness.filesystem.faults import Refused
from harness.filesystem.protocol import Listing, Match, Matches
from harness.filesystem.walking import NEVER, Walk, above, entry, ignores, order, rules_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Sequence

    from harness.filesystem.beneath import Beneath
    from harness.filesystem.walking import Rules

    Hit = tuple[str, int, int, bytes]  # path, line, offset, text

COUNTED = 20_000  # lines that are counted; where there are more, they are found in order, and only as many as are shown


class Asked(Record):
    """What a grep is asked, as the interface has it."""

    pattern: str
    glob: str
    ignore_case: bool
    literal: bool
    most: int
    longest: int
    hidden: bool


def glob(beneath: Beneath, names: Sequence[str], mount: str, pattern: str, most: int) -> Listing:
    """The files below a folder whose path from there matches, newest first, then by path."""
    wanted = compiled_glob(pattern)
    walk = Walk(beneath, names, hidden=patterns.names_hidden(pattern))
    start, named = len(walk.levels[0].path), patterns.of_name(pattern)
    found = list[tuple[float, str, os.stat_result]]()
    for folder, entries in walk.files():
        for one in entries:
            if named.match(one.name) if named else wanted.match(folder + one.name, start):
                try:
                    at = one.stat(follow_symlinks=False)
                except OSError:  # gone meanwhile
                    continue
                found.append((-at.st_mtime, folder + one.name, at))
    found.sort(key=lambda row: (row[0], order(row[1])))
    prefix = f"{mount}/" if mount else ""
    return Listing(entries=[entry(prefix + path, at) for _, path, at in found[:most]], more=max(0, len(found) - most))


def compiled_glob(pattern: str, hidden: bool = False) -> re.Pattern[str]:
    """The expression of a glob. Raises Refused."""
    try:
        return patterns.glob(pattern, hidden=hidden)
    except patterns.BadPattern as fault:
        raise Refused("bad_pattern", "", f"The pattern {pattern} is not valid: {fault}.") from None


def grep(beneath: Beneath, names: Sequence[str], mount: str, asked: Asked, rg: str) -> Matches:
    """The lines that match, in a file or below a folder."""
    if "\0" in asked.pattern:
        raise Refused("bad_pattern", "", "The pattern has a NUL in it.")
    asked = asked.replace(longest=max(1, asked.longest), most=max(0, asked.most))
    fd = beneath.opened(names)
    try:
        kind = os.fstat(fd).st_mode
        if stat.S_ISDIR(kind):
            return _Folder(beneath, names, mount, asked, rg).matches(fd)
        if stat.S_ISREG(kind):
            return _in_file(fd, "/".join([mount, *names] if mount else names), asked, rg)
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
    finally:
        os.close(fd)


def _in_file(fd: int, path: str, asked: Asked, rg: str) -> Matches:
    """The lines of an open file."""
    if _is_binary(fd):
        return Matches(skipped={path: "binary"})
    argv = [*_argv(rg, asked), "--text", "-"] if rg else _plain(None, asked)
    found, count = list[Match](), 0
    with ripgrep.Stream(argv, cwd="/", stdin=fd) as stream:
        for _, line, _, text in ripgrep.records(stream, set()):
            count += 1
            if count <= asked.most:
                found.append(Match(path=path, line=line, text=text[: asked.longest]))
        stream.check(asked.pattern)
    return Matches(matches=found, files=int(count > 0), more=max(0, count - asked.most))


def _is_binary(fd: int) -> bool:
    """Whether there is a NUL in an open file."""
    at = 0
    while block := os.pread(fd, lines.BLOCK, at):
        if b"\0" in block:
            return True
        at += len(block)
    return False


def _argv(rg: str, asked: Asked) -> list[str]:
    """The command line of ripgrep, up to what it searches."""
    flags = ["--fixed-strings"] if asked.literal else []
    flags += ["--ignore-case"] if asked.ignore_case else []
    flags += [word for name in NEVER for word in ("--glob", f"!{name}")] if asked.hidden else []
    return [rg, *ripgrep.FLAGS, *flags, *(["--hidden"] if asked.hidden else []), f"--regexp={asked.pattern}"]


def _plain(names: Sequence[str] | None, asked: Asked) -> list[str]:
    """The command line of what stands in for it; `names` None: it searches its standard input."""
    question = {name: getattr(asked, name) for name in ("pattern", "literal", "ignore_case", "hidden")}
    return ripgrep.plain(lean.dumps({**question, "names": names}, ascii_only=True))


class _Folder:
    """One grep below a folder."""

    def __init__(self, beneath: Beneath, names: Sequence[str], mount: str, asked: Asked, rg: str) -> None:
        self.beneath, self.mount, self.rg = beneath, mount, rg
        self.wanted = compiled_glob(asked.glob, asked.hidden) if asked.glob else None
        self.asked = asked.replace(hidden=asked.hidden or bool(asked.glob and patterns.names_hidden(asked.glob)))
        root, self.names = beneath.listed(names)
        os.close(root)
        self.start = "".join(f"{name}/" for name in self.names)
        self.chains: dict[str, list[Rules]] = {self.start: above(beneath, self.names)}
        self.ruled = bool(self.chains[self.start])
        self.looked: dict[str, bool] = {}
        self.looks_inside = (
            False  # whether a file is binary: where the search is cut short, ripgrep may not come to say so
        )

    def matches(self, fd: int) -> Matches:
        """The lines that match: all are counted, or where they are too many, only those that are shown."""
        found, binary, skipped = self.found(fd, [], COUNTED)
        counted = len(found) <= COUNTED
        if not counted:
            self.looks_inside = True
            self.looked.clear()
            found, binary, skipped = self.found(fd, ["--sort", "path"], self.asked.most + 1)
        found = [one for one in found if one[0] not in binary]
        found.sort(key=lambda one: (order(one[0]), one[1]))
        files = len({one[0] for one in found})
        kept = found[: self.asked.most]
        prefix = f"{self.mount}/" if self.mount else ""
        return Matches(
            matches=[
                Match(path=prefix + path, line=line, text=text[: self.asked.longest])
                for path, line, text in self.proven(kept)
            ],
            files=files,
            more=len(found) - len(kept) if counted else -1,
            skipped={prefix + path: reason for path, reason in sorted(skipped.items())},
        )

    def found(self, fd: int, how: list[str], most: int) -> tuple[list[Hit], set[str], dict[str, str]]:
        """(at most one more than `most` lines, files that turned out binary, files that could not be searched)."""
        argv = [*_argv(self.rg, self.asked), *how, *self.types(), "./"] if self.rg else _plain(self.names, self.asked)
        hits, binary = list[tuple[str, int, int, bytes]](), set[str]()
        with ripgrep.Stream(argv, cwd=self.folder(fd)) as stream:
            for path, line, offset, text in ripgrep.records(stream, binary):
                path = self.start + path if self.rg else path
                if self.keeps(path):
                    hits.append((path, line, offset, text))
                    if len(hits) > most:
                        break
            else:
                stream.check(self.asked.pattern)
            skipped = {(self.start + path if self.rg else path): why for path, why in stream.complaints().items()}
        return hits, binary, skipped

    def folder(self, fd: int) -> str:
        """Where the search begins: for ripgrep the folder, by its descriptor; else the root, from which paths are walked."""
        by_number = f"/proc/self/fd/{fd}"
        if not self.rg:
            return self.beneath.folder
        return by_number if os.path.exists(by_number) else os.path.join(self.beneath.folder, *self.names)

    def types(self) -> list[str]:
        """What keeps ripgrep from files whose name cannot match the glob; which do is for `keeps` to say."""
        names = [one.rpartition("/")[2] for one in patterns.braces(self.asked.glob)] if self.asked.glob else []
        if not names or not all(names) or "**" in names:
            return []
        return [*(f"--type-add=wanted:{name}" for name in names), "--type=wanted"]

    def keeps(self, path: str) -> bool:
        """Whether a file counts: by its name, the glob, and the rules of the folders above."""
        if path not in self.looked:
            names = path[len(self.start) :].split("/")
            shown = self.asked.hidden or not any(name[:1] == "." for name in names)
            right = self.wanted is None or self.wanted.match(path, len(self.start)) is not None
            kept = shown and right and not (self.ruled and self.ignored(names))
            self.looked[path] = kept and not (self.looks_inside and self.is_binary(path))
        return self.looked[path]

    def is_binary(self, path: str) -> bool:
        """Whether there is a NUL in a file."""
        fd = self.opened(path)
        if fd < 0:
            return False
        try:
            return _is_binary(fd)
        finally:
            os.close(fd)

    def ignored(self, names: list[str]) -> bool:
        """Whether a file, or a folder on the way to it, is ignored; ripgrep does not know of the folders above the search."""
        path = self.start
        for name in names[:-1]:
            if ignores(self.chains[path], name, path + name, True):
                return True
            below = f"{path}{name}/"
            if below not in self.chains:
                self.chains[below] = self.chains[path] + self.rules(below)
            path = below
        return ignores(self.chains[path], names[-1], path + names[-1], False)

    def rules(self, path: str) -> list[Rules]:
        """The rules of one more folder."""
        try:
            fd, _ = self.beneath.listed(path.split("/")[:-1])
        except OSError:  # gone meanwhile, and its files with it
            return []
        try:
            found = rules_in(fd, len(path))
        finally:
            os.close(fd)
        return [found] if found else []

    def proven(self, hits: list[Hit]) -> Iterator[tuple[str, int, bytes]]:
        """Of these lines those that a file beneath the root has where ripgrep says: a path may have led it elsewhere."""
        last, fd = "", -1
        try:
            for path, line, offset, text in hits:
                if path != last:
                    if fd >= 0:
                        os.close(fd)
                    last, fd = path, self.opened(path)
                if fd >= 0 and os.pread(fd, len(text), offset) == text:
                    yield path, line, text
        finally:
            if fd >= 0:
                os.close(fd)

    def opened(self, path: str) -> int:
        """A descriptor of a regular file; -1 where there is none any more."""
        try:
            fd = self.beneath.opened(path.split("/"))
        except OSError:
            return -1
        if stat.S_ISREG(os.fstat(fd).st_mode):
            return fd
        os.close(fd)
        return -1
