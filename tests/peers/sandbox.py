"""A local shell as a sandbox of langchain's deepagents: their paths are absolute, ours count from the root."""

from __future__ import annotations

import base64
import os

from deepagents.backends import protocol as theirs

from harness.filesystem.protocol import FileEntry, FileFault, Replacement
from harness.filesystem.shell import LocalShell

MAX_OUTPUT_BYTES = 16 * 1024 * 1024
MAX_PREVIEW_BYTES = 512_000  # of a file that is no text
PHRASES = {"missing": "not found", "exists": "already exists", "not_found": "not found", "not_unique": "multiple matches"}
CODES = {"missing": "file_not_found", "is_folder": "is_directory", "denied": "permission_denied"}


class Sandbox(theirs.SandboxBackendProtocol):
    """See SandboxBackendProtocol, whose asynchronous methods run these in threads."""

    def __init__(self, shell: LocalShell) -> None:
        self.shell = shell

    @property
    def id(self) -> str:
        """Equal for sandboxes of one folder."""
        return self.shell.id()

    def ls(self, path: str) -> theirs.LsResult:
        """The entries of a folder."""
        found = self.shell.ls(path)
        if isinstance(found, FileFault):
            return theirs.LsResult(error=_text(found))
        return theirs.LsResult(entries=[_info(one, f"{self.shell.root}/{one.path}") for one in found.entries])

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> theirs.ReadResult:
        """Lines of a text, or a whole small file as base64."""
        found = self.shell.read(file_path, max(0, offset), max(1, limit))
        if isinstance(found, FileFault):
            return theirs.ReadResult(error=_text(found))
        try:
            text = found.data.decode() if limit > 0 else ""
        except UnicodeDecodeError:
            return self._preview(file_path, found.size)
        return _read(text if found.ends else text.removesuffix("\n"), "utf-8")

    def _preview(self, path: str, size: int) -> theirs.ReadResult:
        if size > MAX_PREVIEW_BYTES:
            text = f"File '{path}': Binary file exceeds maximum preview size of {MAX_PREVIEW_BYTES} bytes"
            return theirs.ReadResult(error=text)
        found = self._download(path)
        return _read(base64.b64encode(found.content or b"").decode(), "base64")

    def write(self, file_path: str, content: str) -> theirs.WriteResult:
        """A new file."""
        done = self.shell.write(file_path, content.encode(), create=True)
        return theirs.WriteResult(error=_text(done)) if isinstance(done, FileFault) else theirs.WriteResult(path=file_path)

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> theirs.EditResult:
        """Replace a text."""
        change = Replacement(old=old_string.encode(), new=new_string.encode(), everywhere=replace_all)
        done = self.shell.edit(file_path, [change])
        if isinstance(done, FileFault):
            return theirs.EditResult(error=_text(done))
        return theirs.EditResult(path=file_path, occurrences=done.count)

    def glob(self, pattern: str, path: str | None = None) -> theirs.GlobResult:
        """Files and folders that match, by their paths from the folder of the search."""
        start, entries = path or self.shell.root, dict[str, FileEntry]()
        for kind in (pattern, f"{pattern}/"):
            found = self.shell.glob(kind, start)
            if isinstance(found, FileFault):
                return theirs.GlobResult(error=_text(found))
            entries |= {os.path.relpath(f"{self.shell.root}/{one.path}", start): one for one in found.entries}
        return theirs.GlobResult(matches=[_info(entries[name], name) for name in entries])

    def grep(self, pattern: str, path: str | None = None, glob: str | None = None, *,
             max_count: int | None = None) -> theirs.GrepResult:  # fmt: skip
        """Lines that contain a text."""
        found = self.shell.grep(pattern, path or ".", glob=glob or "", literal=True, hidden=True, most=max_count or 10_000)
        if isinstance(found, FileFault):
            return theirs.GrepResult(error=_text(found))
        lines = [
            {"path": f"{self.shell.root}/{one.path}", "line": one.line, "text": one.text.decode(errors="replace")}
            for one in found.matches
        ]
        return theirs.GrepResult(matches=lines, truncated=found.more != 0)

    def execute(self, command: str, *, timeout: int | None = None) -> theirs.ExecuteResponse:
        """Run a command."""
        done = self.shell.execute(command, seconds=timeout or 120, most=MAX_OUTPUT_BYTES)
        if isinstance(done, FileFault):
            return theirs.ExecuteResponse(output=_text(done), exit_code=1)
        return theirs.ExecuteResponse(done.output.decode(errors="replace"), done.exit, done.lost > 0)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[theirs.FileUploadResponse]:
        """Write many files, over those that are there."""
        return [theirs.FileUploadResponse(path=path, error=self._upload(path, data)) for path, data in files]

    def _upload(self, path: str, data: bytes) -> str | None:
        if not path.startswith("/"):
            return "invalid_path"
        done = self.shell.write(path, data)
        return CODES.get(done.kind, "invalid_path") if isinstance(done, FileFault) else None

    def download_files(self, paths: list[str]) -> list[theirs.FileDownloadResponse]:
        """Read many files."""
        return [self._download(path) for path in paths]

    def _download(self, path: str) -> theirs.FileDownloadResponse:
        found = self.shell.read(path)
        if isinstance(found, FileFault) or not path.startswith("/"):
            code = CODES.get(found.kind, "invalid_path") if path.startswith("/") else "invalid_path"
            return theirs.FileDownloadResponse(path=path, error=code)
        return theirs.FileDownloadResponse(path=path, content=found.data)


def _read(content: str, encoding: str) -> theirs.ReadResult:
    return theirs.ReadResult(file_data=theirs.FileData(content=content, encoding=encoding))


def _info(found: FileEntry, path: str) -> theirs.FileInfo:
    return theirs.FileInfo(path=path, is_dir=found.kind == "folder", size=found.size)


def _text(fault: FileFault) -> str:
    return f"{PHRASES.get(fault.kind, fault.kind)}: {fault.text}"
