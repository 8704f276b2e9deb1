"""The common part of Composite and Layered: paths, merged searches, and copies from one filesystem to another."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator

from harness.base import patterns
from harness.filesystem import _search
from harness.filesystem._faults import VerbRefusal, changed_meanwhile, os_error, unwrap
from harness.filesystem._root import split
from harness.filesystem._walk import NEVER, order
from harness.filesystem.protocol import FileEntry, FileFault, Filesystem, Listing, Matches
from harness.filesystem.transfer import read_whole

Names = tuple[str, ...]

ALL = 1_000_000_000  # entries
EVERYTHING = "{**,**/}"
EVERYTHING_HIDDEN = "{**,**/,**/.*,**/.*/,**/.*/**,**/.*/**/}"


def join_names(names: Names) -> str:
    """The path of names from the root."""
    return "/".join(names) or "."


def split_names(path: str) -> Names:
    """The names of a path that a filesystem returned."""
    return tuple(name for name in path.split("/") if name not in ("", "."))


def resolve_dots(path: str, above: Callable[[Names], Names]) -> Names:
    """The names from the root without `..`. `above`: returns the folder that `..` leads to from these names, and raises if they
    are not a folder. Raises VerbRefusal and OSError."""
    names, found = split(path), Names()
    if names is None:
        raise VerbRefusal("invalid", path, "The path is empty or contains a NUL. The root is `.`.")
    for name in names:
        if name != "..":
            found = (*found, name)
        elif not found:
            raise os_error(errno.EXDEV)
        else:
            found = above(found)
    return found


def entry_at(layer: Filesystem, path: str) -> FileEntry | None:
    """The entry of a path; None if there is none. Raises VerbRefusal for other faults."""
    found = layer.stat(path)
    return None if isinstance(found, FileFault) and found.kind in ("missing", "not_folder") else unwrap(found)


def skips(names: Names, *, hidden: bool) -> bool:
    """Whether a search from the root skips a path with these names."""
    return any(name in NEVER or (name[0] == "." and not hidden) for name in names)


def newest_first(entries: Iterable[FileEntry], most: int) -> Listing:
    """The entries that globs found, newest first."""
    found = sorted(entries, key=lambda one: (-one.changed, order(one.path)))
    return Listing(entries=found[: max(0, most)], more=max(0, len(found) - most))


def merge_matches(parts: Iterable[Matches], most: int) -> Matches:
    """The matches of several greps as one result."""
    parts = list(parts)
    rows = sorted((row for one in parts for row in one.matches), key=lambda row: (order(row.path), row.line))
    kept = rows[: max(0, most)]
    skipped = {path: why for one in parts for path, why in one.skipped.items()}
    more = -1 if any(one.more for one in parts) else len(rows) - len(kept)
    return Matches(matches=kept, files=len({row.path for row in rows}), more=more, skipped=skipped)


def widen_glob(pattern: str) -> str:
    """A glob for a mount that finds everything the pattern could find there; the pattern itself if it has no folder in it."""
    if "/" not in pattern:
        return pattern
    return EVERYTHING_HIDDEN if patterns.names_hidden(pattern) else EVERYTHING


def accepts(pattern: str, names: Names, *, hidden: bool = False, folders: bool = False) -> Callable[[FileEntry], bool]:
    """Whether a glob that begins at a folder finds an entry. Raises VerbRefusal."""
    wanted, start = _search.compiled_glob(pattern, hidden=hidden, folders=folders), len("/".join(names)) + bool(names)
    return lambda one: bool(wanted.match(one.path + "/" * (one.kind == "folder"), start))


def below(layer: Filesystem, path: str) -> Iterator[FileEntry]:
    """The entry at a path and all entries below it, each folder before its content."""
    found = unwrap(layer.stat(path))
    yield found
    todo = [path] if found.kind == "folder" else []
    while todo:
        for one in unwrap(layer.ls(todo.pop(), ALL)).entries:
            yield one
            todo += [one.path] if one.kind == "folder" else []


def copy(source: Filesystem, path: str, target: Filesystem, into: str) -> int:
    """Copy a file or folder to a free path of another filesystem and compare the two; returns the size of the file, 0 of a
    folder. A copy that fails is removed. Modes are not copied. Raises VerbRefusal, also for a link."""
    found = list(below(source, path))
    begin = len(found[0].path)
    pairs = [(one, into + one.path[begin:]) for one in found]
    for one, _ in pairs:
        if one.kind == "link":
            raise VerbRefusal("invalid", path, f"{one.path} is a link, which cannot leave its filesystem.")
    try:
        for one, place in pairs:
            if one.kind == "folder":
                unwrap(target.mkdir(place))
            else:
                unwrap(target.write(place, unwrap(read_whole(source, one.path)).data, create=True))
        for one, place in pairs:
            if one.kind != "folder" and _digest(source, one.path) != _digest(target, place):
                raise changed_meanwhile(one.path)
    except VerbRefusal as refused:
        if refused.fault.kind != "exists":
            target.delete(into)
        raise
    return found[0].size


def _digest(layer: Filesystem, path: str) -> str:
    return unwrap(read_whole(layer, path)).digest
