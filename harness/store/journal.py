"""Appends and journals on a mission's state: what must hold together is written together, and the ledger with it.

A `Journal` stages and fsyncs every new content, renames one record into place (that is the commit), then carries the
record out. Whoever next takes the state lock finishes a record that a crash left behind; every step can be repeated.
The ledger knows digest and length of each file of the live set and each grown file, as the harness wrote them.
"""

from __future__ import annotations

import os

from harness.base.errors import BrokenFile
from harness.store import files, json_lines
from harness.store.layout import Layout, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERBS = ("replace", "append", "remove")
NO_RECORD = "it is no record that the harness wrote for this mission"


def append(layout: Layout, path: str, data: bytes) -> int:
    """Whole lines at the end of a file that the ledger does not hold; durable on return. Returns their offset.

    A torn last line is closed first (it stays, as a line of its own); NUL bytes that a power cut left are cut off.
    """
    if not data.endswith(b"\n"):
        raise ValueError("append takes whole lines")
    with files.Lock(layout.state_lock):
        finish_journal(layout)
        descriptor = files.open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            if not os.fstat(descriptor).st_size:
                files.sync_folder(os.path.dirname(path))  # before its first line: who finds one trusts the name
            offset = files.add_lines(descriptor, data)
        except OSError:
            os.close(descriptor)
            raise
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return offset


