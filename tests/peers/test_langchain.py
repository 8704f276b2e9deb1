"""langchain-tests' suite for sandboxes, over a local shell."""

from __future__ import annotations

import os
import sys

import pytest

pytest.importorskip("deepagents", reason="it is in the extra for the peers' suites: make test-peers")
pytest.importorskip("langchain_tests", reason="it is in the extra for the peers' suites: make test-peers")

from langchain_tests.integration_tests.sandboxes import SandboxIntegrationTests

from harness.filesystem.shell import LocalShell
from tests.peers.sandbox import Sandbox


@pytest.mark.anyio
@pytest.mark.filterwarnings("ignore:Class-scoped fixtures")  # the suite has one
class TestSandbox(SandboxIntegrationTests):
    """Every case of the suite holds for LocalShell."""

    root = ""

    @pytest.fixture(scope="class")
    @classmethod
    def anyio_backend(cls) -> str:
        """What plays the asynchronous cases."""
        return "asyncio"

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def sandbox(cls, tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
        """A sandbox in an empty folder, with this Python as `python`."""
        cls.root = str(tmp_path_factory.mktemp("sandbox"))
        path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
        return Sandbox(LocalShell(cls.root, environment={**os.environ, "PATH": path}))

    @property
    def sandbox_root_dir(self) -> str:
        """The folder of the sandbox."""
        return self.root
