"""Journals: atomic changes of several state files together with the ledger; and single appends.

A `Journal` stages and fsyncs every new content, renames one record into place (the commit), then applies the record.
After a crash, the next process that takes the state lock applies the record; every step is idempotent. The ledger has
the digest of each managed file and the length of each append-only file, as the harness wrote them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from typing import Any

from harness.base.errors import BrokenFile
from harness.state import files, json_lines, names
from harness.state.layout import Layout, command

VERBS = ("replace", "append", "remove")
APPENDED_IN = ("memory", names.LOCKS)
FOLDERS = ("memory", "journal", "cache", names.LOCKS, names.RUNS, names.OBJECTS, names.SNAPSHOTS)
NO_RECORD = "it is not a record that the harness wrote for this mission"


def append(layout: Layout, path: str, data: bytes) -> int:
    """Append whole lines, as `files.add_lines`, to a file that is not in the ledger; durable on return. Returns their offset."""
    if not data.endswith(b"\n"):
        raise ValueError("append takes whole lines")
    require_folders(layout, APPENDED_IN)
    with files.Lock(layout.path(names.STATE_LOCK)):
        finish_journal(layout)
        descriptor = files.open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            if not os.fstat(descriptor).st_size:
                files.sync_folder(os.path.dirname(path))  # the new file's name must be durable too
            offset = files.add_lines(descriptor, data)
        except OSError:
            os.close(descriptor)
            raise
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return offset


def require_folders(layout: Layout, folders: Iterable[str] = FOLDERS) -> None:
    """Raise BrokenFile if a folder of the state is a link, since writes below it would land elsewhere."""
    for name in folders:
        path = f"{layout.state}/{name}"
        try:
            is_link = stat.S_ISLNK(os.lstat(path).st_mode)
        except FileNotFoundError:
            continue
        if is_link:
            raise BrokenFile(path, "it is a link, where a folder belongs", remedy="Replace it by the folder.")


class Journal:
    """An atomic group of writes to the state of one mission, with its ledger. `replace` and `remove` take whole files,
    `append` whole JSON lines. No file changes before `commit`."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.contents: dict[str, bytes | None] = {}
        self.blocks: dict[str, Iterable[bytes]] = {}
        self.tails: dict[str, bytes] = {}

    def replace(self, path: str, data: bytes) -> None:
        """Stage a new content of the file."""
        self.contents[path] = data

    def replace_by(self, path: str, blocks: Iterable[bytes]) -> None:
        """Stage new content, as blocks, of a file that is not in the ledger. `commit` consumes the blocks under the
        state lock, before any file changes, so they may be read from the file itself."""
        if path in self.layout.managed() or path in self.layout.append_only():
            raise ValueError("the ledger needs the whole content")
        self.blocks[path] = blocks

    def remove(self, path: str) -> None:
        """Stage the removal of the file."""
        self.contents[path] = None

    def append(self, path: str, data: bytes) -> None:
        """Stage an append of whole lines; b"" changes nothing."""
        if data:
            self.tails[path] = self.tails.get(path, b"") + data

    def commit(self, locked: bool = False) -> None:
        """Apply all changes; durable on return. `locked`: the caller holds the state lock already."""
        require_folders(self.layout)
        changed = self.contents or self.blocks or self.tails
        if locked and changed:
            self._commit()
        elif changed:
            with files.Lock(self.layout.path(names.STATE_LOCK)):
                self._commit()

    def _commit(self) -> None:
        finish_journal(self.layout)
        files.make_folder(self.layout.path(names.JOURNAL))
        ledger = read_ledger(self.layout)
        steps: list[list[Any]] = []
        try:
            for path, blocks in self.blocks.items():
                files.stage(f"{self.layout.path(names.JOURNAL)}/{len(steps)}", blocks)
                steps.append(["replace", path, f"{self.layout.path(names.JOURNAL)}/{len(steps)}", 0])
            for path, data in self.contents.items():
                self._stage(steps, path, "replace", data)
                note_in_ledger(self.layout, ledger, path, data)
            for path, tail in self.tails.items():
                self._stage_tail(steps, ledger, path, tail)
            self._stage(steps, self.layout.path(names.LEDGER), "replace", files.dump_json(ledger))
            files.stage(self.layout.path(names.JOURNAL) + "/record.tmp", files.dump_json(steps))
            os.replace(self.layout.path(names.JOURNAL) + "/record.tmp", self.layout.path(names.JOURNAL) + "/record")
        except OSError:
            for name in files.names(self.layout.path(names.JOURNAL)):
                files.remove(os.path.join(self.layout.path(names.JOURNAL), name))
            raise
        files.sync_folder(self.layout.path(names.JOURNAL))
        _apply(self.layout, steps)

    def _stage(self, steps: list[list[Any]], path: str, verb: str, data: bytes | None, offset: int = 0) -> None:
        if data is None:
            steps.append(["remove", path, "", 0])
            return
        staged = f"{self.layout.path(names.JOURNAL)}/{len(steps)}"
        files.stage(staged, data)
        steps.append([verb, path, staged, offset])

    def _stage_tail(self, steps: list[list[Any]], ledger: dict[str, list[Any]], path: str, tail: bytes) -> None:
        if path in self.contents:
            old = self.contents[path] or b""
            kept = json_lines.healed(old)
            offset, kept = min(len(kept), len(old.rstrip(b"\0"))), kept[len(old.rstrip(b"\0")) :]
        else:
            offset, kept = json_lines.end_of(path, closes=path == self.layout.path(names.RAW))
        self._stage(steps, path, "append", kept + tail, offset)
        _note_row(self.layout, ledger, path, "", offset + len(kept) + len(tail))


