"""Writes the files that a turn has changed back to their sources: each is accepted, or reported with a reason.

Every write expects the version that the manifest has. A second call for a finalize continues where the first one ended, and
repeats nothing. Refused files are moved out of the workspace and kept.
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
from harness.team._compose import TeamThread, is_scratch, read_content
from harness.team._manifest import (
    MAX_FILE_BYTES,
    Manifest,
    ManifestEntry,
    parent_folders,
    path_fault,
    register_path,
    size_fault,
)
from harness.team._mounts import APPEND, WRITE, Access, TeamMount, mounts_at
from harness.team._outcomes import ACCEPTED, CONFLICT, INTENDED, MERGED, QUARANTINED, REFUSED, FileOutcome, OutcomeLog
from harness.team._runtime import RuntimeFolder

SCRATCH = "scratch"  # the outcome of a file that stays on this machine; it has no row
TRIES = 50  # of one write, against other writers
DIGEST_CHARS = 12  # in the name of a conflict file


class _Change(NamedTuple):
    """A changed path of the workspace. `entry`: of the manifest; `mounts`: those that the path belongs to; `size`: None if the
    file is deleted; `data`: its content, None also if it cannot be read."""

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
    """The outcome of every changed file, by path. `access` is called for each file before its write; what it raises ends this
    call, and the next call continues. Raises UsageFault for a workspace that is not hydrated, or of another tenant."""
    manifest = runtime.manifest()
    if manifest is None or manifest.tenant != thread.tenant or not runtime.has_workspace:
        raise UsageFault(f"{runtime.folder} has no hydrated workspace of {thread.tenant}. Begin the turn anew.")
    if "/" in finalize or path_fault(finalize):
        raise UsageFault(f"{finalize!r} is not the id of a finalize.")
    log = OutcomeLog(f"{runtime.folder}/finalizes/{finalize}.jsonl")
    turn = _Reconciliation(thread, runtime, access, log, manifest)
    for change in turn.changes():
        turn.settle(change)
    turn.give_back(finalize)
    return sorted(log.settled.values(), key=lambda one: one.path)


class _Reconciliation:
    """One finalize of a thread."""

    def __init__(
        self, thread: TeamThread, runtime: RuntimeFolder, access: Access, log: OutcomeLog, manifest: Manifest
    ) -> None:
        self.thread, self.runtime, self.access, self.log = thread, runtime, access, log
        self.values, self.entries = thread.values, manifest.entries
        self.known_paths, self.refused_content = dict[str, str](), set[str]()
        self.listed_sources, self.source_files, self.source_folders = set[Key](), set[str](), Counter[str]()
        for path in (*manifest.entries, *(one.prefix.rstrip("/") for one in thread.mounts if one.prefix)):
            register_path(self.known_paths, path)
        for row in log.settled.values():
            self._remember_refused(row, register_path(self.known_paths, row.path))

    def changes(self) -> list[_Change]:
        """The files that differ from the manifest and have no outcome yet."""
        sizes, found = self.runtime.sizes(), list[_Change]()
        gone = self.entries.keys() - sizes.keys()
        above = {folder for path in gone for folder in parent_folders(path)}

        def order(path: str) -> tuple[int, str]:
            """Deletions come after additions, except where a file replaces a folder or a folder a file."""
            replaces = path in above or not gone.isdisjoint(parent_folders(path))
            return 1 if path in gone else 2 if replaces else 0, path

        for path in sorted({*sizes, *self.entries} - self.log.settled.keys(), key=order):
            entry, size = self.entries.get(path), sizes.get(path)
            data = self._read(path, size) if size is not None else None
            digest = "" if data is None else encoding.digest(data)
            is_rendered = (
                entry and entry.generated and digest and self.runtime.base_content(digest)
            )  # again after a verb
            if not digest or not (is_rendered or (entry and entry.digest == digest)):
                found.append(_Change(path, entry, mounts_at(self.thread.mounts, path), size, data))
        return found

    def _read(self, path: str, size: int) -> bytes | None:
        try:
            return self.runtime.content(path) if 0 <= size <= MAX_FILE_BYTES else None
        except (OSError, BrokenFile):
            return None

    def settle(self, change: _Change) -> None:
        """Write one file to its source, or refuse it, and log the outcome."""
        outcome, why = self._refusal(change)
        if outcome == SCRATCH:
            return
        if outcome:
            self.log.add(row := change.outcome(outcome, why))
            self._remember_refused(row)
        else:
            made = self._write(change)
            self._count_file(change.path, is_gone=change.is_deleted and made.outcome == ACCEPTED)
            self.log.add(made)

    def _refusal(self, change: _Change) -> tuple[str, str]:
        """(the outcome of a file that its source does not accept, why); ("", "") if it does. The order of the rules counts."""
        entry, top = change.entry, change.mounts[-1]
        if entry and entry.generated:
            return REFUSED, "It is rendered from the database: use the tools for goals and tasks."
        if entry and entry.mode not in (WRITE, APPEND):
            return REFUSED, "It is read-only."
        if not entry and is_scratch(change.path):
            return SCRATCH, ""
        if entry and entry.owner not in {one.source.owner for one in change.mounts}:
            return REFUSED, f"It belongs to {entry.owner}, which is not part of this thread."
        if entry and change.is_deleted and entry.owner != top.source.owner:
            return REFUSED, f"It belongs to {entry.owner}, so it stays for all others."
        if top.mode not in (WRITE, APPEND):
            return REFUSED, "No file can be added here. Use Space/, memory/ or scratch/."
        if top.mode == APPEND and change.is_deleted:
            return REFUSED, "It can only grow, so it is not deleted."
        if self.access(top.source.kind, top.source.id) != WRITE:
            return REFUSED, f"This thread has no write access to {top.source.kind}/{top.source.folder} now."
        if fault := path_fault(change.path) or size_fault(change.size or 0):
            return REFUSED, f"It cannot be stored: {fault}."
        if change.is_deleted:
            return self._deletion_refusal(change)
        if not entry:
            self._list_source_files(change.mounts)
        if alike := register_path(self.known_paths, change.path):
            self.refused_content.add(alike)
            return REFUSED, f"Its name looks like {alike}. Use that name, or one that differs more."
        if not entry and (
            self.source_folders[change.path] or not self.source_files.isdisjoint(parent_folders(change.path))
        ):
            return REFUSED, "The source has a folder of its name, or a file where it has a folder."
        if change.data is None:
            return REFUSED, "It is a link, or cannot be read as a file."
        before = (self.runtime.base_content(entry.digest) if entry else None) or b""
        found = [one for one in new_secrets.secrets_in("", change.data or b"") if one.mark.encode() not in before]
        lines = ", ".join(f"line {one.line} has a secret ({one.rule})" for one in found)
        return (QUARANTINED, f"It is in quarantine: {lines}. Write it without the secret.") if found else ("", "")

    def _remember_refused(self, row: FileOutcome, alike: str = "") -> None:
        if row.outcome in (REFUSED, QUARANTINED):
            self.refused_content |= {row.digest, alike}

    def _deletion_refusal(self, change: _Change) -> tuple[str, str]:
        """As _refusal, for a deletion: a renamed file stays if its new name is refused."""
        digest = {change.entry.digest} if change.entry and change.entry.size else set[str]()
        if self.refused_content.isdisjoint({change.path, *parent_folders(change.path), *digest}):
            return "", ""
        return REFUSED, "It stays: its new name is refused, or looks like this one. Choose another name."

    def _list_source_files(self, mounts: Sequence[TeamMount]) -> None:
        """Add the files that these sources have now, also those of other turns."""
        for one in (one for one in mounts if one.is_folder and one.names not in self.listed_sources):
            self.listed_sources.add(one.names)
            for path in (one.prefix + "/".join(names) for names in FileValues(self.thread.store, one.names).stamps()):
                register_path(self.known_paths, path)
                self._count_file(path)

    def _count_file(self, path: str, *, is_gone: bool = False) -> None:
        if (path in self.source_files) == is_gone:
            self.source_files.symmetric_difference_update({path})
            self.source_folders.update(dict.fromkeys(parent_folders(path), -1 if is_gone else 1))

    def _write(self, change: _Change) -> FileOutcome:
        try:
            return self._delete(change) if change.data is None else self._put(change, change.data)
        except (BrokenFile, OSError) as fault:
            if isinstance(fault, OSError) and fault.errno != errno.ENAMETOOLONG:
                raise
            why = fault.strerror if isinstance(fault, OSError) else " ".join(str(fault).split())
            return change.outcome(REFUSED, f"The store cannot keep it: {why}")

    def _target(self, change: _Change) -> tuple[Key, str]:
        """(the key of a write, the version that it expects there, "" for no file)."""
        key = change.mounts[-1].key(change.path)
        return key, change.entry.version if change.entry and change.entry.key == "/".join(key) else ""

    def _put(self, change: _Change, data: bytes) -> FileOutcome:
        key, expected = self._target(change)
        for _ in range(TRIES):
            head = self.values.get(key)
            if head and head.digest == encoding.digest(data):
                return change.outcome(ACCEPTED)
            made = data if (head.stamp if head else "") == expected else self._merge(change, data, key, head)
            if made is None:
                break
            self.runtime.keep_intended(made)
            self.log.add(FileOutcome(path=change.path, outcome=INTENDED, digest=encoding.digest(made)))
            try:
                if not head or head.digest != encoding.digest(made):
                    self.values.put(key, made, head)
                return change.outcome(ACCEPTED if made == data else MERGED).replace(digest=encoding.digest(made))
            except VersionConflict:
                self.log.intended.pop(change.path)  # the store has not taken it
        return self._write_conflict_file(change, data, key)

    def _merge(self, change: _Change, data: bytes, key: Key, head: StoredFile | None) -> bytes | None:
        """The content with the changes of both sides; None if they conflict."""
        theirs = read_content(self.values, key, head) if head else None
        if head is None or theirs is None:
            return None
        intended = self.log.intended.get(change.path)  # of a call that was killed
        mine = self.runtime.intended_content(intended) if intended and change.mounts[-1].mode == APPEND else None
        if mine is not None and theirs.startswith(mine):
            return theirs
        begin = change.entry.size if change.entry else 0
        appends = change.entry is None or encoding.digest(data[:begin]) == change.entry.digest
        if change.mounts[-1].mode == APPEND and appends:
            return theirs + (b"" if theirs.endswith(b"\n") or not theirs else b"\n") + data[begin:]
        base = self.runtime.base_content(change.entry.digest) if change.entry else None
        return None if base is None else self._merge_files(data, base, theirs)

    def _merge_files(self, *sides: bytes) -> bytes | None:
        paths = [f"{self.runtime.merge_folder}/{name}" for name in ("ours", "base", "theirs")]
        for path, data in zip(paths, sides, strict=True):
            files.replace_quickly(path, data)
        made = merges.merged_file(*paths)
        return made if made is None or len(made) <= MAX_FILE_BYTES else None

    def _write_conflict_file(self, change: _Change, data: bytes, key: Key) -> FileOutcome:
        """Write the content to a file of its own, beside the file that somebody else changed."""
        stem, dot, ending = key[-1].rpartition(".")
        digest = encoding.digest(data)[:DIGEST_CHARS]
        name = f"{stem}.conflict-{digest}.{ending}" if stem else f"{dot}{ending}.conflict-{digest}"
        try:
            self.values.put((*key[:-1], name), data, None)
        except VersionConflict:
            head = self.values.get((*key[:-1], name))
            if not head or head.digest != encoding.digest(data):
                return change.outcome(REFUSED, f"It changed in the source, and {name} exists there. Remove {name}.")
        return change.outcome(CONFLICT, f"It changed in the source meanwhile; your content is in {name}. Merge them.")

    def _delete(self, change: _Change) -> FileOutcome:
        key, expected = self._target(change)
        head = self.values.get(key)
        try:
            if head and head.stamp == expected:
                self.values.delete(key, head)
            elif head:
                raise VersionConflict("/".join(key))
        except VersionConflict:
            return change.outcome(CONFLICT, "It changed in the source meanwhile, so it is not deleted there.")
        return change.outcome(ACCEPTED)

    def give_back(self, finalize: str) -> None:
        """Move each refused file out of the workspace, and restore the file of the manifest."""
        sizes = self.runtime.sizes()
        kept = [row for row in self.log.settled.values() if row.outcome in (REFUSED, QUARANTINED)]
        for one in kept:
            entry, size = self.entries.get(one.path), sizes.get(one.path)
            data = self._read(one.path, size) if size is not None else None
            if size is not None and (not entry or data is None or encoding.digest(data) != entry.digest):
                self.runtime.set_aside("quarantine" if one.outcome == QUARANTINED else "refused", finalize, one.path)
        for one in kept:
            entry = self.entries.get(one.path)
            now = self.thread.projections.get(one.path, self.runtime.base_content(entry.digest) if entry else None)
            if entry and now is not None:
                self.runtime.write(one.path, now, writable=entry.mode in (WRITE, APPEND))
