"""A filesystem and a shell of a user's own classes: they have the verbs of the interfaces, and pass each on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from harness.filesystem.protocol import (
    CommandResult,
    FileContent,
    FileEntry,
    FileFault,
    Filesystem,
    Listing,
    Matches,
    Replacement,
    ShellJob,
    WriteResult,
)
from harness.filesystem.shell import LocalShell
from harness.process.confine import Confinement


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


class DelegatingShell(DelegatingFiles):
    """The files and the shell of a folder."""

    inner: LocalShell

    def id(self) -> str:
        return self.inner.id()

    def folder(self) -> str:
        return self.inner.folder()

    def confined(self, confinement: Confinement | None, environment: Mapping[str, str] | None, refusal: str) -> Self:
        return type(self)(self.inner.confined(confinement, environment, refusal))

    def execute(self, command: str, **more: Any) -> CommandResult | FileFault:
        return self.inner.execute(command, **more)

    def start(self, command: str, **more: Any) -> ShellJob | FileFault:
        return self.inner.start(command, **more)
