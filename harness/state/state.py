"""The mission's state: the only way to read and change it, by names (`names.py`), not paths.

`read` returns the bytes of a name and their version; `commit` applies several changes atomically and durably, and only
if the expected versions still match (compare-and-set). The ledger records the committed content of each managed and
append-only file, so that foreign changes can be detected.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from harness.base import encoding
from harness.base.errors import BrokenFile, VersionConflict
from harness.state import committed_copy, files, journal, names
from harness.state.files import Lock
from harness.state.layout import Layout

ABSENT = ""
APPENDED = (*names.APPEND_ONLY, names.RAW)


class StateContent:
    """The content of a name: `data` (None if absent) and its `version`. It unpacks as (data, version)."""

    def __init__(self, state: State, name: str, data: bytes | None) -> None:
        self.state, self.name, self.data = state, name, data

    @property
    def version(self) -> str:
        """The digest of the data; for an append-only file its length and, if it can shrink, its curation generation."""
        if self.data is None:
            return ABSENT
        if self.name in APPENDED:
            return self.state.version_of_length(self.name, len(self.data))
        return encoding.digest(self.data)

    def __iter__(self) -> Iterator[Any]:
        yield self.data
        yield self.version


class Changes:
    """Changes that `State.commit` applies together. The last change of a name wins; appended lines accumulate, after
    the new content if the file is also put."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes | None] = {}
        self.tails: dict[str, bytes] = {}
        self.blocks: dict[str, Iterable[bytes]] = {}
        self.expected: dict[str, str] = {}

    def put(self, name: str, data: bytes, expect: str | None = None) -> None:
        """Replace the content of a file; `expect`: the version that it must still have."""
        self.contents[name] = data
        self.expect(name, expect)

    def put_blocks(self, name: str, blocks: Iterable[bytes]) -> None:
        """Replace the content of a file by these blocks; for a large file that is not in the ledger."""
        self.blocks[name] = blocks

    def remove(self, name: str, expect: str | None = None) -> None:
        """Remove the file; `expect` as in `put`."""
        self.contents[name] = None
        self.expect(name, expect)

    def append(self, name: str, lines: bytes) -> None:
        """Append whole lines to the file; b"" changes nothing."""
        if lines:
            self.tails[name] = self.tails.get(name, b"") + lines

    def expect(self, name: str, version: str | None) -> None:
        """Require that the name still has this version; None: any version."""
        if version is not None:
            self.expected[name] = version


