"""Filesystems under one root: each path belongs to the mount with the longest prefix, or to the default.

A mount is a folder at any depth, or one file. Listings show mounts, searches include the mounts below their folder, and a move
between mounts copies, verifies and deletes.
"""

from __future__ import annotations

import copy
import errno
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from harness.base import patterns
from harness.base.errors import UsageFault
from harness.filesystem import _search, _union
from harness.filesystem._faults import VerbRefusal, catch_faults, os_error, unwrap, verb
from harness.filesystem._root import MAX_LINKS, split
from harness.filesystem._union import ALL, Names, join_names, split_names
from harness.filesystem.protocol import (
    MAX_READ_BYTES,
    FileContent,
    FileEntry,
    FileFault,
    Filesystem,
    Listing,
    LocalFolder,
    Matches,
    Replacement,
    Shell,
    WriteResult,
)
from harness.process.confine import Confinement

T = TypeVar("T")
NOTHING = ("missing", "not_folder")  # faults of a folder that exists only because of mounts below it


class _Place(NamedTuple):
    """Where a path leads: the `path` in `files`, whose root is at `prefix`; `mount`: its mount, () for the default."""

    files: Filesystem
    path: str
    prefix: Names
    mount: Names

    def outer(self, path: str) -> str:
        """The path from the common root of a path in `files`."""
        return join_names(self.prefix + split_names(path))

    def entry(self, one: FileEntry) -> FileEntry:
        """An entry under its path from the common root."""
        return one.replace(path=self.outer(one.path)) if self.prefix else one

    def unwrap(self, path: str, result: T | FileFault) -> T:
        """The result; raises a fault for the requested path."""
        if isinstance(result, FileFault) and self.prefix and result.path == self.path:
            inner = rf"(?<!\S){re.escape(self.path)}(?=[\s.,:;]|$)"
            raise VerbRefusal(result.kind, path, re.sub(inner, lambda _: path, result.text, count=1))
        return unwrap(result)


