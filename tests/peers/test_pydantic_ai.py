"""pydantic-ai's suite for workspace backends, over files and shells of each kind."""

from __future__ import annotations

import os
import shutil
from collections.abc import Awaitable, Callable
from functools import cache, partial
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai", reason="the built-in agent's packages are not installed: make setup")

from pydantic_ai.workspaces import WorkspaceBackend, WorkspaceRef
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

from harness.filesystem._remote_shell import RemoteShell
from harness.filesystem.composite import Composite
from harness.filesystem.keyvalue import KeyValueFiles
from harness.filesystem.layered import Layered
from harness.filesystem.local import Local
from harness.filesystem.protocol import Filesystem
from harness.filesystem.shell import LocalShell
from harness.stores.memory import MemoryStore
from tests.crash import TORTURE
from tests.filesystem.places import behind, in_sandbox, ssh
from tests.peers.workspace import FileWorkspace, Make, ShellWorkspace

OTHERWISE = {
    "test_a_backend_attached_by_ref_reaches_a_detached_process": "no descendant of a command outlives it",
}
LONG = {  # it waits 30 s for a child that has ended with its command, and passes
    "test_background_child_does_not_hold_up_completed_command": "make test-peers plays it, with HARNESS_TORTURE=1",
}


def local(folder: str) -> tuple[Filesystem, str]:
    """A shell in the folder."""
    return LocalShell(folder), folder


def remote(folder: str) -> tuple[Filesystem, str]:
    """The same in another process."""
    return RemoteShell(behind("env"), folder), folder


def over_ssh(folder: str) -> tuple[Filesystem, str]:
    """The same behind an ssh server."""
    return RemoteShell(behind(*ssh()), folder), folder


def boxed(folder: str) -> tuple[Filesystem, str]:
    """The same in a sandbox, where the folder has another path."""
    below = os.path.relpath(folder, Path(folder).parent.parent)
    made = in_sandbox(Path(folder).parent, os.path.basename(folder))
    return made, f"/workspace/{below}"


@cache
def stored(folder: str) -> tuple[Filesystem, str]:
    """Values in memory."""
    return KeyValueFiles(MemoryStore()), folder


@cache
def layers(folder: str) -> tuple[Filesystem, str]:
    """Values above a folder."""
    return Layered(KeyValueFiles(MemoryStore()), Local(folder)), folder


@cache
def mounts(folder: str) -> tuple[Filesystem, str]:
    """A shell beside values."""
    return Composite(LocalShell(folder), {"kept/": KeyValueFiles(MemoryStore())}), folder


WITHOUT_COMMANDS: dict[str, Make] = {"values": stored, "layers": layers}
SHELLS: dict[str, Make] = {"local": local, "mounts": mounts, "remote": remote, "sandbox": boxed, "ssh": over_ssh}


@pytest.fixture(params=[*WITHOUT_COMMANDS, *SHELLS])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., FileWorkspace]:
    """A workspace of each kind, which makes its folder at its first operation."""
    if request.param in SHELLS:
        return partial(ShellWorkspace, tmp_path, SHELLS[request.param])
    return partial(FileWorkspace, tmp_path, WITHOUT_COMMANDS[request.param])


class TestWorkspace(WorkspaceBackendSuite):
    """Every rule of the suite holds, except OTHERWISE, and those of commands for what has none."""

    @pytest.fixture(autouse=True)
    def applies(self, request: pytest.FixtureRequest) -> None:
        """Skips the rules that our shells do not follow."""
        skipped = OTHERWISE if TORTURE else OTHERWISE | LONG
        if (name := request.function.__name__) in skipped:
            pytest.skip(reason=skipped[name])

    @pytest.fixture
    def anyio_backend(self) -> str:
        """What plays the cases."""
        return "asyncio"

    @pytest.fixture
    def backend(self, made: Callable[..., FileWorkspace]) -> FileWorkspace:
        """One of its own."""
        return made()

    @pytest.fixture
    def fresh_backend(self, made: Callable[..., FileWorkspace]) -> Callable[[], FileWorkspace]:
        """More of them."""
        return made

    @pytest.fixture
    def attach_backend(self, made: Callable[..., FileWorkspace]) -> Callable[[WorkspaceRef], FileWorkspace]:
        """One of a folder that is there."""
        return made

    @pytest.fixture
    def destroy_environment(self) -> Callable[[WorkspaceBackend], Awaitable[None]]:
        """Removes the folder."""

        async def remove(backend: WorkspaceBackend) -> None:
            shutil.rmtree(backend.ref.id if backend.ref else "")

        return remove