class State:
    """The state of the mission with this layout. It is stateless: cheap to make, and any number may coexist."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def path(self, name: str) -> str:
        """The path of a name, for messages and for the agent's programs."""
        return self.layout.path(name)

    # reading

    def read(self, name: str) -> StateContent:
        """The present content of a name; raises BrokenFile unless it is a regular file."""
        return StateContent(self, name, files.read(self.path(name)))

    def data(self, name: str) -> bytes | None:
        """The bytes of a name, None if it is absent."""
        return files.read(self.path(name))

    def text(self, name: str) -> str | None:
        """The UTF-8 text of a name, None if it is absent; raises BrokenFile with the line of a bad byte."""
        return files.read_text(self.path(name))

    def json(self, name: str) -> Any | None:
        """The JSON value of a name, None if it is absent; raises BrokenFile if it does not parse."""
        return files.read_json(self.path(name))

    def part(self, name: str, offset: int, size: int) -> bytes:
        """Up to `size` bytes from `offset`; empty if the file is shorter or absent."""
        return files.read_from(self.path(name), offset, size)

    def length(self, name: str) -> int:
        """Length of a name in bytes; 0 if it is absent."""
        return files.length(self.path(name))

    def exists(self, name: str) -> bool:
        """Whether a file or folder has this name."""
        return os.path.exists(self.path(name))

    def list(self, prefix: str) -> list[str]:
        """Sorted names directly below a folder, without the folder; [] if it is absent."""
        return files.names(self.path(prefix))

    def is_ours(self, name: str, data: bytes | None) -> bool:
        """Whether these bytes of a managed file match the ledger, so that only the harness wrote them."""
        try:
            row = journal.read_ledger(self.layout).get(name)
        except BrokenFile:  # its readers report it
            return False
        return data is not None and row == [encoding.digest(data), len(data)]

    def version(self, name: str) -> str:
        """The version of a name; an append-only file is not read for it."""
        if name in APPENDED:
            return self.version_of_length(name, self.length(name)) if self.exists(name) else ABSENT
        return self.read(name).version

    def version_of_length(self, name: str, length: int) -> str:
        """The version of an append-only file that has this length."""
        return f"{length}.{self.generation()}" if name in names.CURATED_TOO else str(length)

    def generation(self) -> int:
        """The number of commits by the curator."""
        try:
            found = self.json(names.CURATED)
        except BrokenFile:  # its readers report it
            return 0
        value = found.get("generation") if isinstance(found, dict) else 0
        return value if isinstance(value, int) else 0

    # changing

    def put(self, name: str, data: bytes, expect: str | None = None, *, mode: int = files.SHARED) -> None:
        """Replace one file durably; raises VersionConflict if it is not as expected. A file that is not in the ledger
        (those of a run) is written without a journal, with the permissions `mode`."""
        if expect is None and name not in names.MANAGED and name not in names.APPEND_ONLY:
            files.replace(self.path(name), data, mode)
            return
        changes = Changes()
        changes.put(name, data, expect)
        self.commit(changes)

    def append(self, name: str, lines: bytes) -> None:
        """Append whole lines, durably."""
        if name in names.APPEND_ONLY:
            changes = Changes()
            changes.append(name, lines)
            self.commit(changes)
        else:
            journal.append(self.layout, self.path(name), lines)

    def claim_folder(self, name: str) -> bool:
        """Create a folder exclusively, with its parent; False if the name exists."""
        files.make_folder(os.path.dirname(self.path(name)))
        return files.claim_folder(self.path(name))

    def add(self, name: str, lines: bytes) -> None:
        """Append whole lines, durably, to a file with one writer at a time, such as those of a run."""
        files.add_line(self.path(name), lines)

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        if name not in names.MANAGED and name not in names.APPEND_ONLY:
            return files.remove(self.path(name))
        changes = Changes()
        changes.remove(name)
        return self.commit(changes)

    def lock(self, name: str) -> Lock:
        """The lock of this name, not taken yet. `lock("state")` blocks all commits and appends."""
        return files.Lock(f"{self.layout.path(names.LOCKS)}/{name}")

    def lock_of(self, name: str) -> Lock:
        """A lock on the file of this name itself, for a file that is never replaced."""
        return files.Lock(self.path(name))

    def commit(self, changes: Changes, *, locked: bool = False) -> None:
        """Apply all changes or none; durable on return. Raises VersionConflict, with nothing changed, if a name is not
        as expected. `locked`: the caller already holds `lock("state")`."""
        if not (changes.contents or changes.tails or changes.blocks):
            return
        if locked:
            self._commit(changes)
        else:
            journal.require_folders(self.layout)
            with self.lock("state"):
                self._commit(changes)

    def _commit(self, changes: Changes) -> None:
        journal.finish_journal(self.layout)
        for name, version in changes.expected.items():
            if self.version(name) != version:
                raise VersionConflict(self.layout.folders.relative(self.path(name)))
        made = journal.Journal(self.layout)
        for name, data in changes.contents.items():
            if data is None:
                made.remove(self.path(name))
                continue
            made.replace(self.path(name), data)
        for name, blocks in changes.blocks.items():
            made.replace_by(self.path(name), blocks)
        for name, lines in changes.tails.items():
            made.append(self.path(name), lines)
        kept = committed_copy.is_kept(self.layout)
        tails = committed_copy.intact(self.layout, changes.tails) if kept else {}
        made.commit(locked=True)
        if kept:
            committed_copy.follow(self.layout, changes.contents, tails, changes.blocks)
