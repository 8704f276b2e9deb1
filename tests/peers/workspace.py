"""Files and shells as workspaces of pydantic-ai: their paths are absolute, and faults are exceptions."""

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
from harness.filesystem.protocol import FileFault, Filesystem, Shell

MOST_BYTES = 1 << 40  # of a command's output: all of it
ERRORS: dict[str, type[Exception]] = {"missing": FileNotFoundError, "exists": FileExistsError, "invalid": ValueError}
ERRORS |= {"is_folder": IsADirectoryError, "not_folder": NotADirectoryError, "denied": PermissionError}
Result = TypeVar("Result")
Make = Callable[[str], tuple[Filesystem, str]]


@dataclass
class FileWorkspace:
    """See WorkspaceBackend and SupportsFilesystem. The first operation makes a folder in `parent`, unless `ref` names one;
    `make` makes its files, and says which absolute path is their root."""

    parent: Path
    make: Make
    ref: theirs.WorkspaceRef | None = None

    def opened(self) -> tuple[Filesystem, str]:
        """(the files, their root). Raises WorkspaceUnavailableError if the folder is gone."""
        self.ref = self.ref or theirs.WorkspaceRef(provider="harness", id=tempfile.mkdtemp(dir=self.parent))
        if not os.path.isdir(self.ref.id):
            raise theirs.WorkspaceUnavailableError(f"{self.ref.id} is gone")
        return self.make(self.ref.id)

    def at(self, path: str) -> tuple[Filesystem, str]:
        """(the files, a path from their root). Raises ValueError for a path beside it."""
        files, root = self.opened()
        if not f"{path}/".startswith(f"{root}/"):
            raise ValueError(f"{path} is not in {root}")
        return files, path[len(root) + 1 :] or "."

    async def working_dir(self) -> str:
        return self.opened()[1]

    async def read_bytes(self, path: str) -> bytes:
        return checked(transfer.read_whole(*self.at(path))).data

    async def write_bytes(self, path: str, data: bytes) -> None:
        files, place = self.at(path)
        checked(files.write(place, data))

    async def stat(self, path: str) -> theirs.FileEntry:
        files, place = self.at(path)
        found = checked(files.stat(place))
        return theirs.FileEntry(name=os.path.basename(path), path=path, is_dir=found.kind == "folder", size=found.size)

    async def list_dir(self, path: str) -> Sequence[theirs.FileEntry]:
        """The entries of a folder, behind their links; a link that leads nowhere is no folder."""
        files, place = self.at(path)
        places = [f"{path}/{os.path.basename(one.path)}" for one in checked(files.ls(place)).entries]
        lost = partial(theirs.FileEntry, is_dir=False, size=None)
        return [
            await self.stat(at) if await self.exists(at) else lost(name=os.path.basename(at), path=at) for at in places
        ]

    async def make_dir(self, path: str) -> None:
        files, place = self.at(path)
        checked(files.mkdir(place))

    async def remove(self, path: str) -> None:
        files, place = self.at(path)
        checked(files.delete(place))

    async def exists(self, path: str) -> bool:
        return transfer.exists(*self.at(path))

    async def realpath(self, path: str) -> str:
        files, place = self.at(path)
        return os.path.join(self.opened()[1], checked(files.resolve(place))).removesuffix("/.")


class ShellWorkspace(FileWorkspace):
    """See SupportsCommands, too; `make` makes a Shell."""

    async def run(self, command: theirs.WorkspaceCommand, *, shell: bool = False, env: Mapping[str, str] | None = None,
                  timeout: float | None = None) -> theirs.CommandResult:  # fmt: skip
        """Run a command; cancelling ends it."""
        text = command if isinstance(command, str) else shlex.join(command)
        if shell != (text is command):
            raise TypeError("a string needs shell=True, and a sequence shell=False")
        place, stop, seconds = self.opened()[0], threading.Event(), timeout or 1e6
        assert isinstance(place, Shell)
        call = partial(place.execute, text, seconds=seconds, variables=env, most=MOST_BYTES, stop=stop.is_set)
        try:
            done = checked(await to_thread.run_sync(call, abandon_on_cancel=True))
        finally:
            stop.set()
        self.opened()
        if done.cause == "timeout":
            raise theirs.WorkspaceTimeoutError(f"the command took more than {seconds} seconds")
        status, out, err = done.exit, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        return theirs.CommandResult(exit_code=status if status >= 0 else 128 - status, stdout=out, stderr=err)


def checked(result: Result | FileFault) -> Result:
    """A result that is no fault; raises a fault as the exception of its kind."""
    if isinstance(result, FileFault):
        raise ERRORS.get(result.kind, OSError)(result.text)
    return result
