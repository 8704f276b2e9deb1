"""A workbench over a real folder, for tests of tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.builtin.tools import registry
from harness.builtin.tools.tool import ToolResult, ToolSession
from harness.filesystem.local import Local, Mount
from harness.filesystem.shell import LocalShell


class Bench:
    """A workbench at `tree`, and what a model does at it."""

    def __init__(self, folder: Path, shell: bool = True, **more: Any) -> None:
        self.tree, self.results = folder / "tree", folder / "kept"
        for made in (self.tree, self.results):
            made.mkdir(exist_ok=True)
        kind = LocalShell if shell else Local
        also = {"results": Mount(path=str(self.results), mode="write")}
        self.own = ToolSession(kind(str(self.tree), also=also), results="results", **more)

    def write(self, name: str, data: bytes | str) -> Path:
        """A file that is there already."""
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    def call(self, name: str, /, **given: Any) -> ToolResult:
        """A call by the model."""
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
