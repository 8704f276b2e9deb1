"""The files below a local folder as a Filesystem: rooted, and every change atomic."""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Iterable, Mapping, Sequence

from harness.base import encoding
from harness.base.record import Record
from harness.filesystem import _edit, _lines, _replace, _ripgrep, _search
from harness.filesystem._faults import VerbRefusal, catch_faults, changed_meanwhile, read_only, root_stays, verb
from harness.filesystem._protection import ProtectedNames, check_name
from harness.filesystem._replace import LockedFile
from harness.filesystem._root import LISTED, Root, RootedPath, split
from harness.filesystem._walk import entry
from harness.filesystem.protocol import (
    MAX_READ_BYTES,
    FileContent,
    FileEntry,
    FileFault,
    Listing,
    Matches,
    Replacement,
    WriteResult,
)
from harness.filesystem.transfer import MAX_WHOLE_BYTES, too_large

TRIES = 20
READ, WRITE = "read", "write"


class Mount(Record):
    """A local folder that appears under a top-level name. `mode`: READ or WRITE."""

    path: str
    mode: str = READ


class Local:
    """Files below `root`. `read_only`: patterns of read-only paths, besides ProtectedNames; `also`: other folders by
    the top-level name under which they appear, hiding an entry of that name; `homes`: further absolute paths of the
    root, such as the one inside confinement."""

    def __init__(
        self,
        root: str,
        *,
        read_only: Iterable[str] = (),
        also: Mapping[str, Mount] | None = None,
        homes: Iterable[str] = (),
        with_rg: bool = True,
    ) -> None:
        self.beneath = Root(root)
        self.root = self.beneath.folder
        self.homes = list(dict.fromkeys([self.root, os.path.abspath(root), *homes]))
        self.guarded = ProtectedNames(list(read_only))
        self.program = _ripgrep.program() if with_rg else ""
        self.also = dict(also or {})
        self._mounted = {name: Root(mount.path) for name, mount in self.also.items()}

    def located(self, path: str) -> tuple[Root, list[str], str]:
        """(the root that contains the path, the names from there, the mount's name or ""); raises VerbRefusal."""
        names = split(path, self.homes)
        if names is None:
            raise VerbRefusal("invalid", path, "The path is empty or contains a NUL. The root is `.`.")
        if names and names[0] in self._mounted:
            return self._mounted[names[0]], names[1:], names[0]
        return self.beneath, names, ""

    @verb
    def ls(self, path: str = ".", most: int = 1000) -> Listing:
        beneath, names, mount = self.located(path)
        fd, names = beneath.listed(names)
        try:
            found = dict.fromkeys(os.listdir(fd), fd)
            if not names and not mount:
                found |= dict.fromkeys(self._mounted, -1)
            kept = sorted(found)[:most]
            start = "".join(f"{name}/" for name in ([mount, *names] if mount else names))
            entries = [one for name in kept if (one := self._entry(found[name], name, start))]
        finally:
            os.close(fd)
        return Listing(entries=entries, more=len(found) - len(kept))

    def _entry(self, fd: int, name: str, start: str) -> FileEntry | None:
        """One entry of a folder; None if it was removed meanwhile."""
        try:
            found = os.stat(name, dir_fd=fd, follow_symlinks=False) if fd >= 0 else os.stat(self.also[name].path)
        except FileNotFoundError:
            return None
        return entry(start + name, found)

    @verb
    def read(self, path: str, offset: int = 0, limit: int = 0, *, most: int = MAX_READ_BYTES) -> FileContent:
        fd = self._opened(path)
        try:
            return _lines.part(fd, max(0, offset), max(0, limit), most)
        finally:
            os.close(fd)

    def _opened(self, path: str) -> int:
        """A descriptor of a regular file."""
        beneath, names, _ = self.located(path)
        fd = beneath.opened(names)
        try:
            _replace.check(os.fstat(fd))
        except OSError:
            os.close(fd)
            raise
        return fd

    @verb
    def write(self, path: str, data: bytes, *, create: bool = False, expect: str = "") -> WriteResult:
        """Replace or create a file atomically, with its folders."""
        if create and expect:
            raise VerbRefusal("invalid", path, f"{path}: `create` and `expect` exclude each other.")
        with self._changeable(path, follow=not create, make=not expect) as place:
            if create:
                _put_new(place, path, data)
            else:
                self._replace(place, path, data, expect)
        return WriteResult(path=path, digest=encoding.digest(data), size=len(data))

    def _replace(self, place: RootedPath, path: str, data: bytes, expect: str) -> None:
        for _ in range(TRIES):
            if place.found() is None:
                if expect:
                    raise changed_meanwhile(path)
                try:
                    return _put_new(place, path, data)
                except FileExistsError:
                    continue  # created concurrently
            with LockedFile(place.folder, place.name) as held:
                if expect and encoding.digest(_whole(held.fd, path)) != expect:
                    raise changed_meanwhile(path)
                if not expect or held.unchanged():
                    return _replace.put(place.folder, place.name, data, held.at_first)
        raise changed_meanwhile(path)

    @verb
    def edit(self, path: str, changes: Sequence[Replacement], expect: str = "") -> WriteResult | FileFault:
        with self._changeable(path) as place:
            for _ in range(TRIES):
                with LockedFile(place.folder, place.name) as held:
                    data = _whole(held.fd, path)
                    if expect and encoding.digest(data) != expect:
                        raise changed_meanwhile(path)
                    made = _edit.apply(data, changes, path)
                    if isinstance(made, FileFault):
                        return made
                    if held.unchanged():
                        _replace.put(place.folder, place.name, made.data, held.at_first)
                        new = encoding.digest(made.data)
                        return WriteResult(path=path, count=made.count, digest=new, size=len(made.data))
        raise changed_meanwhile(path)

    @verb
    def grep(self, pattern: str, path: str = ".", *, glob: str = "", ignore_case: bool = False, literal: bool = False,
             most: int = 1000, longest: int = 2000, hidden: bool = False) -> Matches:  # fmt: skip
        """Lines that match a regular expression, in a file or below a folder."""
        asked = _search.GrepRequest(
            pattern=pattern,
            glob=glob,
            ignore_case=ignore_case,
            literal=literal,
            most=most,
            longest=longest,
            hidden=hidden,
        )
        return _search.grep(*self.located(path), asked, self.program)

    @verb
    def glob(self, pattern: str, path: str = ".", most: int = 1000) -> Listing:
        """Files below a folder whose path matches, newest first."""
        return _search.glob(*self.located(path), pattern, most)

    def folder(self) -> str:
        """The absolute path of the root, without links."""
        return self.root

    @verb
    def stat(self, path: str) -> FileEntry:
        """The entry of one path, links followed."""
        beneath, names, mount = self.located(path)
        with beneath.place(names) as place:
            return entry("/".join([mount, *place.names] if mount else place.names) or ".", place.stat())

    @verb
    def mkdir(self, path: str) -> WriteResult:
        found = self.stat(path)
        if isinstance(found, FileFault) or found.kind != "folder":
            with self._changeable(path, make=True) as place:
                _replace.make_folder(place.folder, place.name)
        return WriteResult(path=path)

    @verb
    def delete(self, path: str) -> WriteResult:
        with self._changeable(path, follow=False) as place:
            self._check_below(place, path)
            return WriteResult(path=path, count=_replace.remove(place.folder, place.name))

    @verb
    def move(self, path: str, target: str) -> WriteResult | FileFault:
        with self._changeable(path, follow=False) as place:
            found = place.stat()
            self._check_below(place, path)
            if isinstance(fault := catch_faults(target, lambda: self._moved(place, target)), FileFault):
                return fault
        return WriteResult(path=target, size=0 if stat.S_ISDIR(found.st_mode) else found.st_size)

    def _moved(self, place: RootedPath, target: str) -> None:
        """Rename the entry; errors refer to the target."""
        with self._changeable(target, follow=False, make=True) as into:
            _replace.move(place.folder, place.name, into.folder, into.name)

    @verb
    def resolve(self, path: str, *, follow: bool = True) -> str:
        beneath, names, mount = self.located(path)
        whole = beneath.real(names) if follow else names
        plain = posixpath.normpath("/".join([mount, *whole] if mount else whole) or ".")
        if plain.split("/")[0] == "..":
            raise VerbRefusal("outside", path, f"{path} leads out of the root.")
        return plain

    def _changeable(self, path: str, *, follow: bool = True, make: bool = False) -> RootedPath:
        """Resolve a path that may be changed; `make`: create its folders. Raises VerbRefusal and OSError."""
        beneath, names, mount = self.located(path)
        if mount and self.also[mount].mode != WRITE:
            raise VerbRefusal("read_only", path, f"{path} is read-only: `{mount}` is for reference.")
        for _ in range(TRIES):
            try:
                place = beneath.place(names, follow=follow)
                break
            except FileNotFoundError:
                if not make:
                    raise
            self._check(names, path)
            for name in names:
                check_name(name, path)
            try:
                beneath.make_folders(names)
            except FileNotFoundError:
                if ".." not in names:
                    raise
                text = f"{path} goes up from a folder that does not exist. Write the path without `..`."
                raise VerbRefusal("missing", path, text) from None
        else:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        try:
            if not place.names:
                raise root_stays(path)
            self._check(place.names, path)
            found = place.found()
            if found is None and make:
                check_name(place.name, path)
            if found and self.guarded.file(place.name) and not stat.S_ISDIR(found.st_mode):
                raise read_only(path, path)
        except BaseException:
            os.close(place.folder)
            raise
        return place

    def _check(self, names: Sequence[str], path: str) -> None:
        if self.guarded.folder(names):
            raise read_only(path, path)

    def _check_below(self, place: RootedPath, path: str) -> None:
        """Raise VerbRefusal if something below a folder is read-only."""
        if not stat.S_ISDIR(place.stat().st_mode):
            return
        fd = os.open(place.name, LISTED, dir_fd=place.folder)
        try:
            for folder, folders, names, _ in os.fwalk(".", dir_fd=fd):
                above = [*place.names, *(name for name in folder.split("/") if name != ".")]
                for name in (*folders, *names):
                    if self.guarded.folder([*above, name]) or (name in names and self.guarded.file(name)):
                        raise read_only(path, "/".join([*above, name]))
        finally:
            os.close(fd)


def _put_new(place: RootedPath, path: str, data: bytes) -> None:
    """Create a file under a free name that is valid on every system."""
    if place.found() is not None:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    _replace.put(place.folder, place.name, data)


def _whole(fd: int, path: str) -> bytes:
    """All bytes of a file."""
    data = _lines.whole(fd, MAX_WHOLE_BYTES)
    if data is None:
        raise VerbRefusal("too_large", path, too_large(path).text)
    return data
