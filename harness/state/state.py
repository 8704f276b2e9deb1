"""The mission's state: the one way to read it and the one way to change it. Names, not paths (`names.py`).

`read` gives the bytes of a name and their version; `commit` applies several changes at once: all or none, durable, and only
where what they expect is still there (compare-and-set). The ledger records what was committed of each managed and each
append-only file, so that a change by anybody else can be told apart.
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
    """What a name has: `data`, None where it is absent, and its `version`. It unpacks as (data, version)."""

    def __init__(self, state: State, name: str, data: bytes | None) -> None:
        self.state, self.name, self.data = state, name, data

    @property
    def version(self) -> str:
        """The digest of the data, or for an append-only file its length and, where it can shrink, its curation generation."""
        if self.data is None:
            return ABSENT
        if self.name in APPENDED:
            return self.state.version_of_length(self.name, len(self.data))
        return encoding.digest(self.data)

    def __iter__(self) -> Iterator[Any]:
        yield self.data
        yield self.version


class Changes:
    """Changes that belong together; nothing happens before `State.commit`. The last change of a name counts; appended lines
    add up, behind the new content where the file is put too."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes | None] = {}
        self.tails: dict[str, bytes] = {}
        self.blocks: dict[str, Iterable[bytes]] = {}
        self.expected: dict[str, str] = {}

    def put(self, name: str, data: bytes, expect: str | None = None) -> None:
        """The file will have this content; `expect`: the version that it must still have."""
        self.contents[name] = data
        self.expect(name, expect)

    def put_blocks(self, name: str, blocks: Iterable[bytes]) -> None:
        """The file will have these blocks, one after another, as its content; for a large one that the ledger does not have."""
        self.blocks[name] = blocks

    def remove(self, name: str, expect: str | None = None) -> None:
        """The file will be gone; `expect` as in `put`."""
        self.contents[name] = None
        self.expect(name, expect)

    def append(self, name: str, lines: bytes) -> None:
        """The file will end with these whole lines; no lines are no change."""
        if lines:
            self.tails[name] = self.tails.get(name, b"") + lines

    def expect(self, name: str, version: str | None) -> None:
        """Nothing is committed unless the name still has this version; None: whatever it has."""
        if version is not None:
            self.expected[name] = version


class State:
    """The state of the mission with this layout. Holds nothing: making one costs nothing, and any number may be in use."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def path(self, name: str) -> str:
        """The path of a name, for messages and for programs of the agent."""
        return f"{self.layout.state}/{name}"

    # reading

    def read(self, name: str) -> StateContent:
        """What the name has now; raises BrokenFile where it is no plain file."""
        return StateContent(self, name, files.read(self.path(name)))

    def data(self, name: str) -> bytes | None:
        """The bytes of a name, None where it is absent."""
        return files.read(self.path(name))

    def text(self, name: str) -> str | None:
        """The UTF-8 text of a name, None where it is absent; raises BrokenFile with the line of a bad byte."""
        return files.read_text(self.path(name))

    def json(self, name: str) -> Any | None:
        """The JSON value of a name, None where it is absent; raises BrokenFile if it does not parse."""
        return files.read_json(self.path(name))

    def part(self, name: str, offset: int, size: int) -> bytes:
        """Up to `size` bytes from `offset`; empty where there is less, or nothing."""
        return files.read_from(self.path(name), offset, size)

    def length(self, name: str) -> int:
        """Bytes of a name; 0 where it is absent."""
        return files.length(self.path(name))

    def exists(self, name: str) -> bool:
        """Whether something has this name, a file or a folder."""
        return os.path.exists(self.path(name))

    def list(self, prefix: str) -> list[str]:
        """Sorted names directly below a folder, without the folder; none where it is absent."""
        return files.names(self.path(prefix))

    def is_ours(self, name: str, data: bytes | None) -> bool:
        """Whether these bytes of a managed file are what the ledger has: nobody but the harness wrote them."""
        try:
            row = journal.read_ledger(self.layout).get(name)
        except BrokenFile:  # its readers report it
            return False
        return data is not None and row == [encoding.digest(data), len(data)]

    def version(self, name: str) -> str:
        """The version of a name; of an append-only file without reading it."""
        if name in APPENDED:
            return self.version_of_length(name, self.length(name)) if self.exists(name) else ABSENT
        return self.read(name).version

    def version_of_length(self, name: str, length: int) -> str:
        """The version of an append-only file that has this length."""
        return f"{length}.{self.generation()}" if name in names.CURATED_TOO else str(length)

    def generation(self) -> int:
        """How often the curator has committed; 0 before."""
        try:
            found = self.json(names.CURATED)
        except BrokenFile:  # its readers report it
            return 0
        value = found.get("generation") if isinstance(found, dict) else 0
        return value if isinstance(value, int) else 0

    # changing

    def put(self, name: str, data: bytes, expect: str | None = None, *, mode: int = files.SHARED) -> None:
        """Replace one file, durably; raises Changed where it is not as expected. What the ledger does not have (the files of
        a run) is written without a journal, with the permissions `mode`."""
        if expect is None and name not in names.MANAGED and name not in names.APPEND_ONLY:
            return files.replace(self.path(name), data, mode)
        changes = Changes()
        changes.put(name, data, expect)
        return self.commit(changes)

    def append(self, name: str, lines: bytes) -> None:
        """Append whole lines, durably."""
        if name in names.APPEND_ONLY:
            changes = Changes()
            changes.append(name, lines)
            self.commit(changes)
        else:
            journal.append(self.layout, self.path(name), lines)

    def claim_folder(self, name: str) -> bool:
        """Make a folder exclusively, and the one above it; False if the name exists."""
        files.make_folder(os.path.dirname(self.path(name)))
        return files.claim_folder(self.path(name))

    def add(self, name: str, lines: bytes) -> None:
        """Append whole lines, durably, to a file with one writer at a time, such as those of a run."""
        files.add_line(self.path(name), lines)

    def remove(self, name: str) -> None:
        """Remove a file, where it exists."""
        if name not in names.MANAGED and name not in names.APPEND_ONLY:
            return files.remove(self.path(name))
        changes = Changes()
        changes.remove(name)
        return self.commit(changes)

    def lock(self, name: str) -> Lock:
        """The lock of this name, not taken yet. `lock("state")` holds all commits and appends up."""
        return files.Lock(f"{self.layout.locks}/{name}")

    def lock_of(self, name: str) -> Lock:
        """A lock on the file of this name itself, for a file that is never replaced."""
        return files.Lock(self.path(name))

    def commit(self, changes: Changes, *, locked: bool = False) -> None:
        """Apply all changes or none; durable on return. Raises Changed where a name is not as expected, with nothing changed.
        `locked`: the caller holds `lock("state")` already."""
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
                raise VersionConflict(self.layout.relative(self.path(name)))
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
