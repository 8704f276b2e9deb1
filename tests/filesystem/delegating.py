"""A filesystem of a user's own class: it has the verbs of the interface, and passes each on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.filesystem.protocol import (
    FileContent,
    FileEntry,
    FileFault,
    Filesystem,
    Listing,
    Matches,
    Replacement,
    WriteResult,
)


class DelegatingFiles:
    """The files of another filesystem, and nothing else of it."""

    def __init__(self, inner: Filesystem) -> None:
        self.inner = inner

    def ls(self, path: str = ".", most: int = 1000) -> Listing | FileFault:
        return self.inner.ls(path, most)

    def read(
        self, path: str, offset: int = 0, limit: int = 0, *, most: int = 16 * 1024 * 1024
    ) -> FileContent | FileFault:
        return self.inner.read(path, offset, limit, most=most)

    def write(self, path: str, data: bytes, *, create: bool = False, expect: str = "") -> WriteResult | FileFault:
        return self.inner.write(path, data, create=create, expect=expect)

    def edit(self, path: str, changes: Sequence[Replacement], expect: str = "") -> WriteResult | FileFault:
        return self.inner.edit(path, changes, expect)

    def grep(self, pattern: str, path: str = ".", **more: Any) -> Matches | FileFault:
        return self.inner.grep(pattern, path, **more)

    def glob(self, pattern: str, path: str = ".", most: int = 1000) -> Listing | FileFault:
        return self.inner.glob(pattern, path, most)

    def stat(self, path: str) -> FileEntry | FileFault:
        return self.inner.stat(path)

    def mkdir(self, path: str) -> WriteResult | FileFault:
        return self.inner.mkdir(path)

    def delete(self, path: str) -> WriteResult | FileFault:
        return self.inner.delete(path)

    def move(self, path: str, target: str) -> WriteResult | FileFault:
        return self.inner.move(path, target)

    def resolve(self, path: str, *, follow: bool = True) -> str | FileFault:
        return self.inner.resolve(path, follow=follow)