class Composite:
    """`mounts`: {prefix: filesystem}. A prefix that ends with `/` is a folder and shows the root of its filesystem; any other
    prefix is a file and shows the file with its last name there. It is a Shell if its default is one; commands see only the files
    of the default. Raises UsageFault for prefixes that exclude each other."""

    def __init__(self, default: Filesystem, mounts: Mapping[str, Filesystem]) -> None:
        self.mounts = {tuple(split(prefix) or ()): files for prefix, files in mounts.items()}
        self.single = {tuple(split(prefix) or ()) for prefix in mounts if not prefix.endswith("/")}
        under = [one for one in self.mounts for count in range(1, len(one)) if one[:count] in self.single]
        if under or len(self.mounts) < len(mounts) or any(not one or ".." in one for one in self.mounts):
            raise UsageFault(f"Each mount needs its own prefix, which is not below a file: {', '.join(mounts)}.")
        self._use(default)

    def _use(self, default: Filesystem) -> None:
        """Set the default, with its shell verbs if it is a Shell."""
        self.default = default
        if isinstance(default, Shell):
            self.id, self.confined = default.id, self._confined
            self.execute, self.start = (partial(self._run, call) for call in (default.execute, default.start))

    def _route(self, names: Names) -> _Place:
        """The place of a path without links."""
        for count in range(len(names), 0, -1):
            if names[:count] in self.mounts:
                at = count - (names[:count] in self.single)
                return _Place(self.mounts[names[:count]], join_names(names[at:]), names[:at], names[:count])
        return _Place(self.default, join_names(names), (), ())

    def _real(self, names: Names, *, follow: bool = True) -> Names:
        """The names, with links resolved if they lead to another mount. `follow`: the last one, too."""
        for _ in range(MAX_LINKS):
            place = self._route(names)
            inner = split_names(place.path)
            last = inner[len(inner) if follow else -1 :]
            found = place.files.resolve(join_names(inner[: len(inner) - len(last)]))
            if place.mount in self.single or isinstance(found, FileFault):
                return names
            real = (*place.prefix, *split_names(found), *last)
            if self._route(real).mount == place.mount:
                return names
            names = real
        raise os_error(errno.ELOOP)

    def _resolved(self, names: Names) -> Names:
        """The names with all links resolved."""
        names = self._real(names)
        place = self._route(names)
        found = place.path if place.mount in self.single else place.files.resolve(place.path)
        return split_names(place.outer(place.unwrap(join_names(names), found)))

    def _above(self, names: Names) -> Names:
        """The folder that `..` leads to."""
        if (found := self._entry(names)).kind != "folder":
            raise os_error(errno.ENOTDIR)
        return split_names(found.path)[:-1]

    def _at(self, path: str, *, follow: bool = True) -> tuple[Names, _Place]:
        """(the names from the root, their place). Raises VerbRefusal and OSError."""
        names = self._real(_union.resolve_dots(self._rooted(path), self._above), follow=follow)
        return names, self._route(names)

    def _rooted(self, path: str) -> str:
        """A path from the common root: models write the default's root before it, as commands print it."""
        names = split(path) or []
        if path[:1] != "/" or not names:
            return path
        up = names.index("..") if ".." in names else len(names)
        found = self.default.resolve("/" + "/".join(names[:up]), follow=False)
        return path if isinstance(found, FileFault) else "/".join([found, *names[up:]])

    def _below(self, names: Names) -> list[Names]:
        """The mounts below a folder."""
        return sorted(one for one in self.mounts if len(one) > len(names) and one[: len(names)] == names)

    def _is_mount(self, names: Names) -> bool:
        """Whether a mount makes it a folder."""
        return bool(names) and (names in self.mounts.keys() - self.single or bool(self._below(names)))

    def _changeable(self, path: str, *, follow: bool = True) -> tuple[Names, _Place]:
        """As `_at`, for a change; not below a mount that is one file."""
        names, place = self._at(path, follow=follow)
        if place.mount in self.single and names != place.mount:
            raise os_error(errno.ENOTDIR)
        return names, place

    def _file(self, path: str, number: int = errno.EISDIR) -> _Place:
        """The place of an existing or new file; raises OSError with this number for a folder that mounts make."""
        names, place = self._changeable(path, follow=number != errno.EEXIST)
        if self._is_mount(names):
            raise os_error(number)
        return place

    def _whole(self, path: str) -> tuple[Names, _Place]:
        """As `_changeable`, for a deletion or a move; refuses mounts and folders above mounts."""
        names, place = self._changeable(path, follow=False)
        if self._is_mount(names):
            raise VerbRefusal("read_only", path, f"{path} is a mount or contains one, so it stays.")
        return names, place

    @verb
    def ls(self, path: str = ".", most: int = 1000) -> Listing:
        """The entries of one folder, mounts among them."""
        names, place = self._at(path)
        mounts, found = self._below(names), place.files.ls(place.path, ALL)
        if isinstance(found, FileFault) and mounts and found.kind in NOTHING:
            found = Listing()
        listed = [place.entry(one) for one in place.unwrap(path, found).entries]
        entries = {one.path.rpartition("/")[2]: one for one in listed}
        for name in {one[len(names)] for one in mounts}:
            entries |= {name: one} if (one := self._found((*names, name))) else {}
        kept = sorted(entries)[:most]
        return Listing(entries=[entries[name] for name in kept], more=len(entries) - len(kept))

    def _entry(self, names: Names) -> FileEntry:
        """The entry of a path; raises OSError if there is none."""
        names = self._real(names)
        place = self._route(names)
        found = place.files.stat(place.path)
        if self._is_mount(names) and (isinstance(found, FileFault) or found.kind != "folder"):
            return FileEntry(path=join_names(names), kind="folder")
        if isinstance(found, FileFault) and found.kind in NOTHING:
            raise os_error(errno.ENOENT if found.kind == "missing" else errno.ENOTDIR)
        return place.entry(place.unwrap(join_names(names), found))

    def _found(self, names: Names) -> FileEntry | None:
        """The entry of a path; None if there is none."""
        try:
            return self._entry(names)
        except OSError:
            return None

    @verb
    def read(self, path: str, offset: int = 0, limit: int = 0, *, most: int = MAX_READ_BYTES) -> FileContent:
        place = self._file(path)
        return place.unwrap(path, place.files.read(place.path, offset, limit, most=most))

    @verb
    def write(self, path: str, data: bytes, *, create: bool = False, expect: str = "") -> WriteResult:
        place = self._file(path, errno.EEXIST if create else errno.EISDIR)
        done = place.unwrap(path, place.files.write(place.path, data, create=create, expect=expect))
        return done.replace(path=path)

    @verb
    def edit(self, path: str, changes: Sequence[Replacement], expect: str = "") -> WriteResult:
        place = self._file(path)
        return place.unwrap(path, place.files.edit(place.path, changes, expect)).replace(path=path)

    @verb
    def grep(self, pattern: str, path: str = ".", *, glob: str = "", ignore_case: bool = False, literal: bool = False,
             most: int = 1000, longest: int = 2000, hidden: bool = False) -> Matches:  # fmt: skip
        """Lines that match, in a file or below a folder, with the mounts below it."""
        names, own = self._at(path)
        wanted = _union.accepts(glob, names, hidden=hidden) if glob else None
        dotted = hidden or bool(glob and patterns.names_hidden(glob))

        def search(place: _Place) -> Matches | FileFault:
            within = glob if place == own or "/" not in glob else ""
            return place.files.grep(pattern, place.path, glob=within, ignore_case=ignore_case, literal=literal, hidden=dotted,
                                    most=_search.COUNTED, longest=longest)  # fmt: skip

        parts = list[Matches]()
        for place, part in self._searched(path, names, own, dotted, search):
            rows = [one.replace(path=place.outer(one.path)) for one in part.matches]
            if place != own and wanted:
                rows = [one for one in rows if wanted(FileEntry(path=one.path, kind="file"))]
            skipped = {place.outer(one): why for one, why in part.skipped.items()}
            rows = [one for one in rows if self._route(split_names(one.path)).mount == place.mount]
            parts.append(part.replace(matches=rows, skipped=skipped))
        return _union.merge_matches(parts, most)

    def _searched(
        self, path: str, names: Names, own: _Place, hidden: bool, search: Callable[[_Place], T | FileFault]
    ) -> list[tuple[_Place, T]]:
        """The results of a search at a path, and in each mount below it that has content."""
        mounts = [one for one in self._below(names) if not _union.skips(one[len(names) :], hidden=hidden)]
        places = [own, *map(self._route, mounts)]
        found = [(one, search(one)) for one in places]
        gone = self._is_mount(names)
        return [
            (one, one.unwrap(path, part))
            for one, part in found
            if not (isinstance(part, FileFault) and part.kind in NOTHING and (gone or one != own))
        ]

    @verb
    def glob(self, pattern: str, path: str = ".", most: int = 1000) -> Listing:
        """Files and folders below a folder whose path matches, newest first, with the mounts below it."""
        names, own = self._at(path)
        wanted, hidden = _union.accepts(pattern, names, folders=True), patterns.names_hidden(pattern)
        on_way = {one[:count] for one in self._below(names) for count in range(len(names) + 1, len(one) + 1)}
        seen = [one for one in on_way if not _union.skips(one[len(names) :], hidden=hidden)]
        found = {one.path: one for one in map(self._found, seen) if one and wanted(one)}

        def search(place: _Place) -> Listing | FileFault:
            if place != own and place.mount in self.single:
                return Listing()
            return place.files.glob(pattern if place == own else _union.widen_glob(pattern), place.path, ALL)

        for place, part in self._searched(path, names, own, hidden, search):
            entries = map(place.entry, part.entries)
            mine = [one for one in entries if self._route(split_names(one.path)).mount == place.mount]
            found |= {one.path: one for one in mine if place == own or wanted(one)}
        return _union.newest_first(found.values(), most)

    @verb
    def stat(self, path: str) -> FileEntry:
        return self._entry(self._at(path)[0])

    @verb
    def mkdir(self, path: str) -> WriteResult:
        names, place = self._changeable(path)
        if names in self.single:
            raise os_error(errno.EEXIST)
        if not self._is_mount(names):
            place.unwrap(path, place.files.mkdir(place.path))
        return WriteResult(path=path)

    @verb
    def delete(self, path: str) -> WriteResult:
        """Delete a file, or a folder with its content; a mount stays."""
        _, place = self._whole(path)
        return place.unwrap(path, place.files.delete(place.path)).replace(path=path)

    @verb
    def move(self, path: str, target: str) -> WriteResult | FileFault:
        """Rename, with the folders of the target; to another filesystem by a copy that is compared before the deletion."""
        names, place = self._whole(path)
        if not names:
            return place.files.move(place.path, target)
        there = catch_faults(target, lambda: self._target(target))
        if isinstance(there, FileFault):
            self._entry(names)  # raises the fault of the source, which comes first
            return there
        if place.mount == there.mount and place.mount not in self.single:
            done = place.files.move(place.path, there.path)
            at_target = isinstance(done, FileFault) and done.path == there.path
            return (there.unwrap(target, done) if at_target else place.unwrap(path, done)).replace(path=target)
        return WriteResult(path=target, size=self._copied(names, place, there))

    def _target(self, target: str) -> _Place:
        """The place of the target of a move; raises OSError for a mount."""
        into, there = self._changeable(target, follow=False)
        if self._is_mount(into):
            raise os_error(errno.EEXIST)
        return there

    def _copied(self, names: Names, place: _Place, there: _Place) -> int:
        """Copy to another filesystem, verify, delete; returns the size of a file. Raises VerbRefusal and OSError."""
        kind, into = self._entry(names).kind, split_names(there.outer(there.path))
        if self._found(into):
            raise os_error(errno.EEXIST)
        if kind == "folder" and (into[: len(names)] == names or into in self.single):
            raise os_error(errno.EINVAL)
        size = _union.copy(self, join_names(names), self, join_names(into))
        removed = place.files.delete(place.path)
        if isinstance(removed, FileFault):
            there.files.delete(there.path)
        place.unwrap(join_names(names), removed)
        return size

    @verb
    def resolve(self, path: str, *, follow: bool = True) -> str:
        names = _union.resolve_dots(self._rooted(path), lambda above: (self._resolved(above) if follow else above)[:-1])
        return join_names(self._resolved(names) if follow else names)

    def folder(self) -> str:
        """The local folder of the default; "" if it has none."""
        return self.default.folder() if isinstance(self.default, LocalFolder) else ""

    def _confined(
        self, confinement: Confinement | None, environment: Mapping[str, str] | None, refusal: str
    ) -> Composite:
        """The same with a confined default."""
        assert isinstance(self.default, Shell), "only then it is called"
        made = copy.copy(self)
        made._use(self.default.confined(confinement, environment, refusal))
        return made

    def _run(self, call: Callable[..., T], command: str, *, folder: str = ".", **more: Any) -> T | FileFault:
        """Run a command of the default in a folder of it."""
        place = catch_faults(folder, lambda: self._at(folder)[1])
        if not isinstance(place, FileFault) and place.mount:
            text = f"Commands cannot see {folder}, which is a mount. Use the file tools."
            return FileFault(kind="invalid", path=folder, text=text)
        return place if isinstance(place, FileFault) else call(command, folder=place.path, **more)
