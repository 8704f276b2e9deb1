"""The interface of every filesystem that an agent's tools use: eleven verbs, values with bytes, faults as typed results.

A path is a string with `/` between its names, relative to the root of the filesystem; a leading `/` means the root, too, and `.`
is the root. No verb raises for what a model can mend: it returns a Fault. What raises is a fault of ours or of the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from harness.base.record import Record

FAULTS = {
    "missing": "there is no such file or folder",
    "exists": "it is there already",
    "is_folder": "it is a folder",
    "not_folder": "a part of the path is not a folder",
    "not_regular": "it is a pipe, a socket or a device",
    "outside": "the path leads out of the root",
    "invalid": "the path or an argument is not valid",
    "read_only": "it may be read only",
    "denied": "the system does not permit it",
    "not_found": "the text to replace is not in the file",
    "not_unique": "the text to replace is there several times",
    "changed": "the file is not what it was when it was read",
    "too_large": "it is larger than the limit",
    "no_space": "there is no space left",
    "bad_pattern": "the pattern is not valid",
    "busy": "another program holds a lock on it",
    "timeout": "it took longer than its limit",
}
"""Every kind of fault, and its meaning in a few words; a Fault's `text` says it in one whole sentence with the remedy."""


class FileFault(Record):
    """A verb that could not be carried out. `kind`: a key of FAULTS; `path`: as it was asked for; `text`: one or two sentences
    to the model, with what to do."""

    kind: str
    path: str
    text: str


class FileEntry(Record):
    """A file or folder of a listing. `path`: relative to the root, without a leading `/`; `kind`: file, folder, link or other;
    `size` in bytes (0 for a folder); `changed`: unix seconds."""

    path: str
    kind: str
    size: int = 0
    changed: float = 0.0


class Listing(Record):
    """The entries of a folder, sorted by name, or the files that a glob found, newest first. `more`: how many were left out by
    the limit; -1: some, not counted."""

    entries: list[FileEntry] = []
    more: int = 0


class FileContent(Record):
    """A part of a file. `data`: its bytes, whole lines unless `cut`; `first`: the 1-based number of its first line;
    `lines`: how many lines `data` has; `total_lines`: -1 where it was not counted; `size`: of the whole file in bytes;
    `digest`: of the whole file, "" where only a part was read and counting it would cost a read of the whole; `version`: of
    the whole file, another one after every change, "" where nobody can say;
    `ends`: whether the last line of the file is in it; `cut`: the last line of `data` goes on, it is longer than the limit."""

    data: bytes
    first: int = 1
    lines: int = 0
    total_lines: int = -1
    size: int = 0
    digest: str = ""
    version: str = ""
    ends: bool = True
    cut: bool = False


class WriteResult(Record):
    """A file that was written, edited, moved or deleted. `count`: replacements of an edit, or files of a deletion; `digest` of
    the new content."""

    path: str
    count: int = 0
    digest: str = ""
    size: int = 0


class Match(Record):
    """A line that a grep found. `line`: 1-based; `text`: the line's bytes without its newline, cut at the request's `longest`."""

    path: str
    line: int
    text: bytes


class Matches(Record):
    """The lines that matched, by path, then line. `files`: how many files matched; `more`: lines left out by the limit, -1: some,
    not counted; `skipped`: files that could not be searched, with the reason."""

    matches: list[Match] = []
    files: int = 0
    more: int = 0
    skipped: dict[str, str] = {}


class Replacement(Record):
    """One replacement of an edit: `old` is there exactly once, unless `everywhere`."""

    old: bytes
    new: bytes
    everywhere: bool = False


class CommandResult(Record):
    """A command that ended. `output`: both streams as they came, the middle left out over the limit and said so; `exit`: its exit
    status, or -signal; `cause`: exit, timeout or cancelled; `seconds`; `lost`: bytes left out."""

    output: bytes
    exit: int
    cause: str = "exit"
    seconds: float = 0.0
    lost: int = 0


