"""A local shell as a sandbox of langchain's deepagents: their paths are absolute, ours count from the root."""

from __future__ import annotations

import base64

from deepagents.backends import protocol as theirs

from harness.filesystem.protocol import FileContent, FileFault, Listing, Replacement
from harness.filesystem.shell import LocalShell

MAX_OUTPUT_BYTES = 16 * 1024 * 1024
MAX_PREVIEW_BYTES = 512_000  # of a file that is no text
PHRASES = {"missing": "not found", "not_found": "not found", "exists": "already exists", "not_unique": "multiple"}
CODES = {"missing": "file_not_found", "is_folder": "is_directory", "denied": "permission_denied"}


class Sandbox(theirs.SandboxBackendProtocol):
    """See SandboxBackendProtocol, whose asynchronous methods run these in threads."""

    def __init__(self, shell: LocalShell) -> None:
        self.shell, self.root = shell, f"{shell.root}/"

    def ls(self, path: str) -> theirs.LsResult:
        """The entries of a folder."""
        found = self.shell.ls(path)
        return theirs.LsResult(_text(found), self._infos(found, ""))

    def _infos(self, found: Listing | FileFault, start: str) -> list[theirs.FileInfo]:
        """The entries by their absolute paths, or by those from the folder `start`."""
        entries = [] if isinstance(found, FileFault) else found.entries
        paths = [((self.root + one.path).removeprefix(start), one.kind == "folder") for one in entries]
        return [theirs.FileInfo(path=path, is_dir=is_dir) for path, is_dir in paths]

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> theirs.ReadResult:
        """Lines of a text, or a whole small file as base64."""
        found = self.shell.read(file_path, max(0, offset), max(1, limit))
        if isinstance(found, FileFault):
            return theirs.ReadResult(error=_text(found))
        try:
            content, encoding = found.data.decode() if limit > 0 else "", "utf-8"
        except UnicodeDecodeError:
            if found.size > MAX_PREVIEW_BYTES:
                text = f"Binary file exceeds maximum preview size of {MAX_PREVIEW_BYTES} bytes"
                return theirs.ReadResult(error=f"File '{file_path}': {text}")
            whole = self.download_files([file_path])[0].content or b""
            content, encoding = base64.b64encode(whole).decode(), "base64"
        content = content if found.ends else content.removesuffix("\n")
        return theirs.ReadResult(file_data=theirs.FileData(content=content, encoding=encoding))

    def write(self, file_path: str, content: str) -> theirs.WriteResult:
        """A new file."""
        return theirs.WriteResult(_text(self.shell.write(file_path, content.encode(), create=True)), file_path)

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> theirs.EditResult:
        """Replace a text."""
        change = Replacement(old=old_string.encode(), new=new_string.encode(), everywhere=replace_all)
        done = self.shell.edit(file_path, [change])
        return theirs.EditResult(_text(done), file_path, None if isinstance(done, FileFault) else done.count)

    def glob(self, pattern: str, path: str | None = None) -> theirs.GlobResult:
        """Files and folders that match, by their paths from the folder of the search."""
        found = self.shell.glob(f"{{{pattern},{pattern}/}}", path or ".")
        return theirs.GlobResult(_text(found), self._infos(found, f"{path}/" if path else self.root))

    def grep(self, pattern: str, path: str | None = None, glob: str | None = None) -> theirs.GrepResult:
        """Lines that contain a text."""
        found = self.shell.grep(pattern, path or ".", glob=glob or "", literal=True, hidden=True)
        lines = [] if isinstance(found, FileFault) else found.matches
        matches = [theirs.GrepMatch(path=self.root + one.path, line=one.line, text=one.text.decode()) for one in lines]
        return theirs.GrepResult(_text(found), matches)

    def execute(self, command: str, *, timeout: int | None = None) -> theirs.ExecuteResponse:
        """Run a command."""
        done = self.shell.execute(command, seconds=timeout or 120, most=MAX_OUTPUT_BYTES)
        if isinstance(done, FileFault):
            return theirs.ExecuteResponse(done.text, exit_code=1)
        return theirs.ExecuteResponse(done.output.decode(errors="replace"), done.exit, done.lost > 0)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[theirs.FileUploadResponse]:
        """Write many files, over those that are there."""
        done = {path: self.shell.write(path, data) for path, data in files if path.startswith("/")}
        return [theirs.FileUploadResponse(path, _code(done.get(path))) for path, _ in files]

    def download_files(self, paths: list[str]) -> list[theirs.FileDownloadResponse]:
        """Read many files."""
        found = {path: self.shell.read(path) for path in paths if path.startswith("/")}
        data = {path: one.data for path, one in found.items() if isinstance(one, FileContent)}
        return [theirs.FileDownloadResponse(path, data.get(path), _code(found.get(path))) for path in paths]


def _text(result: object) -> str | None:
    return f"{PHRASES.get(result.kind, result.kind)}: {result.text}" if isinstance(result, FileFault) else None


def _code(result: object) -> str | None:
    """Their word for a fault, and for a path that is not absolute, which has no result."""
    if isinstance(result, FileFault):
        return CODES.get(result.kind, "invalid_path")
    return None if result else "invalid_path"
