"""A writable filesystem over a read-only template: writes and deletions above hide files below.

The upper filesystem records deletions in one file, one path on each line. Where it has no file, that of the template shows; an
empty file hides it. Modes of the template are not copied, and each layer's .gitignore applies to its own files.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar
from urllib.parse import quote, unquote

from harness.filesystem import _edit, _search, _union
from harness.filesystem._faults import catch_faults, changed_meanwhile, os_error, read_only, root_stays, unwrap, verb
from harness.filesystem._protection import ProtectedNames
from harness.filesystem._root import MAX_LINKS
from harness.filesystem._union import ALL, Names, entry_at, join_names, split_names
from harness.filesystem.protocol import (
    MAX_READ_BYTES,
    FileContent,
    FileEntry,
    FileFault,
    Filesystem,
    Listing,
    Matches,
    Replacement,
    WriteResult,
)
from harness.filesystem.transfer import read_whole

T = TypeVar("T", Listing, Matches)
DELETED = ".deleted"  # in the upper filesystem: the paths of the template that are hidden with all below them
TRIES = 100


class _Found(NamedTuple):
    """The entries of both layers at a path, links of the template followed; `lower` is None if it is absent or deleted."""

    names: Names
    upper: FileEntry | None
    lower: FileEntry | None

    @property
    def path(self) -> str:
        return join_names(self.names)

    @property
    def entry(self) -> FileEntry | None:
        return self.upper or self.lower

    @property
    def is_folder(self) -> bool:
        return self.entry is not None and self.entry.kind == "folder"

    @property
    def shows_lower(self) -> bool:
        return self.lower is not None and (not self.upper or self.upper.kind == self.lower.kind == "folder")


class Layered:
    """The files of `upper`, and those of `lower` that it does not hide. `lower` is never written."""

    def __init__(self, upper: Filesystem, lower: Filesystem) -> None:
        self.upper, self.lower, self.guarded = upper, lower, ProtectedNames()

    def _gone(self) -> frozenset[Names]:
        """The deleted paths of the template."""
        found = self.upper.read(DELETED)
        if isinstance(found, FileFault) and found.kind == "missing":
            return frozenset()
        rows = unwrap(found).data.decode().split("\n")
        return frozenset(split_names(unquote(row, errors="surrogateescape")) for row in rows if row)

    def _hide(self, names: Names) -> None:
        """Record a deletion."""
        row = quote("/".join(names), errors="surrogateescape").encode() + b"\n"
        for _ in range(TRIES):
            found = read_whole(self.upper, DELETED)
            old = FileContent(data=b"") if isinstance(found, FileFault) and found.kind == "missing" else unwrap(found)
            done = self.upper.write(DELETED, old.data + row, create=not old.digest, expect=old.digest)
            if not isinstance(done, FileFault) or done.kind not in ("exists", "changed"):
                unwrap(done)
                return
        raise changed_meanwhile(join_names(names))

    def _at(self, names: Names, *, follow: bool = True) -> _Found:
        """The entries at a path. A link of the template is followed unless the upper filesystem has an entry there. `follow`:
        also the last link."""
        gone = self._gone()
        for _ in range(MAX_LINKS):
            own = names[:1] == (DELETED,)
            hidden = own or _hidden(names, gone)
            upper = None if own else entry_at(self.upper, join_names(names))
            lower = None if hidden else entry_at(self.lower, join_names(names))
            real = names if upper else _followed(self.upper, names, follow)
            if real == names and not upper and not hidden:
                real = _followed(self.lower, names, follow)
            if real == names:
                return _Found(names, upper, lower)
            names = real
        raise os_error(errno.ELOOP)

    def _names(self, path: str) -> Names:
        return _union.resolve_dots(path, self._above)

    def _above(self, names: Names) -> Names:
        """The folder that `..` leads to."""
        found = self._there(names)
        if not found.is_folder:
            raise os_error(errno.ENOTDIR)
        return split_names(self._resolved(found))[:-1]

    def _resolved(self, found: _Found) -> str:
        return unwrap(self.upper.resolve(found.path)) if found.upper else found.path

    def _there(self, names: Names, *, follow: bool = True) -> _Found:
        """As `_at`; raises OSError if there is no entry."""
        found = self._at(names, follow=follow)
        if not found.entry:
            self._check_above(names, make=False)
            raise os_error(errno.ENOENT)
        return found

    def _check_above(self, names: Names, *, make: bool) -> None:
        """Raise OSError if a file is in the place of a folder above; without `make`, if that folder is missing."""
        for count in range(1, len(names)):
            found = self._at(names[:count])
            if not found.entry:
                if not make:
                    raise os_error(errno.ENOENT)
                return
            if not found.is_folder:
                raise os_error(errno.ENOTDIR)

    def _changeable(self, path: str, *, follow: bool = True, make: bool = False) -> _Found:
        """The entries at a path that may be changed, or with `make` created with its folders. Raises VerbRefusal and OSError."""
        names = self._names(path)
        if not names:
            raise root_stays(path)
        found = self._at(names, follow=follow)
        if not found.entry:
            self._check_above(found.names, make=make)
        if names[:1] == (DELETED,):
            raise read_only(path, path)
        if not found.upper and (self.guarded.folder(found.names) or (found.lower and self.guarded.file(names[-1]))):
            raise read_only(path, path)
        return found

    @verb
    def ls(self, path: str = ".", most: int = 1000) -> Listing:
        """The entries of one folder, of both layers."""
        found, gone = self._there(self._names(path)), self._gone()
        if not found.is_folder:
            raise os_error(errno.ENOTDIR)
        entries = dict[str, FileEntry]()
        if found.shows_lower:
            listed = unwrap(self.lower.ls(found.path, ALL)).entries
            entries = {name: one for one in listed if (*found.names, name := _last(one)) not in gone}
        if found.upper:
            entries |= {_last(one): one for one in unwrap(self.upper.ls(found.path, ALL)).entries}
        if not found.names:
            entries.pop(DELETED, None)
        kept = sorted(entries)[:most]
        return Listing(entries=[entries[name] for name in kept], more=len(entries) - len(kept))

    @verb
    def read(self, path: str, offset: int = 0, limit: int = 0, *, most: int = MAX_READ_BYTES) -> FileContent:
        names = self._names(path)
        if names[:1] != (DELETED,):
            above = self.upper.read(join_names(names), offset, limit, most=most)
            if not isinstance(above, FileFault):
                return above
        found = self._there(names)
        if found.is_folder:
            raise os_error(errno.EISDIR)
        return unwrap((self.upper if found.upper else self.lower).read(found.path, offset, limit, most=most))

    @verb
    def write(self, path: str, data: bytes, *, create: bool = False, expect: str = "") -> WriteResult | FileFault:
        """Replace or create a file with its folders, in the upper filesystem."""
        found = self._changeable(path, follow=not create, make=not expect)
        if found.is_folder:
            raise os_error(errno.EEXIST if create else errno.EISDIR)
        if found.lower and not found.upper and not (create and expect):
            if create:
                raise os_error(errno.EEXIST)
            if expect and unwrap(read_whole(self.lower, found.path)).digest != expect:
                raise changed_meanwhile(path)
            create, expect = bool(expect), ""
            done = self.upper.write(found.path, data, create=create)
            if create and isinstance(done, FileFault) and done.kind == "exists":
                raise changed_meanwhile(path)
        else:
            done = self.upper.write(found.path, data, create=create, expect=expect)
        return unwrap(done).replace(path=path)

    @verb
    def edit(self, path: str, changes: Sequence[Replacement], expect: str = "") -> WriteResult:
        """Replace bytes in a file, all changes or none; a file of the template becomes one of the upper filesystem."""
        found = self._changeable(path)
        if found.lower and not found.upper and not found.is_folder:
            content = unwrap(read_whole(self.lower, found.path))
            if expect and content.digest != expect:
                raise changed_meanwhile(path)
            made = unwrap(_edit.apply(content.data, changes, path))
            done = self.upper.write(found.path, made.data, create=True)
            if not isinstance(done, FileFault) or done.kind != "exists":
                return unwrap(done).replace(path=path, count=made.count)
        elif not found.upper:
            self._there(found.names)
            raise os_error(errno.EISDIR)
        return unwrap(self.upper.edit(found.path, changes, expect)).replace(path=path)

    @verb
    def grep(self, pattern: str, path: str = ".", *, glob: str = "", ignore_case: bool = False, literal: bool = False,
             most: int = 1000, longest: int = 2000, hidden: bool = False) -> Matches:  # fmt: skip
        """Matching lines of the visible files, in a file or below a folder."""

        def search(layer: Filesystem, place: str) -> Matches | FileFault:
            return layer.grep(pattern, place, glob=glob, ignore_case=ignore_case, literal=literal, most=_search.COUNTED,
                              longest=longest, hidden=hidden)  # fmt: skip

        above, below, shows = self._searched(path, search, Matches())
        rows = [one for one in below.matches if shows(one.path)]
        skipped = {place: why for place, why in below.skipped.items() if shows(place)}
        above.matches = [one for one in above.matches if one.path != DELETED]
        return _union.merge_matches([above, below.replace(matches=rows, skipped=skipped)], most)

    @verb
    def glob(self, pattern: str, path: str = ".", most: int = 1000) -> Listing:
        above, below, shows = self._searched(path, lambda layer, place: layer.glob(pattern, place, ALL), Listing())
        found = [one for one in below.entries if shows(one.path)]
        return _union.newest_first([*(one for one in above.entries if one.path != DELETED), *found], most)

    def _searched(
        self, path: str, search: Callable[[Filesystem, str], T | FileFault], nothing: T
    ) -> tuple[T, T, Callable[[str], bool]]:
        """(the result above, the result below, a function that says whether a path of the result below is visible)."""
        found, gone, listed = self._there(self._names(path)), self._gone(), dict[Names, set[str] | None]()

        def shows(path: str) -> bool:
            names = split_names(path)
            if names[:-1] not in listed:
                above = self.upper.ls(join_names(names[:-1]), ALL)
                missing = isinstance(above, FileFault) and above.kind == "missing"
                listed[names[:-1]] = set() if missing else None
                if not isinstance(above, FileFault):
                    listed[names[:-1]] = {_last(one) for one in above.entries}
            known = listed[names[:-1]]
            return known is not None and names[-1] not in known and not _hidden(names, gone)

        above = unwrap(search(self.upper, found.path)) if found.upper else nothing
        return above, unwrap(search(self.lower, found.path)) if found.shows_lower else nothing, shows

    @verb
    def stat(self, path: str) -> FileEntry:
        found = self._there(self._names(path)).entry
        assert found, "something is there"
        return found

    @verb
    def mkdir(self, path: str) -> WriteResult:
        if not self._at(self._names(path)).is_folder:
            found = self._changeable(path, make=True)
            if found.entry:
                raise os_error(errno.EEXIST)
            unwrap(self.upper.mkdir(found.path))
        return WriteResult(path=path)

    @verb
    def delete(self, path: str) -> WriteResult | FileFault:
        """Delete a file, or a folder with its content; record it if the template has it."""
        found = self._source(path)
        if not found.lower:
            return unwrap(self.upper.delete(found.path)).replace(path=path)
        count = sum(one.kind != "folder" for one in self._deletable(found, path))
        self._hide(found.names)
        if found.upper:
            unwrap(self.upper.delete(found.path))
        return WriteResult(path=path, count=count)

    def _source(self, path: str) -> _Found:
        """The source of a deletion or move."""
        found = self._changeable(path, follow=False)
        return found if found.entry else self._there(found.names, follow=False)

    def _deletable(self, found: _Found, path: str) -> list[FileEntry]:
        """The entries at a path and below it; raises VerbRefusal if one of them is read-only."""
        entries = list(_union.below(self, found.path))
        for one in entries:
            is_key = one.kind != "folder" and self.guarded.file(_last(one))
            if is_key or self.guarded.folder(split_names(one.path)):
                raise read_only(path, one.path)
        return entries

    @verb
    def move(self, path: str, target: str) -> WriteResult | FileFault:
        """Rename, with the folders of the target; files of the template are copied and recorded as deleted."""
        found = self._source(path)
        if found.lower:
            self._deletable(found, path)
        return catch_faults(target, lambda: self._moved(found, target))

    def _moved(self, found: _Found, target: str) -> WriteResult:
        into = self._changeable(target, follow=False, make=True)
        if into.entry:
            raise os_error(errno.EEXIST)
        if into.names[: len(found.names)] == found.names:
            raise os_error(errno.EINVAL)
        if not found.lower:
            return unwrap(self.upper.move(found.path, into.path)).replace(path=target)
        size = _union.copy(self, found.path, self.upper, into.path)
        unwrap(self.delete(found.path))
        return WriteResult(path=target, size=size)

    @verb
    def resolve(self, path: str, *, follow: bool = True) -> str:

        def resolved(names: Names) -> Names:
            return split_names(self._resolved(self._at(names))) if follow else names

        return join_names(resolved(_union.resolve_dots(path, lambda names: resolved(names)[:-1])))


def _followed(layer: Filesystem, names: Names, follow: bool) -> Names:
    """The names with the links of one layer resolved; without `follow`, not the last."""
    above = unwrap(layer.resolve(join_names(names if follow else names[:-1])))
    return split_names(above) if follow else (*split_names(above), *names[-1:])


def _hidden(names: Names, gone: frozenset[Names]) -> bool:
    """Whether a path of the template, or a folder above it, is deleted."""
    return any(names[:count] in gone for count in range(1, len(names) + 1))


def _last(entry: FileEntry) -> str:
    return entry.path.rpartition("/")[2]
