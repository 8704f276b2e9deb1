"""A workbench over real files of each kind, for tests of tools."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol, Self

import pytest

from harness.builtin.tools import registry
from harness.builtin.tools.tool import ToolResult, ToolSession
from harness.filesystem import transfer
from harness.filesystem._remote_shell import RemoteShell
from harness.filesystem.composite import Composite
from harness.filesystem.keyvalue import KeyValueFiles
from harness.filesystem.layered import Layered
from harness.filesystem.local import Local, Mount
from harness.filesystem.protocol import FileContent, FileFault, Filesystem, Listing, Shell
from harness.filesystem.sandbox import WORKSPACE
from harness.filesystem.shell import LocalShell
from harness.stores.memory import MemoryStore
from tests.filesystem.delegating import DelegatingFiles, DelegatingShell
from tests.filesystem.places import behind, in_sandbox

SHELL, DELEGATING, MEMORY, LAYERS, REMOTE, SANDBOX = "shell", "delegating", "memory", "layers", "remote", "sandbox"
KINDS = (SHELL, DELEGATING, MEMORY, LAYERS, REMOTE, SANDBOX)
STORED, ELSEWHERE = (MEMORY, LAYERS), (REMOTE, SANDBOX)
"""A folder with a shell; the same behind a class that only passes the verbs on; files in memory, which have no shell; mounts of
such files, some above a folder; a shell in another process, and in a sandbox."""

NO_SHELL = "these files have no shell"
NO_DISK = "links, modes and times are those of a disk, and these files are in memory"


class TreePath(Protocol):
    """What tests need of a path, on the disk or in memory."""

    @property
    def name(self) -> str: ...
    def __truediv__(self, name: str) -> TreePath: ...
    def __fspath__(self) -> str: ...
    def exists(self) -> bool: ...
    def iterdir(self) -> Iterator[TreePath]: ...
    def mkdir(self) -> None: ...
    def chmod(self, mode: int) -> None: ...
    def stat(self) -> Any: ...
    def rename(self, target: Any) -> Any: ...
    def read_bytes(self) -> bytes: ...
    def read_text(self) -> str: ...
    def write_bytes(self, data: bytes) -> Any: ...
    def write_text(self, data: str) -> Any: ...


class StoredPath:
    """A path of files that are no part of a disk: tests that need one are skipped."""

    def __init__(self, files: Filesystem, path: str) -> None:
        self.files, self.path = files, path

    @property
    def name(self) -> str:
        return posixpath.basename(self.path)

    def __truediv__(self, name: str) -> StoredPath:
        return StoredPath(self.files, posixpath.join(self.path, name))

    def __str__(self) -> str:
        return self.path

    def __fspath__(self) -> str:
        pytest.skip(reason=NO_DISK)

    def chmod(self, mode: int) -> None:
        pytest.skip(reason=NO_DISK)

    def stat(self) -> Any:
        pytest.skip(reason=NO_DISK)

    def exists(self) -> bool:
        return transfer.exists(self.files, self.path or "/")

    def iterdir(self) -> Iterator[StoredPath]:
        found = self.files.ls(self.path or "/")
        assert isinstance(found, Listing), found
        return iter([StoredPath(self.files, f"/{one.path}") for one in found.entries])

    def mkdir(self) -> None:
        assert not isinstance(self.files.mkdir(self.path), FileFault)

    def rename(self, target: StoredPath) -> None:
        assert not isinstance(self.files.move(self.path, target.path), FileFault)

    def read_bytes(self) -> bytes:
        found = transfer.read_whole(self.files, self.path)
        assert isinstance(found, FileContent), found
        return found.data

    def read_text(self) -> str:
        return self.read_bytes().decode()

    def write_bytes(self, data: bytes) -> None:
        assert not isinstance(self.files.write(self.path, data), FileFault)

    def write_text(self, data: str) -> None:
        self.write_bytes(data.encode())


class Bench:
    """A workbench at `tree`, and what a model does at it. `kind`: one of KINDS; `files`: those of another bench."""

    tree: TreePath
    results: TreePath

    def __init__(
        self, folder: Path, shell: bool = True, kind: str = SHELL, files: Filesystem | None = None, **more: Any
    ) -> None:
        self.folder, self.kind = folder, kind
        self.files = files or self._made(folder, shell)
        self.tree, self.results = folder / "tree", folder / "kept"
        if kind in STORED:
            self.tree, self.results = StoredPath(self.files, ""), StoredPath(self.files, "/results")
        self.own = ToolSession(self.files, results="results", **more)

    def _made(self, folder: Path, shell: bool) -> Filesystem:
        if self.kind == MEMORY:
            made = KeyValueFiles(MemoryStore())
            made.mkdir("results")
            return made
        if self.kind == LAYERS:
            (folder / "template").mkdir()
            upper = KeyValueFiles(MemoryStore())
            layers = Layered(upper, Local(str(folder / "template")))
            return Composite(layers, {"results/": KeyValueFiles(MemoryStore())})
        for name in ("tree", "kept"):
            (folder / name).mkdir(exist_ok=True)
        if self.kind in ELSEWHERE:
            places = {name: RemoteShell(behind("env"), str(folder / name)) for name in ("tree", "kept")}
            if self.kind == SANDBOX:
                places = {name: in_sandbox(folder, name) for name in places}
            return Composite(places["tree"], {"results/": places["kept"]})
        also = {"results": Mount(path=str(folder / "kept"), mode="write")}
        found = (LocalShell if shell else Local)(str(folder / "tree"), also=also)
        if self.kind == DELEGATING:
            return DelegatingShell(found) if isinstance(found, LocalShell) else DelegatingFiles(found)
        return found

    def absolute(self, path: str) -> str:
        """An absolute path of the tree, as commands print it."""
        found = str(self.tree / path)
        return found.replace(str(self.folder.parent), WORKSPACE) if self.kind == SANDBOX else found

    def again(self) -> Self:
        """Another workbench over the same files, as of a later conversation."""
        return type(self)(self.folder, kind=self.kind, files=self.files)

    def write(self, name: str, data: bytes | str) -> TreePath:
        """A file that is there already."""
        path = self.tree / name
        if isinstance(path, Path):
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    def call(self, name: str, /, **given: Any) -> ToolResult:
        """A call by the model; a test that needs commands is skipped where there are none."""
        if name == "execute" and self.kind in STORED:
            assert not isinstance(self.files, Shell)
            pytest.skip(reason=NO_SHELL)
        return registry.call(self.own, name, given)

    def said(self, name: str, /, **given: Any) -> str:
        """The text of a call that was carried out."""
        found = self.call(name, **given)
        assert not found.failed, found.text
        return found.text

    def refused(self, name: str, /, **given: Any) -> str:
        """The text of a call that failed."""
        found = self.call(name, **given)
        assert found.failed, found.text
        return found.text

    def rows(self, name: str, /, **given: Any) -> list[str]:
        """The texts of the numbered lines of a call, without the numbers."""
        return [row.split("\t", 1)[1] for row in self.said(name, **given).split("\n") if row[:6].strip().isdigit()]
