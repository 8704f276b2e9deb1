"""A local shell as a workspace of pydantic-ai: their paths are absolute, and faults are exceptions."""

from __future__ import annotations

import os
import shlex
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from anyio import to_thread
from pydantic_ai import workspaces as theirs

from harness.filesystem import transfer
from harness.filesystem._remote_shell import RemoteShell
from harness.filesystem.protocol import FileFault
from harness.filesystem.shell import LocalShell

MOST_BYTES = 1 << 40  # of a command's output: all of it
ERRORS: dict[str, type[Exception]] = {"missing": FileNotFoundError, "exists": FileExistsError, "invalid": ValueError}
ERRORS |= {"is_folder": IsADirectoryError, "not_folder": NotADirectoryError, "denied": PermissionError}
Result = TypeVar("Result")


@dataclass
class ShellWorkspace:
    """See WorkspaceBackend, SupportsCommands and SupportsFilesystem. The first operation makes a folder in `parent`, unless
    `ref` names one; `make` makes its shell."""

    parent: Path
    ref: theirs.WorkspaceRef | None = None
    make: Callable[[str], LocalShell | RemoteShell] = LocalShell

    def shell(self, path: str = "") -> LocalShell | RemoteShell:
        """The shell of the folder. Raises WorkspaceUnavailableError if that is gone, ValueError for a path beside it."""
        self.ref = self.ref or theirs.WorkspaceRef(provider="harness", id=tempfile.mkdtemp(dir=self.parent))
        if not os.path.isdir(self.ref.id):
            raise theirs.WorkspaceUnavailableError(f"{self.ref.id} is gone")
        if path and not f"{path}/".startswith(f"{self.ref.id}/"):
            raise ValueError(f"{path} is not in {self.ref.id}")
        return self.make(self.ref.id)

    async def working_dir(self) -> str:
        return self.shell().root

    async def run(self, command: theirs.WorkspaceCommand, *, shell: bool = False, env: Mapping[str, str] | None = None,
                  timeout: float | None = None) -> theirs.CommandResult:  # fmt: skip
        """Run a command; cancelling ends it."""
        text = command if isinstance(command, str) else shlex.join(command)
        if shell != (text is command):
            raise TypeError("a string needs shell=True, and a sequence shell=False")
        place, stop, seconds = self.shell(), threading.Event(), timeout or 1e6
        call = partial(place.execute, text, seconds=seconds, variables=env, most=MOST_BYTES, stop=stop.is_set)
        try:
            done = checked(await to_thread.run_sync(call, abandon_on_cancel=True))
        finally:
            stop.set()
        self.shell()
        if done.cause == "timeout":
            raise theirs.WorkspaceTimeoutError(f"the command took more than {seconds} seconds")
        status, out, err = done.exit, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        return theirs.CommandResult(exit_code=status if status >= 0 else 128 - status, stdout=out, stderr=err)

    async def read_bytes(self, path: str) -> bytes:
        return checked(transfer.whole(self.shell(path), path)).data

    async def write_bytes(self, path: str, data: bytes) -> None:
        checked(self.shell(path).write(path, data))

    async def stat(self, path: str) -> theirs.FileEntry:
        found = checked(self.shell(path).stat(path))
        return theirs.FileEntry(name=os.path.basename(path), path=path, is_dir=found.kind == "folder", size=found.size)

    async def list_dir(self, path: str) -> Sequence[theirs.FileEntry]:
        """The entries of a folder, behind their links; a link that leads nowhere is no folder."""
        places = [f"{path}/{os.path.basename(one.path)}" for one in checked(self.shell(path).ls(path)).entries]
        lost = partial(theirs.FileEntry, is_dir=False, size=None)
        return [
            await self.stat(at) if await self.exists(at) else lost(name=os.path.basename(at), path=at) for at in places
        ]

    async def make_dir(self, path: str) -> None:
        checked(self.shell(path).mkdir(path))

    async def remove(self, path: str) -> None:
        checked(self.shell(path).delete(path))

    async def exists(self, path: str) -> bool:
        return transfer.exists(self.shell(path), path)

    async def realpath(self, path: str) -> str:
        return os.path.join(self.shell().root, checked(self.shell(path).resolve(path))).removesuffix("/.")


def checked(result: Result | FileFault) -> Result:
    """A result that is no fault; raises a fault as the exception of its kind."""
    if isinstance(result, FileFault):
        raise ERRORS.get(result.kind, OSError)(result.text)
    return result
