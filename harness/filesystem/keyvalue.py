"""The files of any store of keys as a Filesystem: each file is one value under the names of its path, and there are no links.

A folder exists while a key is below it; a marker keeps an empty one. A write replaces the version that was read, so no update
is lost. A move or deletion of a folder goes file by file. Searches read keys first, then the values of what they report.
"""

from __future__ import annotations

import errno
import re
import struct
import time
from collections.abc import Callable, Sequence
from io import BytesIO

from harness.base import encoding, patterns
from harness.base.errors import BrokenFile, VersionConflict
from harness.filesystem import _edit, _lines, _python_grep, _ripgrep, _search
from harness.filesystem._faults import VerbRefusal, changed, failed, read_only, root_stays, tried, verb
from harness.filesystem._protection import ProtectedNames, check_name
from harness.filesystem._root import split
from harness.filesystem._walk import IGNORE, MAX_RULE_BYTES, IgnoreRules, ignores, order, skips
from harness.filesystem.protocol import (
    MAX_READ_BYTES,
    FileContent,
    FileEntry,
    FileFault,
    Listing,
    Match,
    Matches,
    Replacement,
    WriteResult,
)
from harness.stores.store import ABSENT, ANY, Key, Store

MARKER = "/"  # behind the names of a folder; no file has this name
STAMP = struct.Struct(">d")  # before the content of each value: the unix seconds of the write
TRIES = 100


def content_of(value: bytes) -> bytes:
    """The content of a file in the value that holds it."""
    return value[STAMP.size :]