class Journal:
    """Several writes to one mission's state that all happen, or none; the ledger is brought up to date in the same one.

    `replace` and `remove` name whole files, `append` whole JSON lines. Nothing is touched before `commit`.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.contents: dict[str, bytes | None] = {}
        self.tails: dict[str, bytes] = {}

    def replace(self, path: str, data: bytes) -> None:
        """The file will have this content."""
        self.contents[path] = data

    def remove(self, path: str) -> None:
        """The file will be gone."""
        self.contents[path] = None

    def append(self, path: str, data: bytes) -> None:
        """These whole lines will stand at the end of the file; no lines, nothing to do."""
        if data:
            self.tails[path] = self.tails.get(path, b"") + data

    def commit(self, locked: bool = False) -> None:
        """Carry everything out; durable on return. `locked`: the caller holds the state lock already."""
        if not self.contents and not self.tails:
            return
        if locked:
            self._commit()
            return
        with files.Lock(self.layout.state_lock):
            self._commit()

    def _commit(self) -> None:
        finish_journal(self.layout)
        files.make_folder(self.layout.journal)
        ledger = read_ledger(self.layout)
        steps: list[list[Any]] = []
        try:
            for path, data in self.contents.items():
                self._stage(steps, path, "replace", data)
                note_in_ledger(self.layout, ledger, path, data)
            for path, tail in self.tails.items():
                self._stage_tail(steps, ledger, path, tail)
            self._stage(steps, self.layout.ledger, "replace", files.dump_json(ledger))
            files.stage(self.layout.journal + "/record.tmp", files.dump_json(steps))
            os.replace(self.layout.journal + "/record.tmp", self.layout.journal + "/record")
        except OSError:
            for name in files.names(self.layout.journal):
                files.remove(os.path.join(self.layout.journal, name))
            raise
        files.sync_folder(self.layout.journal)
        _carry_out(self.layout, steps)

    def _stage(self, steps: list[list[Any]], path: str, verb: str, data: bytes | None, offset: int = 0) -> None:
        if data is None:
            steps.append(["remove", path, "", 0])
            return
        staged = f"{self.layout.journal}/{len(steps)}"
        files.stage(staged, data)
        steps.append([verb, path, staged, offset])

    def _stage_tail(self, steps: list[list[Any]], ledger: dict[str, list[Any]], path: str, tail: bytes) -> None:
        old = (self.contents[path] if path in self.contents else files.read(path)) or b""
        kept = json_lines.healed(old)
        offset = min(len(kept), len(old.rstrip(b"\0")))
        self._stage(steps, path, "append", kept[offset:] + tail, offset)
        note_in_ledger(self.layout, ledger, path, kept + tail)


def finish_journal(layout: Layout) -> bool:
    """Carry out a committed record that a crash left behind; True where there was one. The caller holds the lock.

    Raises BrokenFile for a record that is not ours: one of ours was whole when it was renamed into place, and names only
    what lies in the mission."""
    record = layout.journal + "/record"
    if not os.path.exists(record):
        return False
    _carry_out(layout, _steps(layout, record))
    return True


def pending(layout: Layout, path: str) -> bytes | None:
    """The content that a record which a crash left behind gives the file; None where there is none, or it is done."""
    record = layout.journal + "/record"
    steps = _steps(layout, record) if os.path.exists(record) else []
    return next((files.read(staged) for verb, name, staged, _ in steps if (verb, name) == ("replace", path)), None)


def _steps(layout: Layout, record: str) -> list[list[Any]]:
    try:
        steps: Any = files.read_json(record)
        fault = "" if all(_is_step(layout, *step) for step in steps) else NO_RECORD
        line = 1
    except BrokenFile as broken:
        fault, line = broken.fault, broken.line or 1
    except TypeError:
        fault, line = NO_RECORD, 1
    if fault:
        raise BrokenFile(record, fault, line=line, remedy="Move it away; the next start settles what was under way.")
    return list(steps)


def _is_step(layout: Layout, verb: object, path: object, staged: object, offset: object) -> bool:
    """Whether it is a step that `Journal` writes."""
    if verb not in VERBS or type(path) is not str or type(staged) is not str or type(offset) is not int:
        return False
    inside = os.path.normpath(path) == path and path.startswith(layout.state + "/")
    kept = os.path.dirname(staged) == layout.journal and os.path.basename(staged).isdigit()
    return inside and offset >= 0 and (kept if verb != "remove" else not staged)


def _carry_out(layout: Layout, steps: list[list[Any]]) -> None:
    """Idempotent: a step that was carried out before the crash is recognised and passed over."""
    for verb, path, staged, offset in steps:
        files.make_folder(os.path.dirname(path))
        if verb == "remove":
            files.remove(path)
        elif verb == "replace" and os.path.exists(staged):
            os.replace(staged, path)
        elif verb == "append":
            _apply_tail(path, files.read(staged), offset)
    for folder in dict.fromkeys(os.path.dirname(path) for _, path, _, _ in steps):
        files.sync_folder(folder)
    os.unlink(layout.journal + "/record")
    for _, _, staged, _ in steps:
        if staged:
            files.remove(staged)


def _apply_tail(path: str, tail: bytes | None, offset: int) -> None:
    if tail is None:
        return
    descriptor = files.open_regular(path, os.O_RDWR | os.O_CREAT)
    try:
        if os.pread(descriptor, len(tail), offset) != tail:
            os.ftruncate(descriptor, offset)
            os.lseek(descriptor, offset, os.SEEK_SET)
            files.write_all(descriptor, tail)  # a full disk raises here, and the record stays until there is room
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_ledger(layout: Layout) -> dict[str, list[Any]]:
    """{path below .harness: [sha256, length in bytes]} of the live set and grown files, as the harness wrote them."""
    found = files.read_json(layout.ledger)
    if found is not None and not (isinstance(found, dict) and all(map(_is_row, found.values()))):
        raise BrokenFile(layout.ledger, "not a ledger", line=1, remedy=f"Make it anew: {command('doctor --fix')}")
    return found or {}


def _is_row(row: object) -> bool:
    return type(row) is list and [type(value) for value in row] == [str, int]


def note_in_ledger(layout: Layout, ledger: dict[str, list[Any]], path: str, data: bytes | None) -> None:
    """Bring one path up to date in a ledger held in memory; other paths than live and grown are not kept there."""
    if path not in layout.live() and path not in layout.grown():
        return
    name = os.path.relpath(path, layout.state)
    if data is None:
        ledger.pop(name, None)
    else:
        ledger[name] = [files.digest(data), len(data)]


def adopt(layout: Layout) -> dict[str, list[Any]]:
    """Take live set and grown files into the ledger as they are on disk: what people changed between runs stands."""
    ledger: dict[str, list[Any]] = {}
    for path in (*layout.live(), *layout.grown()):
        data = files.read(path)
        if data is not None:
            note_in_ledger(layout, ledger, path, data)
    if files.dump_json(ledger) != files.read(layout.ledger):
        files.replace(layout.ledger, files.dump_json(ledger))
    return ledger
