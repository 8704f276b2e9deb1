"""The interfaces of the filesystems that an agent's tools use: files, and a shell; content as bytes, faults as typed results.

A path is a string with `/` between its names, relative to the root of the filesystem; a leading `/` also means the
root, and `.` is the root. A verb returns a FileFault for an error that a model can correct; it raises for a bug or a
fault of the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, Self, runtime_checkable

from harness.base.record import Record
from harness.process.confine import Confinement

MAX_READ_BYTES = 16 * 1024 * 1024  # bytes of one read, unless the caller asks for more

FAULTS = {
    "missing": "there is no such file or folder",
    "exists": "it is there already",
    "is_folder": "it is a folder",
    "not_folder": "a part of the path is not a folder",
    "not_regular": "it is a pipe, a socket or a device",
    "outside": "the path leads out of the root",
    "invalid": "the path or an argument is not valid",
    "read_only": "it is read-only",
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
"""Every kind of fault with its meaning; the `text` of a FileFault is a full sentence with the remedy."""


class FileFault(Record):
    """The failure of a verb. `kind`: a key of FAULTS; `path`: as requested; `text`: one or two sentences for the model,
    with the remedy."""

    kind: str
    path: str
    text: str


class FileEntry(Record):
    """A file or folder. `path`: relative to the root, without a leading `/`, "." for the root; `kind`: file, folder, link or
    other; `size` in bytes (0 for a folder); `changed`: unix seconds, 0 if unknown."""

    path: str
    kind: str
    size: int = 0
    changed: float = 0.0


class Listing(Record):
    """The entries of a folder, sorted by name, or the files that a glob found, newest first. `more`: number omitted by
    the limit; -1: some, not counted."""

    entries: list[FileEntry] = []
    more: int = 0


class FileContent(Record):
    """A part of a file. `data`: its bytes, whole lines unless `cut`; `first`: the 1-based number of its first line;
    `lines`: number of lines in `data`; `total_lines`: -1 if not counted; `size`: of the whole file in bytes; `digest`: of the
    whole file, "" if only a part was read; `version`: of the whole file, changes with every write, "" if unknown; `ends`:
    whether `data` contains the last line of the file; `cut`: the last line of `data` is truncated at the limit."""

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
    """The result of a write, edit, move, deletion, or new folder. `count`: replacements of an edit, or deleted files;
    `digest`: of the new content."""

    path: str
    count: int = 0
    digest: str = ""
    size: int = 0


class Match(Record):
    """A line that a grep found. `line`: 1-based; `text`: the line's bytes without newline, truncated at the request's
    `longest`."""

    path: str
    line: int
    text: bytes


class Matches(Record):
    """The matching lines, by path, then line. `files`: number of matching files; `more`: lines omitted by the limit,
    -1: some, not counted; `skipped`: files that could not be searched, with the reason."""

    matches: list[Match] = []
    files: int = 0
    more: int = 0
    skipped: dict[str, str] = {}


class Replacement(Record):
    """One replacement of an edit: `old` must occur exactly once, unless `everywhere`."""

    old: bytes
    new: bytes
    everywhere: bool = False


class CommandResult(Record):
    """The result of a command. `output`: both streams as they came, in the foreground as `console.plain`; `stdout`, `stderr`:
    the bytes of each, empty for a command in the background. Each has a note in place of a middle beyond the limit. `exit`: exit
    status or -signal; `cause`: exit, timeout or cancelled; `seconds`: duration; `lost`: bytes that `output` omits."""

    output: bytes
    stdout: bytes = b""
    stderr: bytes = b""
    exit: int
    cause: str = "exit"
    seconds: float = 0.0
    lost: int = 0


class OutputPage(Record):
    """A part of the output of a background command. `data` begins at byte `offset` of all output, later than requested
    if that is no longer kept; `next`: the offset to continue at; `size`: bytes of output so far."""

    data: bytes
    offset: int
    next: int
    size: int


class ShellJob(Protocol):
    """A command in the background."""

    id: str

    def page(self, offset: int = 0, most: int = 30_000) -> OutputPage:
        """Output from byte `offset` on; a negative offset counts from the end."""

    def status(self) -> CommandResult | None:
        """The result, with head and tail of the output; None while it runs."""

    def cancel(self) -> CommandResult:
        """End the command with all its descendants, wait until they are gone, and return the result."""


@runtime_checkable
class Filesystem(Protocol):
    """Files under one root, in any kind of storage. Functions over it are in `transfer`."""

    def ls(self, path: str = ".", most: int = 1000) -> Listing | FileFault:
        """The entries of one folder."""

    def read(
        self, path: str, offset: int = 0, limit: int = 0, *, most: int = MAX_READ_BYTES
    ) -> FileContent | FileFault:
        """Lines of a file from the 0-based line `offset` on; `limit` 0: all; at most `most` bytes, of whole lines if one fits.
        An empty file is empty content, not a fault; an offset at or beyond the end is empty content that `ends`."""

    def write(self, path: str, data: bytes, *, create: bool = False, expect: str = "") -> WriteResult | FileFault:
        """Replace or create a file atomically, with its folders; an existing file keeps its mode. `create`: fault `exists` if
        it exists (of two creators one wins). `expect`: the digest that it must have, else fault `changed`."""

    def edit(self, path: str, changes: Sequence[Replacement], expect: str = "") -> WriteResult | FileFault:
        """Replace bytes in a file, all changes or none. All other bytes stay as they are, line ends included."""

    def grep(self, pattern: str, path: str = ".", *, glob: str = "", ignore_case: bool = False, literal: bool = False,
             most: int = 1000, longest: int = 2000, hidden: bool = False) -> Matches | FileFault:  # fmt: skip
        """Lines that match a regular expression, in a file or below a folder, with ripgrep's semantics: .gitignore
        applies, hidden and binary files are skipped."""

    def glob(self, pattern: str, path: str = ".", most: int = 1000) -> Listing | FileFault:
        """Files below a folder whose path matches (`*`, `?`, `[…]`, `{a,b}`, `**`), newest first; .gitignore applies. A pattern
        that contains a hidden name finds hidden names; one that ends with `/` finds folders."""

    def stat(self, path: str) -> FileEntry | FileFault:
        """The entry of one path, links followed, under the path that `resolve` gives."""

    def mkdir(self, path: str) -> WriteResult | FileFault:
        """Create a folder with its parents; a folder that exists is no fault."""

    def delete(self, path: str) -> WriteResult | FileFault:
        """Delete a file, or a folder with its content; links are deleted, never followed."""

    def move(self, path: str, target: str) -> WriteResult | FileFault:
        """Rename, creating the folders of the target; fault `exists` if the target exists."""

    def resolve(self, path: str, *, follow: bool = True) -> str | FileFault:
        """The path from the root in its one form, "." for the root, whether it exists or not. `follow`: with its links resolved
        as far as they exist, so that a rule about a path holds for what a verb reaches."""


@runtime_checkable
class LocalFolder(Protocol):
    """What a filesystem has in addition if its files are in one folder of this machine."""

    def folder(self) -> str:
        """The absolute path of the root, without links; "" if the files are not on this machine."""


@runtime_checkable
class Shell(LocalFolder, Protocol):
    """What a filesystem has in addition if commands can run where its files are."""

    def id(self) -> str:
        """A name of the place; equal for shells with the same files."""

    def confined(self, confinement: Confinement | None, environment: Mapping[str, str] | None, refusal: str) -> Self:
        """The same with this confinement and environment of its commands (None: as they are), and the reason why commands are
        not allowed, or "". A shell that is confined already, or whose commands run elsewhere, returns itself."""

    def execute(self, command: str, *, seconds: float = 120.0, folder: str = ".", variables: Mapping[str, str] | None = None,
                most: int = 100_000, stop: Callable[[], bool] | None = None) -> CommandResult | FileFault:  # fmt: skip
        """Run a command with `bash -c` in a folder until its end or timeout; none of its descendants survives. `variables`:
        additions to its environment; `stop` is polled about five times a second, and ends it with cause cancelled."""

    def start(
        self, command: str, *, seconds: float = 0.0, folder: str = ".", variables: Mapping[str, str] | None = None
    ) -> ShellJob | FileFault:
        """Run a command in the background; `seconds` 0: no timeout. It ends with this process at the latest."""