class KeyValueFiles:
    """Files under the keys of `store` that begin with `prefix`. `read_only`: patterns of read-only paths, besides
    ProtectedNames."""

    def __init__(self, store: Store, prefix: Key = (), *, read_only: Sequence[str] = ()) -> None:
        self.store, self.prefix, self.guarded = store, prefix, ProtectedNames(list(read_only))

    @verb
    def ls(self, path: str = ".", most: int = 1000) -> Listing:
        """The entries of one folder."""
        names = self._folder(path)
        found = sorted(self._tree(names).get(names, {}).items())
        entries = [one for name, is_folder in found[:most] if (one := self._entry((*names, name), is_folder))]
        return Listing(entries=entries, more=max(0, len(found) - most))

    @verb
    def read(self, path: str, offset: int = 0, limit: int = 0, *, most: int = MAX_READ_BYTES) -> FileContent:
        """Lines of a file from the 0-based line `offset` on; `limit` 0 is all of them."""
        data, version, _ = self._opened(self._names(path))
        return _lines.part_of(data, max(0, offset), max(0, limit), most).replace(version=version)

    @verb
    def write(self, path: str, data: bytes, *, create: bool = False, expect: str = "") -> WriteResult:
        """Replace or create a file with its folders."""
        if create and expect:
            raise VerbRefusal("invalid", path, f"{path}: `create` and `expect` exclude each other.")

        def new(old: bytes | None) -> bytes:
            if old is not None and create:
                raise failed(errno.EEXIST)
            if expect and (old is None or encoding.digest(old) != expect):
                raise changed(path)
            return data

        return self._changed(path, new, make=not expect, create=create)

    @verb
    def edit(self, path: str, changes: Sequence[Replacement], expect: str = "") -> WriteResult:
        """Replace bytes in a file, all changes or none."""
        count = 0

        def new(old: bytes | None) -> bytes:
            nonlocal count
            if old is None:
                raise failed(errno.ENOENT)
            if expect and encoding.digest(old) != expect:
                raise changed(path)
            made = _edit.apply(old, changes, path)
            if isinstance(made, FileFault):
                raise VerbRefusal(made.kind, made.path, made.text)
            count = made.count
            return made.data

        return self._changed(path, new).replace(count=count)

    def _changed(
        self, path: str, new: Callable[[bytes | None], bytes], *, make: bool = False, create: bool = False
    ) -> WriteResult:
        """Put what `new` makes of the content, None for no file, in its place; again if it changed meanwhile."""
        names = self._changeable(path, make=make)
        for _ in range(TRIES):
            if self._is_folder(names):
                raise failed(errno.EEXIST if create else errno.EISDIR)
            known = self._value(names)
            data = new(known[0] if known else None)
            try:
                self.store.put(self._key(names), STAMP.pack(time.time()) + data, known[1] if known else ABSENT)
            except VersionConflict:
                continue
            return WriteResult(path=path, digest=encoding.digest(data), size=len(data))
        raise changed(path)

    @verb
    def grep(self, pattern: str, path: str = ".", *, glob: str = "", ignore_case: bool = False, literal: bool = False,
             most: int = 1000, longest: int = 2000, hidden: bool = False) -> Matches:  # fmt: skip
        """Lines that match a regular expression of Python's `re`, in a file or below a folder."""
        try:
            wanted = _python_grep.compiled(pattern, literal=literal, ignore_case=ignore_case)
        except (re.error, RecursionError, OverflowError) as fault:
            raise VerbRefusal("bad_pattern", "", f"The pattern {pattern} is invalid: {fault}.") from None
        return self._grep(wanted, self._searched(path, glob, hidden), most, max(1, longest))

    def _searched(self, path: str, glob: str, hidden: bool) -> tuple[list[Key], bool]:
        """(the files that a grep reads, in order; whether the path is that one file)."""
        names = self._names(path)
        if not self._is_folder(names):
            self._opened(names)
            return [names], True
        wanted = _search.compiled_glob(glob, hidden=hidden) if glob else None
        found = self._walk(names, hidden=hidden or bool(glob and patterns.names_hidden(glob)))
        kept = ["/".join(one) for one, is_folder in found if not is_folder]
        start = len("/".join(names)) + bool(names)
        kept = [one for one in kept if wanted is None or wanted.match(one, start)]
        return [tuple(one.split("/")) for one in sorted(kept, key=order)], False

    def _grep(self, wanted: re.Pattern[str], searched: tuple[list[Key], bool], most: int, longest: int) -> Matches:
        found, files, skipped, until = list[Match](), 0, dict[str, str](), time.monotonic() + _ripgrep.SECONDS
        for names in searched[0]:
            if time.monotonic() > until:
                raise VerbRefusal(
                    "timeout", "", f"The search took longer than {_ripgrep.SECONDS:.0f} s. Search in fewer files."
                )
            known, path = self._value(names), "/".join(names)
            if known is None or b"\0" in known[0]:
                skipped |= {path: "binary"} if known and searched[1] else {}
                continue
            lines = [
                (number, line) for number, line in enumerate(BytesIO(known[0]), 1) if _python_grep.fits(line, wanted)
            ]
            files += bool(lines)
            found += [Match(path=path, line=number, text=line.removesuffix(b"\n")[:longest]) for number, line in lines]
            if len(found) > _search.COUNTED:
                return Matches(matches=found[: max(0, most)], files=files, more=-1, skipped=skipped)
        kept = found[: max(0, most)]
        return Matches(matches=kept, files=files, more=len(found) - len(kept), skipped=skipped)

    @verb
    def glob(self, pattern: str, path: str = ".", most: int = 1000) -> Listing:
        """Files and folders below a folder whose path matches, newest first."""
        wanted, names = _search.compiled_glob(pattern, folders=True), self._folder(path)
        start = len("/".join(names)) + bool(names)
        walked = self._walk(names, hidden=patterns.names_hidden(pattern))
        hits = [(one, is_folder) for one, is_folder in walked if wanted.match("/".join(one) + "/" * is_folder, start)]
        entries = [one for names, is_folder in hits if (one := self._entry(names, is_folder))]
        entries.sort(key=lambda one: (-one.changed, order(one.path)))
        return Listing(entries=entries[:most], more=max(0, len(entries) - most))

    @verb
    def stat(self, path: str) -> FileEntry:
        """The entry of one path."""
        names = self._names(path)
        if found := self._entry(names, self._is_folder(names)):
            return found
        raise failed(errno.ENOENT)

    @verb
    def mkdir(self, path: str) -> WriteResult:
        """Create a folder with its parents; a folder that exists is no fault."""
        if not self._is_folder(self._names(path, make=True)):
            names = self._changeable(path, make=True)
            if self._value(names) is not None:
                raise failed(errno.EEXIST)
            self._keep(names)
        return WriteResult(path=path)

    @verb
    def delete(self, path: str) -> WriteResult:
        """Delete a file, or a folder with its content."""
        names = self._changeable(path)
        keys = self._below(names, path)
        self._keep(names[:-1])
        for one in keys:
            self.store.delete(self._key(one), ANY)
        return WriteResult(path=path, count=sum(one[-1] != MARKER for one in keys))

    @verb
    def move(self, path: str, target: str) -> WriteResult | FileFault:
        """Rename, with the folders of the target; `exists` where the target is there."""
        names = self._changeable(path)
        keys = self._below(names, path)
        into = tried(target, lambda: self._target(names, target))
        if isinstance(into, FileFault):
            return into
        self._keep(names[:-1])
        sizes = [self._moved(one, into + one[len(names) :]) for one in keys]
        return WriteResult(path=target, size=sizes[0] if keys == [names] else 0)

    def _target(self, names: Key, target: str) -> Key:
        """The free place that something is moved to; raises OSError."""
        into = self._changeable(target, make=True)
        if self._is_folder(into) or self._value(into) is not None:
            raise failed(errno.EEXIST)
        if into[: len(names)] == names:
            self._keep(into[:-1])
            raise failed(errno.EINVAL)
        return into

    def _moved(self, names: Key, into: Key) -> int:
        """Move one value with all that is written to it meanwhile; returns the size of its content."""
        version = ABSENT
        while known := self.store.get(self._key(names)):
            try:
                version = self.store.put(self._key(into), known.data, version)
            except VersionConflict:
                raise failed(errno.EEXIST) from None
            try:
                self.store.delete(self._key(names), known.version)
            except VersionConflict:
                continue
            return max(0, len(known.data) - STAMP.size)
        return 0

    @verb
    def resolve(self, path: str, *, follow: bool = True) -> str:
        """The path from the root in its one form; there are no links to follow."""
        return "/".join(self._names(path, exact=False)) or "."

    def _names(self, path: str, *, make: bool = False, exact: bool = True) -> Key:
        """The names from the root. `exact`: the folders above are there, or with `make` may be created. Raises OSError."""
        names, found = split(path), list[str]()
        if names is None:
            raise VerbRefusal("invalid", path, "The path is empty or contains a NUL. The root is `.`.")
        for name in names:
            if name != "..":
                found.append(name)
                continue
            if not found:
                raise failed(errno.EXDEV)
            if exact and not self._is_folder(tuple(found)):
                self._check_above((*found, name), make=False)
            found.pop()
        if exact:
            self._check_above(tuple(found), make=make)
        return tuple(found)

    def _check_above(self, names: Key, *, make: bool) -> None:
        """Raise OSError unless the folder above is there; with `make`, if a file is in its place."""
        if self._is_folder(names[:-1]):
            return
        for count in range(1, len(names)):
            if self._value(names[:count]) is not None:
                raise failed(errno.ENOTDIR)
        if not make:
            raise failed(errno.ENOENT)

    def _folder(self, path: str) -> Key:
        """The names of a folder that is there; raises OSError."""
        names = self._names(path)
        if not self._is_folder(names):
            raise failed(errno.ENOENT if self._value(names) is None else errno.ENOTDIR)
        return names

    def _changeable(self, path: str, *, make: bool = False) -> Key:
        """The names of something that may be changed, or created with its folders. Raises VerbRefusal and OSError."""
        names = self._names(path, make=make)
        if not names:
            raise root_stays(path)
        if self.guarded.folder(names):
            raise read_only(path, path)
        there = self._value(names) is not None
        if there and self.guarded.file(names[-1]):
            raise read_only(path, path)
        if make and not there and not self._is_folder(names):
            for name in names:
                check_name(name, path)
        return names

    def _below(self, names: Key, path: str) -> list[Key]:
        """The file, or all that is below the folder; raises VerbRefusal if something there is read-only."""
        if not self._is_folder(names):
            self._opened(names)
            return [names]
        found = self._keys(names)
        for one in found:
            if self.guarded.folder(one) or self.guarded.file(one[-1]):
                raise read_only(path, "/".join(one).rstrip(MARKER))
        return found

    def _keep(self, names: Key) -> None:
        """Let a folder exist though nothing may be in it."""
        if names:
            self.store.put(self._key((*names, MARKER)), b"", ANY)

    def _key(self, names: Key) -> Key:
        """The key of a path, or the beginning of those below it."""
        return self.prefix + names

    def _value(self, names: Key) -> tuple[bytes, str, float] | None:
        """(content, version, unix seconds of the write) of a file; None if there is none."""
        found = None if not names else self.store.get(self._key(names))
        if found is None:
            return None
        if len(found.data) < STAMP.size:
            raise BrokenFile(self.store.describe(self._key(names)), "it is no value of a file")
        return found.data[STAMP.size :], found.version, STAMP.unpack_from(found.data)[0]

    def _opened(self, names: Key) -> tuple[bytes, str, float]:
        """The value of a file; raises OSError."""
        found = self._value(names)
        if found is None:
            raise failed(errno.EISDIR if self._is_folder(names) else errno.ENOENT)
        return found

    def _is_folder(self, names: Key) -> bool:
        return not names or bool(self.store.list(self._key(names), limit=1))

    def _entry(self, names: Key, is_folder: bool) -> FileEntry | None:
        """The entry of a file or folder; None if it was removed meanwhile."""
        path = "/".join(names) or "."
        if is_folder:
            return FileEntry(path=path, kind="folder")
        found = self._value(names)
        return FileEntry(path=path, kind="file", size=len(found[0]), changed=found[2]) if found else None

    def _keys(self, names: Key) -> list[Key]:
        """The keys below a folder, from the root on."""
        begins = self._key(names)
        return [names + key[len(begins) :] for key in self.store.list(begins)]

    def _tree(self, names: Key) -> dict[Key, dict[str, bool]]:
        """{folder: {name in it: whether that is a folder}} of all that is below a folder."""
        tree: dict[Key, dict[str, bool]] = {}
        for key in self._keys(names):
            for at in range(len(names), len(key)):
                if key[at] != MARKER:
                    tree.setdefault(key[:at], {})[key[at]] = at < len(key) - 1
        return tree

    def _walk(self, names: Key, *, hidden: bool) -> list[tuple[Key, bool]]:
        """(names, whether it is a folder) of what a search of this folder sees."""
        chain = [rules for count in range(len(names)) if (rules := self._rules(names[:count]))]
        if names and ignores(chain, "/".join(names), True):  # a folder named by the caller is walked even if ignored
            chain = []
        tree, found, todo = self._tree(names), list[tuple[Key, bool]](), [(names, chain)]
        while todo:
            folder, chain = todo.pop()
            rules = self._rules(folder) if IGNORE in tree.get(folder, {}) else None
            chain = [*chain, rules] if rules else chain
            for name, is_folder in tree.get(folder, {}).items():
                one = (*folder, name)
                if not skips(chain, "/".join(one), is_folder, hidden=hidden):
                    found.append((one, is_folder))
                    todo += [(one, chain)] if is_folder else []
        return found

    def _rules(self, folder: Key) -> IgnoreRules | None:
        found = self._value((*folder, IGNORE))
        return IgnoreRules(found[0][:MAX_RULE_BYTES], len("/".join(folder)) + bool(folder)) if found else None
