"""Takes the files that a turn has changed back to their sources: each is accepted, or named with the reason.

Every write expects the version of the manifest. A second call of one finalize goes on where the first one ended, and changes
nothing that is done; what is refused is moved out of the workspace and kept.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from harness.base import encoding
from harness.base.errors import BrokenFile, UsageFault, VersionConflict
from harness.filesystem.stored_files import FileValues, StoredFile
from harness.git import merges, new_secrets
from harness.state import files
from harness.stores.store import Key
from harness.team._compose import TeamThread, content, is_scratch
from harness.team._manifest import (
    MAX_FILE_BYTES,
    Manifest,
    ManifestEntry,
    folders_of,
    look_alike,
    path_fault,
    size_fault,
)
from harness.team._mounts import APPEND, WRITE, Access, TeamMount, mounts_at
from harness.team._outcomes import ACCEPTED, CONFLICT, INTENDED, MERGED, QUARANTINED, REFUSED, FileOutcome, OutcomeLog
from harness.team._runtime import RuntimeFolder

SCRATCH = "scratch"  # the outcome of a file that stays on this machine, of which no row is written
TRIES = 50  # of one write, against other writers
DIGEST_CHARS = 12  # in the name of a conflict file


class _Change(NamedTuple):
    """A path of the workspace, its entry of the manifest, the mounts there, its size, None if it is deleted, and its content,
    None also if it cannot be read."""

    path: str
    entry: ManifestEntry | None
    mounts: list[TeamMount]
    size: int | None
    data: bytes | None

    @property
    def is_deleted(self) -> bool:
        return self.size is None

    def outcome(self, kind: str, why: str = "") -> FileOutcome:
        return FileOutcome(path=self.path, outcome=kind, why=why, digest=files.digest(self.data or b""))


def reconcile(thread: TeamThread, runtime: RuntimeFolder, access: Access, finalize: str) -> list[FileOutcome]:
    """What became of every changed file, by path. `access` is asked for each file before its write; what it raises ends
    this call, and the next one goes on. Raises UsageFault for a workspace that is not hydrated, or of another tenant."""
    manifest = runtime.manifest()
    if manifest is None or manifest.tenant != thread.tenant or not runtime.has_workspace:
        raise UsageFault(f"{runtime.folder} has no hydrated workspace of {thread.tenant}. Begin the turn anew.")
    if "/" in finalize or path_fault(finalize):
        raise UsageFault(f"{finalize!r} is no id of a finalize.")
    log = OutcomeLog(f"{runtime.folder}/finalizes/{finalize}.jsonl")
    turn = _Reconciliation(thread, runtime, access, log, manifest)
    for change in turn.changes():
        turn.take(change)
    turn.give_back(finalize)
    return sorted(log.settled.values(), key=lambda one: one.path)


class _Reconciliation:
    """One finalize of a thread."""

    def __init__(
        self, thread: TeamThread, runtime: RuntimeFolder, access: Access, log: OutcomeLog, manifest: Manifest
    ) -> None:
        self.thread, self.runtime, self.access, self.log = thread, runtime, access, log
        self.values, self.entries = thread.values, manifest.entries
        self.known, self.spared = dict[str, str](), set[str]()
        self.listed, self.found, self.folders = set[Key](), set[str](), Counter[str]()
        for path in (*manifest.entries, *(one.prefix.rstrip("/") for one in thread.mounts if one.prefix)):
            look_alike(self.known, path)
        for row in log.settled.values():
            self._spare(row, look_alike(self.known, row.path))

    def changes(self) -> list[_Change]:
        """The files that differ from the manifest, without those that are settled."""
        sizes, found = self.runtime.sizes(), list[_Change]()
        gone = self.entries.keys() - sizes.keys()
        above = {folder for path in gone for folder in folders_of(path)}

        def order(path: str) -> tuple[int, str]:
            """What is deleted comes behind what is added, but for a folder in the place of a file, and a file of a folder."""
            is_instead = path in above or not gone.isdisjoint(folders_of(path))
            return 1 if path in gone else 2 if is_instead else 0, path

        for path in sorted({*sizes, *self.entries} - self.log.settled.keys(), key=order):
            entry, size = self.entries.get(path), sizes.get(path)
            data = self._read(path, size) if size is not None else None
            digest = "" if data is None else encoding.digest(data)
            is_rendered = entry and entry.generated and digest and self.runtime.base(digest)  # again, after a verb
            if not digest or not (is_rendered or (entry and entry.digest == digest)):
                found.append(_Change(path, entry, mounts_at(self.thread.mounts, path), size, data))
        return found

    def _read(self, path: str, size: int) -> bytes | None:
        try:
            return self.runtime.content(path) if 0 <= size <= MAX_FILE_BYTES else None
        except (OSError, BrokenFile):
            return None

    def take(self, change: _Change) -> None:
        """Settle one file."""
        outcome, why = self._refusal(change)
        if outcome == SCRATCH:
            return
        if outcome:
            self.log.add(row := change.outcome(outcome, why))
            self._spare(row)
        else:
            made = self._written(change)
            self._note(change.path, is_gone=change.is_deleted and made.outcome == ACCEPTED)
            self.log.add(made)

    def _refusal(self, change: _Change) -> tuple[str, str]:
        """(the outcome of a file that its source does not take, why); ("", "") if it may. The rules come in this order."""
        entry, top = change.entry, change.mounts[-1]
        if entry and entry.generated:
            return REFUSED, "It is rendered from the database: use the tools for goals and tasks."
        if entry and entry.mode not in (WRITE, APPEND):
            return REFUSED, "It is read-only."
        if not entry and is_scratch(change.path):
            return SCRATCH, ""
        if entry and entry.owner not in {one.source.owner for one in change.mounts}:
            return REFUSED, f"It belongs to {entry.owner}, which is no part of this thread."
        if entry and change.is_deleted and entry.owner != top.source.owner:
            return REFUSED, f"It belongs to {entry.owner}, and is not deleted for all others."
        if top.mode not in (WRITE, APPEND):
            return REFUSED, "No file can be added here: use Space/, memory/ or scratch/."
        if top.mode == APPEND and change.is_deleted:
            return REFUSED, "It grows only, and is not deleted."
        if self.access(top.source.kind, top.source.id) != WRITE:
            return REFUSED, f"There is no write access to {top.source.kind}/{top.source.folder} now."
        if fault := path_fault(change.path) or size_fault(change.size or 0):
            return REFUSED, f"It cannot be stored: {fault}."
        if change.is_deleted:
            return self._spared(change)
        if not entry:
            self._list(change.mounts)
        if alike := look_alike(self.known, change.path):
            self.spared.add(alike)
            return REFUSED, f"It looks like {alike}: use that name, or one that differs more."
        if not entry and (self.folders[change.path] or not self.found.isdisjoint(folders_of(change.path))):
            return REFUSED, "A folder is there where it is a file, or a file where it has a folder."
        if change.data is None:
            return REFUSED, "It is a link, or not a file that can be read."
        before = (self.runtime.base(entry.digest) if entry else None) or b""
        found = [one for one in new_secrets.secrets_in("", change.data or b"") if one.mark.encode() not in before]
        lines = ", ".join(f"line {one.line} has a secret ({one.rule})" for one in found)
        return (QUARANTINED, f"It is in quarantine: {lines}. Write it without that.") if found else ("", "")

    def _spare(self, row: FileOutcome, alike: str = "") -> None:
        if row.outcome in (REFUSED, QUARANTINED):
            self.spared |= {row.digest, alike}

    def _spared(self, change: _Change) -> tuple[str, str]:
        """As _refusal, of a deletion: what was renamed stays, if its new name is refused."""
        content = {change.entry.digest} if change.entry and change.entry.size else set[str]()
        if self.spared.isdisjoint({change.path, *folders_of(change.path), *content}):
            return "", ""
        return REFUSED, "It stays: what it was renamed to is refused, or looks like this name. Choose another one."

    def _list(self, mounts: Sequence[TeamMount]) -> None:
        """Know what other turns have added to these sources since this one began."""
        for one in (one for one in mounts if one.is_folder and one.names not in self.listed):
            self.listed.add(one.names)
            for path in (one.prefix + "/".join(names) for names in FileValues(self.thread.store, one.names).stamps()):
                look_alike(self.known, path)
                self._note(path)

    def _note(self, path: str, *, is_gone: bool = False) -> None:
        if (path in self.found) == is_gone:
            self.found.symmetric_difference_update({path})
            self.folders.update(dict.fromkeys(folders_of(path), -1 if is_gone else 1))

    def _written(self, change: _Change) -> FileOutcome:
        try:
            return self._deleted(change) if change.data is None else self._put(change, change.data)
        except (BrokenFile, OSError) as fault:
            if isinstance(fault, OSError) and fault.errno != errno.ENAMETOOLONG:
                raise
            why = fault.strerror if isinstance(fault, OSError) else " ".join(str(fault).split())
            return change.outcome(REFUSED, f"The store cannot keep it: {why}")

    def _target(self, change: _Change) -> tuple[Key, str]:
        """(the key that a write goes to, the version that it expects there; "" for none)."""
        key = change.mounts[-1].key(change.path)
        return key, change.entry.version if change.entry and change.entry.key == "/".join(key) else ""

    def _put(self, change: _Change, data: bytes) -> FileOutcome:
        key, expected = self._target(change)
        for _ in range(TRIES):
            head = self.values.get(key)
            if head and head.digest == encoding.digest(data):
                return change.outcome(ACCEPTED)
            if (head.stamp if head else "") == expected:
                made = data
            elif (merged := self._merged(change, data, key, head)) is None:
                break
            else:
                made = merged
            self.runtime.intend(made)
            self.log.add(FileOutcome(path=change.path, outcome=INTENDED, digest=encoding.digest(made)))
            try:
                if not head or head.digest != encoding.digest(made):
                    self.values.put(key, made, head)
                return change.outcome(ACCEPTED if made == data else MERGED).replace(digest=encoding.digest(made))
            except VersionConflict:
                self.log.intended.pop(change.path)  # it did not go in
        return self._beside(change, data, key)

    def _merged(self, change: _Change, data: bytes, key: Key, head: StoredFile | None) -> bytes | None:
        """The content with the changes of both sides; None if they conflict."""
        theirs = content(self.values, key, head) if head else None
        if head is None or theirs is None:
            return None
        intended = self.log.intended.get(change.path)  # by a call that was killed
        mine = self.runtime.intended(intended) if intended and change.mounts[-1].mode == APPEND else None
        if mine is not None and theirs.startswith(mine):
            return theirs
        begin = change.entry.size if change.entry else 0
        appends = change.entry is None or encoding.digest(data[:begin]) == change.entry.digest
        if change.mounts[-1].mode == APPEND and appends:
            return theirs + (b"" if theirs.endswith(b"\n") or not theirs else b"\n") + data[begin:]
        base = self.runtime.base(change.entry.digest) if change.entry else None
        return None if base is None else self._three_way(data, base, theirs)

    def _three_way(self, *sides: bytes) -> bytes | None:
        paths = [f"{self.runtime.merges}/{name}" for name in ("ours", "base", "theirs")]
        for path, data in zip(paths, sides, strict=True):
            files.replace_quickly(path, data)
        made = merges.merged_file(*paths)
        return made if made is None or len(made) <= MAX_FILE_BYTES else None

    def _beside(self, change: _Change, data: bytes, key: Key) -> FileOutcome:
        """Put the content under a name of its own beside the file that somebody else changed."""
        stem, dot, ending = key[-1].rpartition(".")
        digest = encoding.digest(data)[:DIGEST_CHARS]
        name = f"{stem}.conflict-{digest}.{ending}" if stem else f"{dot}{ending}.conflict-{digest}"
        try:
            self.values.put((*key[:-1], name), data, None)
        except VersionConflict:
            head = self.values.get((*key[:-1], name))
            if not head or head.digest != encoding.digest(data):
                return change.outcome(REFUSED, f"It changed in the source, and {name} exists: take that away.")
        return change.outcome(CONFLICT, f"It changed in the source meanwhile; your content is in {name}. Merge them.")

    def _deleted(self, change: _Change) -> FileOutcome:
        key, expected = self._target(change)
        head = self.values.get(key)
        try:
            if head and head.stamp == expected:
                self.values.delete(key, head)
            elif head:
                raise VersionConflict("/".join(key))
        except VersionConflict:
            return change.outcome(CONFLICT, "It changed in the source meanwhile, and is not deleted there.")
        return change.outcome(ACCEPTED)

    def give_back(self, finalize: str) -> None:
        """Move each file that the store has not taken out of the workspace, and put the one of the manifest there."""
        sizes = self.runtime.sizes()
        kept = [row for row in self.log.settled.values() if row.outcome in (REFUSED, QUARANTINED)]
        for one in kept:
            entry, size = self.entries.get(one.path), sizes.get(one.path)
            data = self._read(one.path, size) if size is not None else None
            if size is not None and (not entry or data is None or encoding.digest(data) != entry.digest):
                self.runtime.set_aside("quarantine" if one.outcome == QUARANTINED else "refused", finalize, one.path)
        for one in kept:
            entry = self.entries.get(one.path)
            now = self.thread.projections.get(one.path, self.runtime.base(entry.digest) if entry else None)
            if entry and now is not None:
                self.runtime.write(one.path, now, writable=entry.mode in (WRITE, APPEND))
