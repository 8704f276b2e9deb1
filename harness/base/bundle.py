"""The compiled code of the modules that launches load, in one file beside the `.pyc` files.

Python finds, opens and checks each `.pyc` on its own: for a hundred modules that costs as much as a bare start. The bundle is a
cache like them: a module whose source changed since is loaded the usual way, and `keep` puts it in when the process ends.
"""

from __future__ import annotations

import marshal
import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import (
    MAGIC_NUMBER,
    PathFinder,
    SourceFileLoader,
)  # as in `importlib`, without loading that

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from types import CodeType, ModuleType

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PATH = f"{HOME}/__pycache__/bundle.{sys.implementation.cache_tag}"
COUNT_BYTES = 8
Row = tuple[
    str, bool, int, int, int, int
]  # path, is a package, mtime in ns and size of the source, start and end of the code


class _Loader(SourceFileLoader):
    """Loads a module from the bundle; all else is as for any source file."""

    code: memoryview

    def get_code(self, fullname: str) -> CodeType:
        made: CodeType = marshal.loads(self.code)
        return made


class Bundle:
    """A finder of modules for `sys.meta_path`: it knows those in the file."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.codes = memoryview(b"")
        self.is_held = self.is_old = False
        try:
            with open(PATH, "rb", buffering=0) as file:
                data = file.readall()
            end = COUNT_BYTES + int.from_bytes(data[:COUNT_BYTES], "big")
            magic, home, size, rows = marshal.loads(data[COUNT_BYTES:end])
            if (magic, home, size) == (MAGIC_NUMBER, HOME, len(data) - end):  # `home` differs in a copied folder
                self.rows, self.codes = rows, memoryview(data)[end:]
        except (OSError, EOFError, ValueError, TypeError):
            return  # absent, or torn: it is made again

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The spec of a module whose source is as it was when its code was put in; None for every other."""
        if not self._has(name):
            return None
        row = self.rows[name]
        loader = _Loader(name, row[0])
        loader.code = self.codes[row[4] : row[5]]
        spec = ModuleSpec(name, loader, origin=row[0], is_package=row[1])
        spec.has_location = True
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(os.path.dirname(row[0]))
        return spec

    def keep(self) -> None:
        """Put the modules of ours that were loaded the usual way into the file, where it can be written."""
        loaded = {name: module for name, module in list(sys.modules.items()) if name.startswith("harness.")}
        usual = {name: module for name, module in loaded.items() if type(module.__loader__) is SourceFileLoader}
        new = {name: module for name, module in usual.items() if not self._fits(name)}
        if not (new or self.is_old) or sys.dont_write_bytecode:
            return
        rows, codes = {}, bytearray()
        for name, row, code in [*self._others(new), *map(_compiled, new, new.values())]:
            rows[name] = (*row[:4], len(codes), len(codes) + len(code))
            codes += code
        index = marshal.dumps((MAGIC_NUMBER, HOME, len(codes), rows))
        _replace(len(index).to_bytes(COUNT_BYTES, "big") + index + codes)

    def hold(self, names: Collection[str]) -> bool:
        """As the function `hold`."""
        if not self.is_held:
            self.is_old = not all(map(self._fits, self.rows))
            self.is_held = not self.is_old and self.rows.keys() >= set(names)
        return self.is_held

    def _has(self, name: str) -> bool:
        """Whether the code of the module is in the file, and its source as it was then, or held."""
        return name in self.rows if self.is_held else self._fits(name)

    def _fits(self, name: str) -> bool:
        row = self.rows.get(name)
        return row is not None and _version(row[0]) == row[2:4]

    def _others(self, new: Collection[str]) -> list[tuple[str, Row, bytes]]:
        rows = [(name, row) for name, row in self.rows.items() if name not in new and self._fits(name)]
        return [(name, row, bytes(self.codes[row[4] : row[5]])) for name, row in rows]


def _compiled(name: str, module: ModuleType) -> tuple[str, Row, bytes]:
    path = str(module.__file__)
    version = _version(
        path
    )  # before the code is read: where the source changes meanwhile, the row is too old and not used
    code = marshal.dumps(module.__loader__.get_code(name))  # type: ignore[union-attr]  # a SourceFileLoader
    return name, (path, hasattr(module, "__path__"), *version, 0, 0), code


def _replace(data: bytes) -> None:
    """Replace the file. In a folder of somebody else, or on a full disk, it stays as it is: nothing needs it."""
    temporary = f"{PATH}.{os.getpid()}"
    try:
        with open(temporary, "wb") as file:
            file.write(data)
        os.replace(temporary, PATH)
    except OSError:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _version(path: str) -> tuple[int, int]:
    """(mtime in nanoseconds, size) of a source; (0, 0) where it is gone."""
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


class _LateSite:
    """The last finder of `sys.meta_path` in a process started with `-S`: installed packages are looked for once one is needed.
    To read their folder, with its `.pth` files, costs a quarter of a bare start."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The spec of an installed module that nothing else has found; None for every other."""
        sys.meta_path.remove(self)
        import site

        site.main()
        return PathFinder.find_spec(name) if path is None else None


_used: list[Bundle] = []


def use() -> None:
    """From here on modules come from the bundle where it has them, and installed ones on first use."""
    if not _used:
        _used.append(Bundle())
        sys.meta_path.insert(0, _used[0])
        if sys.flags.no_site:
            sys.meta_path.append(_LateSite())


def hold(names: Collection[str]) -> bool:
    """From here on a module is loaded as its source is now, whatever becomes of that: for a process in whose life the harness may
    be updated. False, and nothing is held, where the file lacks one of these modules, or has one that was changed since."""
    return any(one.hold(names) for one in _used)


def keep() -> None:
    """What `use` could not serve goes into the bundle, for the next process."""
    for one in _used:
        one.keep()
