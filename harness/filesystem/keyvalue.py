"""The keys of any store as a Filesystem: each file is one value under the names of its path, and there are no links.

A folder exists while a key is below it; a marker keeps an empty one. A write replaces the version that was read, so no update
is lost. A folder is moved or deleted file by file. Searches read keys first, then only the values that they report.
"""

from __future__ import annotations

import errno
import re
import time
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import TypeVar

from harness.base import patterns
from harness.base.errors import VersionConflict
from harness.filesystem import _edit, _python_grep, _ripgrep, _search
from harness.filesystem._faults import (
    VerbRefusal,
    catch_faults,
    changed_meanwhile,
    os_error,
    read_only,
    root_stays,
    unwrap,
    verb,
)
from harness.filesystem._protection import ProtectedNames, check_name
from harness.filesystem._union import resolve_dots
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
from harness.filesystem.stored_files import SIGN, FileValues, PartGone, StoredFile, entry, heads, parts_of
from harness.stores.store import ANY, Key, Store, Value

T = TypeVar("T")
MARKER = SIGN  # after the names of a folder; no file has this name
TRIES = 100


class KeyValueFiles:
    """Files under the keys of `store` that begin with `prefix`. `read_only`: patterns of read-only paths, besides
    ProtectedNames."""

    def __init__(self, store: Store, prefix: Key = (), *, read_only: Sequence[str] = ()) -> None:
        self.store, self.guarded = store, ProtectedNames(list(read_only))
        self.values = FileValues(store, prefix)

    def state(self) -> list[Key] | None:
        """A value that differs after each change of a file, from keys only; None during a write, or after its writer died."""
        keys = self.values.keys(())
        files = [one for one in heads(keys) if one[-1] != MARKER]
        parts = {(one[:-1], one[-1].rpartition("-")[0]) for one in set(keys).difference(heads(keys))}
        return keys if len(parts) == len(files) else None

    def contents(self) -> dict[str, Value]:
        """{path: content and version} of all files."""
        names = [one for one in heads(self.values.keys(())) if one[-1] != MARKER]
        return {"/".join(one): found for one in names if (found := self._value(one))}

    @verb
    def ls(self, path: str = ".", most: int = 1000) -> Listing:
        names = self._folder(path)
        found = sorted(self.values.tree(names).get(names, {}).items())
        entries = [each for name, one in found[:most] if (each := one or self._entry((*names, name)))]
        return Listing(entries=entries, more=max(0, len(found) - most))

    @verb
    def read(self, path: str, offset: int = 0, limit: int = 0, *, most: int = MAX_READ_BYTES) -> FileContent:
        names = self._names(path)
        return self._read(names, lambda known: self.values.lines(names, known, max(0, offset), max(0, limit), most))

    def _read(self, names: Key, take: Callable[[StoredFile], T]) -> T:
        """What `take` returns for a file; repeated if the file changes meanwhile. Raises OSError."""
        for _ in range(TRIES):
            try:
                return take(self._opened(names))
            except PartGone:
                continue
        raise changed_meanwhile("/".join(names))

    @verb
    def write(self, path: str, data: bytes, *, create: bool = False, expect: str = "") -> WriteResult:
        if create and expect:
            raise VerbRefusal("invalid", path, f"{path}: `create` and `expect` exclude each other.")

        def new(known: StoredFile | None) -> bytes:
            if known and create:
                raise os_error(errno.EEXIST)
            if expect and (known is None or known.digest != expect):
                raise changed_meanwhile(path)
            return data

        return self._changed(path, self._changeable(path, make=not expect), new, create=create)

    @verb
    def edit(self, path: str, changes: Sequence[Replacement], expect: str = "") -> WriteResult:
        count, names = 0, self._changeable(path)

        def new(known: StoredFile | None) -> bytes:
            nonlocal count
            if known is None:
                raise os_error(errno.ENOENT)
            if expect and known.digest != expect:
                raise changed_meanwhile(path)
            made = unwrap(_edit.apply(self.values.content(names, known), changes, path))
            count = made.count
            return made.data

        return self._changed(path, names, new).replace(count=count)

    def _changed(
        self, path: str, names: Key, new: Callable[[StoredFile | None], bytes], *, create: bool = False
    ) -> WriteResult:
        """Replace a file by what `new` makes of it (None: no file); repeated if the file changes meanwhile."""
        for _ in range(TRIES):
            known = self.values.get(names)
            if known is None and self._is_folder(names):
                raise os_error(errno.EEXIST if create else errno.EISDIR)
            try:
                made = self.values.put(names, new(known), known)
            except (VersionConflict, PartGone):
                continue
            return WriteResult(path=path, digest=made.digest, size=made.size)
        raise changed_meanwhile(path)

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
        """(the files that a grep reads, in order; whether the path is a single file)."""
        names = self._names(path)
        if not self._is_folder(names):
            self._opened(names)
            return [names], True
        wanted = _search.compiled_glob(glob, hidden=hidden) if glob else None
        found = self._walk(names, hidden=hidden or bool(glob and patterns.names_hidden(glob)))
        kept = ["/".join(one) for one, known in found if not known or known.kind == "file"]
        start = len("/".join(names)) + bool(names)
        kept = [one for one in kept if wanted is None or wanted.match(one, start)]
        return [tuple(one.split("/")) for one in sorted(kept, key=order)], False

    def _grep(self, wanted: re.Pattern[str], searched: tuple[list[Key], bool], most: int, longest: int) -> Matches:
        found, files, skipped, until = list[Match](), 0, dict[str, str](), time.monotonic() + _ripgrep.SECONDS
        for names in searched[0]:
            if time.monotonic() > until:
                text = f"The search took longer than {_ripgrep.SECONDS:.0f} s. Search in fewer files."
                raise VerbRefusal("timeout", "", text)
            data, path = self._content(names), "/".join(names)
            if b"\0" in data:
                skipped |= {path: "binary"} if searched[1] else {}
                continue
            lines = [(number, line) for number, line in enumerate(BytesIO(data), 1) if _python_grep.fits(line, wanted)]
            files += bool(lines)
            found += [Match(path=path, line=number, text=line.removesuffix(b"\n")[:longest]) for number, line in lines]
            if len(found) > _search.COUNTED:
                return Matches(matches=found[: max(0, most)], files=files, more=-1, skipped=skipped)
        kept = found[: max(0, most)]
        return Matches(matches=kept, files=files, more=len(found) - len(kept), skipped=skipped)

    def _content(self, names: Key) -> bytes:
        """The content of a file; empty if it is gone."""
        return found.data if (found := self._value(names)) else b""

    def _value(self, names: Key) -> Value | None:
        """The content and the version of a file; None if it is gone."""
        try:
            return self._read(names, lambda known: Value(self.values.content(names, known), known.version))
        except OSError:
            return None

    @verb
    def glob(self, pattern: str, path: str = ".", most: int = 1000) -> Listing:
        wanted, names = _search.compiled_glob(pattern, folders=True), self._folder(path)
        start = len("/".join(names)) + bool(names)
        found = self._walk(names, hidden=patterns.names_hidden(pattern))
        paths = ["/".join(one) + "/" * bool(known and known.kind == "folder") for one, known in found]
        hits = [one for one, path in zip(found, paths, strict=True) if wanted.match(path, start)]
        entries = [each for one, known in hits if (each := known or self._entry(one))]
        entries.sort(key=lambda one: (-one.changed, order(one.path)))
        return Listing(entries=entries[:most], more=max(0, len(entries) - most))

    @verb
    def stat(self, path: str) -> FileEntry:
        names = self._names(path)
        if found := self._entry(names):
            return found
        raise self._absent(names)

    @verb
    def mkdir(self, path: str) -> WriteResult:
        if not self._is_folder(self._names(path)):
            names = self._changeable(path, make=True)
            if self.values.get(names):
                raise os_error(errno.EEXIST)
            self._keep(names)
        return WriteResult(path=path)

    @verb
    def delete(self, path: str) -> WriteResult:
        """Delete a file, or a folder with its content."""
        names = self._changeable(path)
        keys = self._below(names, path)
        self._keep(names[:-1])
        for one in keys:
            self.store.delete(self.values.prefix + one, ANY)
        return WriteResult(path=path, count=sum(one[-1] != MARKER for one in heads(keys)))

    @verb
    def move(self, path: str, target: str) -> WriteResult | FileFault:
        names = self._changeable(path)
        keys = self._below(names, path)
        into = catch_faults(target, lambda: self._target(names, target))
        if isinstance(into, FileFault):
            return into
        self._keep(names[:-1])
        sizes = [self._moved(one, into + one[len(names) :]) for one in heads(keys)]
        return WriteResult(path=target, size=sizes[0] if keys == [names] else 0)

    def _target(self, names: Key, target: str) -> Key:
        """The free target of a move; raises OSError."""
        into = self._changeable(target, make=True)
        if self._is_folder(into) or self.values.get(into) is not None:
            raise os_error(errno.EEXIST)
        if into[: len(names)] == names:
            self._keep(into[:-1])
            raise os_error(errno.EINVAL)
        return into

    def _moved(self, names: Key, into: Key) -> int:
        """Move one file or marker, with everything written to it meanwhile; returns the size of its content."""
        if names[-1] == MARKER:
            self._keep(into[:-1])
            self.store.delete(self.values.prefix + names, ANY)
        placed = None
        while names[-1] != MARKER and (known := self.values.get(names)):
            try:
                data = self.values.content(names, known)
                placed = self.values.put(into, data, placed, int(known.stamp.split("-")[0]))
                self.values.delete(names, known)
                return known.size
            except PartGone:
                continue
            except VersionConflict:
                if placed is None or placed.version != getattr(self.values.get(into), "version", ""):
                    raise os_error(errno.EEXIST) from None
        return 0

    @verb
    def resolve(self, path: str, *, follow: bool = True) -> str:
        """The path from the root in its one form; there are no links to follow."""
        return "/".join(self._names(path, exact=False)) or "."

    def _names(self, path: str, *, exact: bool = True) -> Key:
        """The names from the root. `exact`: a folder before a `..` must exist. Raises OSError."""

        def above(names: Key) -> Key:
            if exact and not self._is_folder(names):
                raise self._absent((*names, ".."))
            return names[:-1]

        return resolve_dots(path, above)

    def _absent(self, names: Key) -> OSError:
        """The fault of an absent path; a file may be above it."""
        files = (names[:count] for count in range(1, len(names)))
        return os_error(errno.ENOTDIR if any(map(self.values.get, files)) else errno.ENOENT)

    def _folder(self, path: str) -> Key:
        """The names of an existing folder; raises OSError."""
        names = self._names(path)
        if not self._is_folder(names):
            raise os_error(errno.ENOTDIR) if self.values.get(names) else self._absent(names)
        return names

    def _changeable(self, path: str, *, make: bool = False) -> Key:
        """The names of a path that may be changed, or with `make` created with its folders. Raises VerbRefusal and OSError."""
        names = self._names(path)
        if not names:
            raise root_stays(path)
        known = self.values.get(names)
        is_new = known is None and not self._is_folder(names)
        if is_new and not self._is_folder(names[:-1]):
            fault = self._absent(names)
            if not make or fault.errno == errno.ENOTDIR:
                raise fault
        if self.guarded.folder(names) or (known and self.guarded.file(names[-1])):
            raise read_only(path, path)
        for name in names if make and is_new else ():
            check_name(name, path)
        return names

    def _below(self, names: Key, path: str) -> list[Key]:
        """The keys of a file and its parts, or all keys below a folder; raises VerbRefusal if one of them is read-only."""
        if not self._is_folder(names):
            self._opened(names)
            return [names, *self.values.keys(parts_of(names))]
        found = self.values.keys(names)
        for one in heads(found):
            if self.guarded.folder(one) or self.guarded.file(one[-1]):
                raise read_only(path, "/".join(one).rstrip(MARKER))
        return found

    def _keep(self, names: Key) -> None:
        """Keep a folder, even if it is empty."""
        if names:
            self.store.put((*self.values.prefix, *names, MARKER), b"", ANY)

    def _opened(self, names: Key) -> StoredFile:
        """The head of a file; raises OSError."""
        if found := self.values.get(names):
            return found
        raise os_error(errno.EISDIR) if self._is_folder(names) else self._absent(names)

    def _is_folder(self, names: Key) -> bool:
        return not names or bool(self.store.list(self.values.prefix + names, limit=1))

    def _entry(self, names: Key) -> FileEntry | None:
        """The entry of a file or folder; None if there is none."""
        path = "/".join(names) or "."
        if found := self.values.get(names):
            return entry(path, found.stamp)
        return FileEntry(path=path, kind="folder") if self._is_folder(names) else None

    def _walk(self, names: Key, *, hidden: bool) -> list[tuple[Key, FileEntry | None]]:
        """(names, entry) of all that a search of this folder sees; the entry is None if only the head of the file has it."""
        chain = [rules for count in range(len(names)) if (rules := self._rules(names[:count]))]
        if names and ignores(chain, "/".join(names), True):  # a folder named by the caller is walked even if ignored
            chain = []
        tree, found, todo = self.values.tree(names), list[tuple[Key, FileEntry | None]](), [(names, chain)]
        while todo:
            folder, chain = todo.pop()
            rules = self._rules(folder) if IGNORE in tree.get(folder, {}) else None
            chain = [*chain, rules] if rules else chain
            for name, known in tree.get(folder, {}).items():
                one, is_folder = (*folder, name), known is not None and known.kind == "folder"
                if not skips(chain, "/".join(one), is_folder, hidden=hidden):
                    found.append((one, known))
                    todo += [(one, chain)] if is_folder else []
        return found

    def _rules(self, folder: Key) -> IgnoreRules | None:
        found = self._content((*folder, IGNORE))
        return IgnoreRules(found[:MAX_RULE_BYTES], len("/".join(folder)) + bool(folder)) if found else None
