"""pydantic-ai's suite for workspace backends, over a local shell."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai", reason="the built-in agent's packages are not installed: make setup")

from pydantic_ai.workspaces import WorkspaceBackend, WorkspaceRef
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

from harness.filesystem._remote_shell import RemoteShell
from harness.filesystem.shell import LocalShell
from tests.crash import TORTURE
from tests.filesystem.places import behind
from tests.peers.workspace import ShellWorkspace

OTHERWISE = {
    "test_a_backend_attached_by_ref_reaches_a_detached_process": "no descendant of a command outlives it",
}
LONG = {  # it waits 30 s for a child that has ended with its command, and passes
    "test_background_child_does_not_hold_up_completed_command": "make test-peers plays it, with HARNESS_TORTURE=1",
}


class TestWorkspace(WorkspaceBackendSuite):
    """Every rule of the suite, except OTHERWISE, holds for LocalShell."""

    make: Callable[[str], LocalShell | RemoteShell] = LocalShell

    @pytest.fixture(autouse=True)
    def applies(self, request: pytest.FixtureRequest) -> None:
        """Skips the rules that our shells do not follow."""
        skipped = OTHERWISE if TORTURE else OTHERWISE | LONG
        if request.node.name in skipped:
            pytest.skip(reason=skipped[request.node.name])

    @pytest.fixture
    def anyio_backend(self) -> str:
        """What plays the cases."""
        return "asyncio"

    @pytest.fixture
    def backend(self, tmp_path: Path) -> ShellWorkspace:
        """A workspace that makes its folder at its first operation."""
        return ShellWorkspace(tmp_path, make=self.make)

    @pytest.fixture
    def fresh_backend(self, tmp_path: Path) -> Callable[[], ShellWorkspace]:
        """More of them."""
        return lambda: ShellWorkspace(tmp_path, make=self.make)

    @pytest.fixture
    def attach_backend(self, tmp_path: Path) -> Callable[[WorkspaceRef], ShellWorkspace]:
        """One of a folder that is there."""
        return lambda ref: ShellWorkspace(tmp_path, ref, self.make)

    @pytest.fixture
    def destroy_environment(self) -> Callable[[WorkspaceBackend], Awaitable[None]]:
        """Removes the folder."""

        async def remove(backend: WorkspaceBackend) -> None:
            shutil.rmtree(backend.ref.id if backend.ref else "")

        return remove


class TestRemoteWorkspace(TestWorkspace):
    """They hold for RemoteShell, too."""

    make = staticmethod(lambda folder: RemoteShell(behind("env"), folder))