class OutputPage(Record):
    """A part of the output of a command in the background. `data` begins at byte `offset` of all output, later than asked for
    where that is kept no more; `next`: the offset to go on with; `size`: all output so far."""

    data: bytes
    offset: int
    next: int
    size: int


class ShellJob(Protocol):
    """A command in the background."""

    id: str

    def page(self, offset: int = 0, most: int = 30_000) -> OutputPage:
        """Its output from byte `offset` of all output on; a negative one counts from the end."""

    def status(self) -> CommandResult | None:
        """How it ended, with head and tail of its output; None while it runs."""

    def cancel(self) -> CommandResult:
        """End it with all that it started, wait until that is gone, and say how it ended."""


@runtime_checkable
class Filesystem(Protocol):
    """Files under one root, wherever they are."""

    def ls(self, path: str = ".", most: int = 1000) -> Listing | FileFault:
        """The entries of one folder."""

    def read(self, path: str, offset: int = 0, limit: int = 0) -> FileContent | FileFault:
        """Lines of a file from the 0-based line `offset` on; `limit` 0 is all of them. An empty file is empty content, no fault;
        an offset at or behind the end is empty content that `ends`."""

    def write(self, path: str, data: bytes, *, create: bool = False, expect: str = "") -> WriteResult | FileFault:
        """Replace or make a file, whole or not at all, with its folders; an existing file keeps its mode. `create`: `exists`
        where it is there (of two creators one wins). `expect`: the digest that it must have now, else `changed`."""

    def edit(self, path: str, changes: Sequence[Replacement], expect: str = "") -> WriteResult | FileFault:
        """Replace bytes in a file, all of the changes or none. What is not replaced stays byte for byte, line ends included."""

    def grep(self, pattern: str, path: str = ".", *, glob: str = "", ignore_case: bool = False, literal: bool = False,
             most: int = 1000, longest: int = 2000, hidden: bool = False) -> Matches | FileFault:  # fmt: skip
        """Lines that match a regular expression, in a file or below a folder, with ripgrep's semantics: .gitignore counts, hidden
        and binary files are left out."""

    def glob(self, pattern: str, path: str = ".", most: int = 1000) -> Listing | FileFault:
        """Files below a folder whose path matches (`*`, `?`, `[…]`, `{a,b}`, `**`), newest first; .gitignore counts."""

    def upload(self, files: Mapping[str, bytes]) -> dict[str, WriteResult | FileFault]:
        """Write many files; each has its own result."""

    def download(self, paths: Sequence[str]) -> dict[str, bytes | FileFault]:
        """Read many files whole; each has its own result."""

    def delete(self, path: str) -> WriteResult | FileFault:
        """Delete a file, or a folder with all that is below it; links are deleted, never followed."""

    def move(self, path: str, target: str) -> WriteResult | FileFault:
        """Rename, with the folders of the target; `exists` where the target is there."""

    def exists(self, path: str) -> bool:
        """Whether something is there; a path that leads out is not."""


@runtime_checkable
class Shell(Filesystem, Protocol):
    """A filesystem whose commands can be run where its files are."""

    def id(self) -> str:
        """A name for the place, the same as long as its files are the same."""

    def execute(self, command: str, *, seconds: float = 120.0, folder: str = ".", variables: Mapping[str, str] | None = None,
                most: int = 100_000, stop: Callable[[], bool] | None = None) -> CommandResult | FileFault:  # fmt: skip
        """Run a command with `bash -c` in a folder, to its end or its timeout; nothing that it started is left. `variables`: more
        of its environment; `stop` is asked about five times a second, and ends it with cause cancelled."""

    def start(
        self, command: str, *, seconds: float = 0.0, folder: str = ".", variables: Mapping[str, str] | None = None
    ) -> ShellJob | FileFault:
        """Run a command in the background; `seconds` 0: without a timeout of its own. It ends with this process, too."""
