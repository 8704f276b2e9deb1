"""The changes of the file tools in the newest turn of `ask`, for /diff and /undo. Changes by commands are not included."""

from __future__ import annotations

import os
from typing import Any

from harness.builtin.hooks import Hooks
from harness.builtin.tools.text_diff import diff
from harness.builtin.tools.tool import ToolResult
from harness.state import files

FOLLOWED = ("write_file", "edit_file")


class TurnChanges:
    """The files of a folder that the newest turn changed: {path: (bytes before it, bytes that it left)}, None for no file."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.realpath(folder)
        self.files: dict[str, tuple[bytes | None, bytes | None]] = {}

    @property
    def hooks(self) -> Hooks:
        """The hooks that record the changes of an agent."""
        return Hooks(before_tool=self._before, after_tool=self._after)

    def begin(self) -> None:
        """A new turn."""
        self.files.clear()

    def diff(self) -> str:
        """All changes as a diff."""
        return "\n".join(filter(None, (diff(path, *both) for path, both in self.files.items())))

    def undo(self) -> list[str]:
        """Restore each file that is as the turn left it; returns a line for each file."""
        lines = []
        for path, (before, after) in self.files.items():
            if before == after:
                continue
            if files.read(self._path(path)) != after:
                lines.append(f"{path} has changed since and is left as it is.")
            elif before is None:
                files.remove(self._path(path))
                lines.append(f"{path} is removed again.")
            else:
                files.replace(self._path(path), before, os.stat(self._path(path)).st_mode & 0o777)
                lines.append(f"{path} is as it was.")
        self.files.clear()
        return lines

    def _path(self, path: str) -> str:
        return os.path.realpath(os.path.join(self.folder, path))

    def _before(self, name: str, arguments: dict[str, Any]) -> str | None:
        path = str(arguments.get("path", ""))
        if name in FOLLOWED and self._path(path).startswith(self.folder + "/") and path not in self.files:
            data = files.read(self._path(path))
            self.files[path] = (data, data)
        return None

    def _after(self, name: str, arguments: dict[str, Any], result: ToolResult) -> None:
        path = str(arguments.get("path", ""))
        if name in FOLLOWED and path in self.files:
            self.files[path] = (self.files[path][0], files.read(self._path(path)))
