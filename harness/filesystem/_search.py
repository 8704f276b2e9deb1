"""Searches the files below a folder: by path (glob), and by line (grep).

One walk selects the files; ripgrep, or Python if ripgrep is not installed, reads them. It opens files by path, so a
line is returned only if a descriptor known to be beneath the root has the same bytes.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from itertools import groupby

from harness.base import patterns
from harness.base.record import Record
from harness.filesystem import _lines, _ripgrep
from harness.filesystem._faults import VerbRefusal
from harness.filesystem._root import Root
from harness.filesystem._walk import Walk, entry, order
from harness.filesystem.protocol import Listing, Match, Matches

Hit = tuple[str, int, int, bytes]  # path, line, offset, text
COUNTED = 20_000  # lines; a search with more stops here


class GrepRequest(Record):
    """The arguments of a grep, see `Filesystem.grep`."""

    pattern: str
    glob: str
    ignore_case: bool
    literal: bool
    most: int
    longest: int
    hidden: bool


def glob(beneath: Root, names: Sequence[str], mount: str, pattern: str, most: int) -> Listing:
    """The files and folders below a folder whose relative path matches, newest first, then by path."""
    wanted = compiled_glob(pattern, folders=True)
    walk = Walk(beneath, names, hidden=patterns.names_hidden(pattern))
    start, folders = len(walk.levels[0].path), patterns.names_folders(pattern)
    found = list[tuple[float, str, os.stat_result]]()
    for folder, entries in walk.files():
        if folders and len(folder) > start and wanted.match(folder, start):
            at = os.fstat(walk.levels[-1].fd)
            found.append((-at.st_mtime, folder[:-1], at))
        for one in entries:
            if wanted.match(folder + one.name, start):
                try:
                    at = one.stat(follow_symlinks=False)
                except OSError:  # removed meanwhile
                    continue
                found.append((-at.st_mtime, folder + one.name, at))
    found.sort(key=lambda row: (row[0], order(row[1])))
    prefix = f"{mount}/" if mount else ""
    return Listing(entries=[entry(prefix + path, at) for _, path, at in found[:most]], more=max(0, len(found) - most))


def compiled_glob(pattern: str, *, hidden: bool = False, folders: bool = False) -> re.Pattern[str]:
    """The regular expression of a glob. Raises VerbRefusal."""
    try:
        return patterns.glob(pattern, hidden=hidden, folders=folders)
    except patterns.BadPattern as fault:
        raise VerbRefusal("bad_pattern", "", f"The pattern {pattern} is invalid: {fault}.") from None


def grep(beneath: Root, names: Sequence[str], mount: str, asked: GrepRequest, rg: str) -> Matches:
    """The matching lines, in a file or below a folder."""
    if "\0" in asked.pattern:
        raise VerbRefusal("bad_pattern", "", "The pattern contains a NUL.")
    fd, skipped = beneath.opened(names), dict[str, str]()
    try:
        kind = os.fstat(fd).st_mode
        if stat.S_ISREG(kind):
            paths = ["/".join(names)]
            skipped |= dict.fromkeys(paths, "binary") if _has_nul(fd) else {}
        elif stat.S_ISDIR(kind):
            paths, skipped = _below(beneath, names, asked)
        else:
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
    finally:
        os.close(fd)
    found, counted = _found(beneath, paths, asked, rg, skipped)
    most, prefix = max(0, asked.most), f"{mount}/" if mount else ""
    return Matches(
        matches=[
            Match(path=prefix + path, line=line, text=text) for path, line, text in _proven(beneath, found[:most])
        ],
        files=len({one[0] for one in found}),
        more=max(0, len(found) - most) if counted else -1,
        skipped={prefix + path: reason for path, reason in sorted(skipped.items())},
    )


def _below(beneath: Root, names: Sequence[str], asked: GrepRequest) -> tuple[list[str], dict[str, str]]:
    """(the files to search below a folder, in order; unreadable folders with the reason)."""
    wanted = compiled_glob(asked.glob, hidden=asked.hidden) if asked.glob else None
    walk = Walk(beneath, names, hidden=asked.hidden or bool(asked.glob and patterns.names_hidden(asked.glob)))
    start = len(walk.levels[0].path)
    paths = [folder + one.name for folder, entries in walk.files() for one in entries]
    kept = [path for path in paths if wanted is None or wanted.match(path, start)]
    return sorted(kept, key=order), walk.skipped


def _found(
    beneath: Root, paths: list[str], asked: GrepRequest, rg: str, skipped: dict[str, str]
) -> tuple[list[Hit], bool]:
    """(matching lines of these files, in order; whether they are complete). Adds unsearchable files to `skipped`."""
    argv = _ripgrep.argv(rg, asked.pattern, literal=asked.literal, ignore_case=asked.ignore_case)
    found, binary, until = list[Hit](), set[str](), time.monotonic() + _ripgrep.SECONDS
    for batch in _ripgrep.batches(paths):
        with _ripgrep.Stream([*argv, *batch], cwd=beneath.folder, until=until) as stream:
            for path, line, offset, text in _ripgrep.records(stream, binary):
                if path in binary:
                    continue
                found.append((path, line, offset, text[: max(1, asked.longest)]))
                if len(found) > COUNTED:
                    if not _is_binary(beneath, path):
                        return _text(found, binary), False
                    binary.add(path)
                    found = _text(found, binary)
            stream.check(asked.pattern)
            skipped |= stream.complaints()
    return _text(found, binary), True


def _text(found: list[Hit], binary: set[str]) -> list[Hit]:
    """The hits in text files."""
    return [one for one in found if one[0] not in binary]


def _proven(beneath: Root, hits: list[Hit]) -> Iterator[tuple[str, int, bytes]]:
    """The hits that a file beneath the root has at that offset: the path may have led ripgrep elsewhere."""
    for path, those in groupby(hits, key=lambda one: one[0]):
        fd = _opened(beneath, path)
        if fd < 0:
            continue
        try:
            for _, line, offset, text in those:
                if os.pread(fd, len(text), offset) == text:
                    yield path, line, text
        finally:
            os.close(fd)


def _opened(beneath: Root, path: str) -> int:
    """A descriptor of a regular file; -1 if it is gone."""
    try:
        fd = beneath.opened(path.split("/"))
    except OSError:
        return -1
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    return -1


def _is_binary(beneath: Root, path: str) -> bool:
    """Whether a file contains a NUL."""
    fd = _opened(beneath, path)
    if fd < 0:
        return False
    try:
        return _has_nul(fd)
    finally:
        os.close(fd)


def _has_nul(fd: int) -> bool:
    at = 0
    while block := os.pread(fd, _lines.BLOCK, at):
        if b"\0" in block:
            return True
        at += len(block)
    return False
