"""Servers of a tools.json in tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from harness.builtin.mcp.exposed_tools import ExposedTools
from harness.builtin.mcp.server_pool import ServerPlace
from harness.builtin.tools.tool import ToolResult, ToolSession
from harness.filesystem.local import Local
from harness.process.confine import Confinement
from harness.workspace.tools import McpServer

BENCH = ToolSession(Local("/"))
SERVED = str(Path(__file__).with_name("program.py"))


def ours(name: str = "own", **more: Any) -> McpServer:
    """The server of the tests as a program."""
    return McpServer(
        **{"name": name, "transport": "stdio", "command": sys.executable, "args": ["-S", "-E", SERVED], **more}
    )


def where(folder: Path, variables: dict[str, str] | None = None, confinement: Confinement | None = None) -> ServerPlace:
    """Where servers run."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return ServerPlace(
        user="", folder=str(folder), environment=environment, variables=variables or {}, confinement=confinement
    )


def called(offer: ExposedTools, name: str, /, **given: Any) -> ToolResult:
    """A call of one of the tools."""
    tool = next(one for one in offer.tools if one.name == name)
    return tool.run(BENCH, given)
