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

from harness.base import patterns
from harness.base.record import Record
from harness.filesystem import _lines, _ripgrep
from harness.filesystem._faults import VerbRefusal
from harness.filesystem._root import Root
from harness.filesystem._walk import entry, order, walk
from harness.filesystem.protocol import Listing, Match, Matches

Hit = tuple[str, int, bytes]  # path, line, text
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
    hidden, folders = patterns.names_hidden(pattern), patterns.names_folders(pattern)
    found = list[tuple[float, str, os.stat_result]]()
    for path, start, fd, files in walk(beneath, names, {}, hidden=hidden):
        if folders and len(path) > start and wanted.match(path, start):
            at = os.fstat(fd)
            found.append((-at.st_mtime, path[:-1], at))
        for one in files:
            if wanted.match(path + one.name, start):
                try:
                    at = one.stat(follow_symlinks=False)
                except OSError:  # removed meanwhile
                    continue
                found.append((-at.st_mtime, path + one.name, at))
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
        matches=[Match(path=prefix + path, line=line, text=text) for path, line, text in found[:most]],
        files=len({one[0] for one in found}),
        more=max(0, len(found) - most) if counted else -1,
        skipped={prefix + path: reason for path, reason in sorted(skipped.items())},
    )


def _below(beneath: Root, names: Sequence[str], asked: GrepRequest) -> tuple[list[str], dict[str, str]]:
    """(the files to search below a folder, in order; unreadable folders with the reason)."""
    wanted, skipped = compiled_glob(asked.glob, hidden=asked.hidden) if asked.glob else None, dict[str, str]()
    hidden = asked.hidden or bool(asked.glob and patterns.names_hidden(asked.glob))
    paths = [
        folder + one.name
        for folder, start, _, files in walk(beneath, names, skipped, hidden=hidden)
        for one in files
        if wanted is None or wanted.match(folder + one.name, start)
    ]
    return sorted(paths, key=order), skipped


def _found(
    beneath: Root, paths: list[str], asked: GrepRequest, rg: str, skipped: dict[str, str]
) -> tuple[list[Hit], bool]:
    """(matching lines of these files, in order; whether they are complete). Adds unsearchable files to `skipped`."""
    argv = _ripgrep.argv(rg, asked.pattern, literal=asked.literal, ignore_case=asked.ignore_case)
    found, until = list[Hit](), time.monotonic() + _ripgrep.SECONDS
    for batch in _ripgrep.batches(paths):
        with _ripgrep.Stream([*argv, *batch], cwd=beneath.folder, until=until) as stream:
            for path, lines in _ripgrep.records(stream, most=COUNTED + 1, longest=max(1, asked.longest)):
                if len(lines) > COUNTED and _is_binary(beneath, path):
                    continue
                is_shown = len(found) < asked.most
                found += _proven(beneath, path, lines) if is_shown else ((path, one.line, one.text) for one in lines)
                if len(found) > COUNTED:
                    return found, False
            stream.check(asked.pattern)
            skipped |= stream.complaints()
    return found, True


def _proven(beneath: Root, path: str, lines: list[_ripgrep.FoundLine]) -> Iterator[Hit]:
    """The lines that a file beneath the root has at their offsets: the path may have led ripgrep elsewhere."""
    try:
        fd = beneath.opened(path.split("/"))
    except OSError:  # removed meanwhile
        return
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            yield from (
                (path, one.line, one.text) for one in lines if os.pread(fd, len(one.text), one.offset) == one.text
            )
    finally:
        os.close(fd)


def _is_binary(beneath: Root, path: str) -> bool:
    try:
        fd = beneath.opened(path.split("/"))
    except OSError:  # removed meanwhile
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
