"""Functions over any Filesystem: whole files, many files, and whether a path exists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.base import encoding
from harness.filesystem.protocol import FileContent, FileFault, Filesystem, WriteResult

MAX_WHOLE_BYTES = 256 * 1024 * 1024  # bytes of a file that is read whole, or edited


def read_whole(filesystem: Filesystem, path: str) -> FileContent | FileFault:
    """The whole file, with its digest; fault `too_large` beyond MAX_WHOLE_BYTES."""
    found = filesystem.read(path, most=MAX_WHOLE_BYTES)
    if isinstance(found, FileFault):
        return found
    if not found.ends:
        return too_large(path)
    return found if found.digest else found.replace(digest=encoding.digest(found.data))


def too_large(path: str) -> FileFault:
    """The fault of a file that cannot be read whole."""
    text = f"{path} has more than {MAX_WHOLE_BYTES // 1024 // 1024} MB. Read a part, or use a command."
    return FileFault(kind="too_large", path=path, text=text)


def upload(filesystem: Filesystem, contents: Mapping[str, bytes]) -> dict[str, WriteResult | FileFault]:
    """Write many files in their order; each has its own result."""
    return {path: filesystem.write(path, data) for path, data in contents.items()}


def download(filesystem: Filesystem, paths: Sequence[str]) -> dict[str, bytes | FileFault]:
    """Read many files whole; each has its own result."""
    found = {path: read_whole(filesystem, path) for path in paths}
    return {path: one if isinstance(one, FileFault) else one.data for path, one in found.items()}


def exists(filesystem: Filesystem, path: str) -> bool:
    """Whether the path exists, links followed; False for one that leads out."""
    return not isinstance(filesystem.stat(path), FileFault)