def finish_journal(layout: Layout) -> bool:
    """Apply a committed record that a crash left; True if there was one. The caller holds the lock. Raises BrokenFile
    for a foreign record: the harness's own are complete when renamed into place, and name only paths in the mission."""
    if not files.names(layout.path(names.JOURNAL)):
        return False
    steps = _steps(layout)
    if steps is not None:
        _apply(layout, steps)
    for path in staged(layout):
        files.remove(path)
    return steps is not None


def staged(layout: Layout) -> list[str]:
    """Staged files that an interrupted journal left beside its record; they are garbage once the record is applied."""
    folder = layout.path(names.JOURNAL)
    left = (name for name in files.names(folder) if name.isdigit() or name == "record.tmp")
    return [path for name in left if not os.path.isdir(path := os.path.join(folder, name))]


def pending(layout: Layout, path: str) -> bytes | None:
    """The content that a pending record will give the file; None without such a step, or if it is done."""
    steps = _steps(layout) or []
    return next((files.read(staged) for verb, name, staged, _ in steps if (verb, name) == ("replace", path)), None)


def _steps(layout: Layout) -> list[list[Any]] | None:
    """The steps of the committed record; None if there is none."""
    record = layout.path(names.JOURNAL) + "/record"
    if not os.path.exists(record):
        return None
    try:
        steps: Any = files.read_json(record)
        fault = "" if all(_is_step(layout, *step) for step in steps) else NO_RECORD
        line = 1
    except BrokenFile as broken:
        fault, line = broken.fault, broken.line or 1
    except TypeError:
        fault, line = NO_RECORD, 1
    if fault:
        raise BrokenFile(record, fault, line=line, remedy="Move it away; the next start settles the unfinished run.")
    return list(steps)


def _is_step(layout: Layout, verb: object, path: object, staged: object, offset: object) -> bool:
    """Whether a `Journal` could have written this step."""
    if verb not in VERBS or type(path) is not str or type(staged) is not str or type(offset) is not int:
        return False
    inside = os.path.normpath(path) == path and path.startswith(layout.state + "/")
    kept = os.path.dirname(staged) == layout.path(names.JOURNAL) and os.path.basename(staged).isdigit()
    return inside and offset >= 0 and (kept if verb != "remove" else not staged)


def _apply(layout: Layout, steps: list[list[Any]]) -> None:
    """Apply the steps, idempotently: a step that was applied before the crash is skipped."""
    for verb, path, staged, offset in steps:
        files.make_folder(os.path.dirname(path))
        if verb == "remove":
            files.remove(path)
        elif verb == "replace" and os.path.exists(staged):
            os.replace(staged, path)
        elif verb == "append":
            _apply_tail(path, files.read(staged), offset, keeps=path == layout.path(names.RAW))
    for folder in dict.fromkeys(os.path.dirname(path) for _, path, _, _ in steps):
        files.sync_folder(folder)
    os.unlink(layout.path(names.JOURNAL) + "/record")
    for _, _, staged, _ in steps:
        if staged:
            files.remove(staged)


def _apply_tail(path: str, tail: bytes | None, offset: int, keeps: bool) -> None:
    """Write the tail at its offset. `keeps`: lines appended there meanwhile by another writer stay, and the tail follows."""
    if tail is None:
        return
    descriptor = files.open_regular(path, os.O_RDWR | os.O_CREAT)
    with open(descriptor, "rb+", buffering=0) as file:
        there = os.pread(descriptor, len(tail), offset)
        if keeps and not tail.startswith(there):
            file.seek(offset)
            if tail not in file.read():
                files.add_lines(descriptor, tail)
        elif there != tail:
            os.ftruncate(descriptor, offset)
            os.lseek(descriptor, offset, os.SEEK_SET)
            files.write_all(descriptor, tail)  # a full disk raises here, and the record stays pending
        os.fsync(descriptor)


def read_ledger(layout: Layout) -> dict[str, list[Any]]:
    """{path below .harness: [sha256, length in bytes]} of managed files, and ["", length] of append-only ones, as the harness
    wrote them."""
    ledger = files.read_json(layout.path(names.LEDGER))
    rows = ledger.values() if isinstance(ledger, dict) else [ledger]
    if ledger is not None and not all(type(row) is list and [*map(type, row)] == [str, int] for row in rows):
        raise BrokenFile(
            layout.path(names.LEDGER), "not a ledger", line=1, remedy=f"Rebuild it: {command('doctor --fix')}"
        )
    return dict(ledger or {})


def note_in_ledger(layout: Layout, ledger: dict[str, list[Any]], path: str, data: bytes | None) -> None:
    """Update one path in a ledger in memory; only managed and append-only files have a row there."""
    if path in layout.managed() or path in layout.append_only():
        grows = path in layout.append_only()
        _note_row(layout, ledger, path, None if data is None else "" if grows else files.digest(data), len(data or b""))


def _note_row(layout: Layout, ledger: dict[str, list[Any]], path: str, digest: str | None, length: int) -> None:
    name = os.path.relpath(path, layout.state)
    if digest is None:
        ledger.pop(name, None)
    elif name != names.RAW:
        ledger[name] = [digest, length]


def adopt(layout: Layout) -> dict[str, list[Any]]:
    """Record the managed and append-only files in the ledger as they are on disk: accept people's edits between runs."""
    ledger: dict[str, list[Any]] = {}
    for path in layout.managed():
        note_in_ledger(layout, ledger, path, files.read(path))
    for path in layout.append_only():
        if os.path.exists(path):
            _note_row(layout, ledger, path, "", files.length(path))
    if files.dump_json(ledger) != files.read(layout.path(names.LEDGER)):
        files.replace(layout.path(names.LEDGER), files.dump_json(ledger))
    return ledger
