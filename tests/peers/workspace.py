"""A local shell as a workspace of pydantic-ai: their paths are absolute, and faults are exceptions."""

from __future__ import annotations

import os
import posixpath
import shlex
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from anyio import to_thread
from pydantic_ai import workspaces as theirs

from harness.filesystem.protocol import FileFault
from harness.filesystem.shell import LocalShell

MAX_OUTPUT_BYTES = 16 * 1024 * 1024
FOREVER_SECONDS = 24 * 3600.0
ERRORS: dict[str, type[Exception]] = {
    "missing": FileNotFoundError,
    "exists": FileExistsError,
    "is_folder": IsADirectoryError,
    "not_folder": NotADirectoryError,
    "denied": PermissionError,
    "invalid": ValueError,
    "outside": ValueError,
}
Result = TypeVar("Result")


class ShellWorkspace:
    """See WorkspaceBackend. The first operation makes a folder in `parent`, unless `ref` names one."""

    def __init__(self, parent: Path, ref: theirs.WorkspaceRef | None = None) -> None:
        self.parent, self.ref, self.lock = parent, ref, threading.Lock()

    def shell(self) -> LocalShell:
        """The shell of the folder. Raises WorkspaceUnavailableError if the folder is gone."""
        with self.lock:
            self.ref = self.ref or theirs.WorkspaceRef(provider="harness", id=tempfile.mkdtemp(dir=self.parent))
        if not os.path.isdir(self.ref.id):
            raise theirs.WorkspaceUnavailableError(f"{self.ref.id} is gone")
        return LocalShell(self.ref.id)

    def at(self, path: str) -> tuple[LocalShell, str]:
        """The shell, and the path from its root. Raises ValueError for a path above or beside it."""
        shell = self.shell()
        if not f"{path}/".startswith(f"{shell.root}/"):
            raise ValueError(f"{path} is not in {shell.root}")
        return shell, path[len(shell.root) :].lstrip("/") or "."

    async def working_dir(self) -> str:
        """The folder."""
        return self.shell().root

    async def run(self, command: theirs.WorkspaceCommand, *, shell: bool = False, env: Mapping[str, str] | None = None,
                  timeout: float | None = None) -> theirs.CommandResult:  # fmt: skip
        """Run a command; cancelling ends it."""
        if shell != isinstance(command, str):
            raise TypeError("a string needs shell=True, and a sequence shell=False")
        text = command if isinstance(command, str) else shlex.join(command)
        errors = Path(tempfile.mkstemp(dir=self.parent)[1])
        text = f"exec 2> {errors}\n{text}"
        stop, seconds = threading.Event(), timeout or FOREVER_SECONDS
        call = partial(
            self.shell().execute, text, seconds=seconds, variables=env, most=MAX_OUTPUT_BYTES, stop=stop.is_set
        )
        try:
            done = checked(await to_thread.run_sync(call, abandon_on_cancel=True))
        finally:
            stop.set()
        self.shell()
        if done.cause == "timeout":
            raise theirs.WorkspaceTimeoutError(f"the command took more than {seconds} seconds")
        streams = [one.decode(errors="replace") for one in (done.output, errors.read_bytes())]
        return theirs.CommandResult(
            exit_code=done.exit if done.exit >= 0 else 128 - done.exit, stdout=streams[0], stderr=streams[1]
        )

    async def read_bytes(self, path: str) -> bytes:
        """All bytes of a file."""
        shell, name = self.at(path)
        return checked(shell.read(name)).data

    async def write_bytes(self, path: str, data: bytes) -> None:
        """Replace or create a file."""
        shell, name = self.at(path)
        checked(shell.write(name, data))

    async def stat(self, path: str) -> theirs.FileEntry:
        """A file or folder, behind its links."""
        shell, name = self.at(path)
        real = checked(shell.resolve(name))
        found = checked(shell.ls(posixpath.dirname(real) or "."))
        for one in found.entries:
            if one.path == real:
                is_dir = one.kind == "folder"
                return theirs.FileEntry(
                    name=posixpath.basename(path), path=path, is_dir=is_dir, size=None if is_dir else one.size
                )
        raise FileNotFoundError(path)

    async def list_dir(self, path: str) -> Sequence[theirs.FileEntry]:
        """The entries of a folder; a link without a target is no folder."""
        shell, name = self.at(path)
        found = []
        for one in checked(shell.ls(name)).entries:
            whole = f"{shell.root}/{one.path}"
            try:
                found.append(await self.stat(whole))
            except OSError:
                found.append(theirs.FileEntry(name=posixpath.basename(whole), path=whole, is_dir=False, size=None))
        return found

    async def make_dir(self, path: str) -> None:
        """Create a folder, and those above it."""
        shell, name = self.at(path)
        Path(shell.root, name).mkdir(parents=True, exist_ok=True)

    async def remove(self, path: str) -> None:
        """Delete a file, or a folder with its content."""
        shell, name = self.at(path)
        checked(shell.delete(name))

    async def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        shell, name = self.at(path)
        return shell.exists(name)

    async def realpath(self, path: str) -> str:
        """The path without links."""
        shell, name = self.at(path)
        return posixpath.normpath(f"{shell.root}/{checked(shell.resolve(name))}")


def checked(result: Result | FileFault) -> Result:
    """A result that is no fault; raises a fault as the exception of its kind."""
    if isinstance(result, FileFault):
        raise ERRORS.get(result.kind, OSError)(result.text)
    return result
