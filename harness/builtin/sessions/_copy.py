"""Copies all sessions, memories and files of one store to another, checked by digest; a second call copies the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness.base import encoding
from harness.base.errors import VersionConflict
from harness.base.record import Record
from harness.builtin.sessions import keys as of_sessions
from harness.builtin.sessions import state as states
from harness.builtin.sessions._placement import SHARED
from harness.builtin.sessions._places import stored_files
from harness.builtin.sessions.keys import STATE, WORKSPACE, gate_of
from harness.filesystem.keyvalue import KeyValueFiles
from harness.filesystem.protocol import FileFault, Filesystem
from harness.filesystem.transfer import read_whole
from harness.state import names
from harness.state.layout import Layout
from harness.stores import log as logs
from harness.stores.log import Appending
from harness.stores.store import ABSENT, Key, Store, Value
from harness.workspace.disk_reader import reader_of
from harness.workspace.places import ROOTS

FILES, RESULTS = "_files", "results"
ALL = 10**9  # entries of a folder
COPIED, THERE = "copied", "there already"
DIFFERENT, FAILED = "different there, left as it is", "not as it was after the copy"


class CopiedValue(Record):
    """One value: where it is in the target, its bytes, and what was done (one of those above)."""

    where: str
    bytes: int
    what: str


def copied(source: Store, target: Store, *, dry_run: bool) -> Iterator[CopiedValue]:
    """Copy every value that the target lacks, states last, so that a session exists once all of it is copied. With `dry_run`
    nothing is written. Gates are not copied."""
    found = source.list(())
    for prefix in dict.fromkeys(filter(None, map(_folder_of, found))):
        yield from _files(source, target, prefix, dry_run=dry_run)
    rest = [key for key in found if not _folder_of(key) and key != gate_of(key[:-1])]
    for key in dict.fromkeys(filter(None, map(_log_of, rest))):
        yield _log(source, target, key, dry_run=dry_run)
    for key in sorted((key for key in rest if not _log_of(key)), key=lambda key: key[2:] == (STATE,)):
        known = source.get(key)
        if known is not None:
            yield _value(target, key, _moved(source, target, key, known), dry_run=dry_run)


def _folder_of(key: Key) -> Key:
    """The prefix of the files that a key belongs to; () for another key. A disk keeps them as they are, other stores in parts."""
    if key[0] in (SHARED, *WORKSPACE):
        return key[:2] if key[0] == SHARED else key[:1]
    at = key.index(FILES) if FILES in key[:-1] else 2 if key[2:3] == (RESULTS,) and len(key) > 3 else -1
    return key[: at + 1]


def _log_of(key: Key) -> Key:
    """The key of the log that a key is, or is a part of; () for another key."""
    forms = ((3, key[2:3] == ("log.jsonl",)), (4, key[2:3] == ("compactions",)),
             (5, key[2:3] == ("tasks",) and key[4:5] == (names.TURNS,)))  # fmt: skip
    return next((key[:count] for count, fits in forms if fits), ())


def _files(source: Store, target: Store, prefix: Key, *, dry_run: bool) -> Iterator[CopiedValue]:
    """Copy the files below a prefix; a link is none, and what cannot be read whole is said to have failed."""
    below, above = stored_files(source, prefix, make=False), stored_files(target, prefix, make=not dry_run)
    for path in _paths(below, "."):
        found = read_whole(below, path)
        if isinstance(found, FileFault):
            yield CopiedValue(where=source.describe((*prefix, *path.split("/"))), bytes=0, what=FAILED)
        else:
            yield _file(target, above, (*prefix, *path.split("/")), path, found.data, dry_run=dry_run)


def _paths(below: Filesystem, folder: str) -> Iterator[str]:
    found = below.ls(folder, ALL)
    for one in () if isinstance(found, FileFault) else found.entries:
        if one.kind == "folder":
            yield from _paths(below, one.path)
        elif one.kind == "file":
            yield one.path


def _file(target: Store, above: Filesystem, key: Key, path: str, data: bytes, *, dry_run: bool) -> CopiedValue:
    def read() -> bytes | None:
        found = read_whole(above, path)
        return None if isinstance(found, FileFault) else found.data

    return _written(target, key, data, read, lambda: above.write(path, data, create=True), dry_run=dry_run)


def static(layout: Layout, target: Store, *, dry_run: bool) -> Iterator[CopiedValue]:
    """Copy the files of a workspace in a folder to the target, where they lie over those of every folder."""
    reader, above = reader_of(layout, "", "", (), None), KeyValueFiles(target, WORKSPACE)
    paths = [path for path in reader.paths if path.split("/")[0] in ROOTS]
    for path, data in reader.accepted.read(paths).items():
        yield _file(target, above, (*WORKSPACE, *path.split("/")), path, data, dry_run=dry_run)


def _moved(source: Store, target: Store, key: Key, known: Value) -> bytes:
    """The bytes of a value in the target: the position in a state is of its store's kind, so the log is read from its start."""
    if key[2:] != (STATE,) or isinstance(source, Appending) == isinstance(target, Appending):
        return known.data
    row = encoding.parse_json(known.data, source.describe(key))
    made = states.parse(known, source.describe(key), of_sessions.session_keys(row["user"], row["session"]))
    return made.replace(part=0).dumped()


def _log(source: Store, target: Store, key: Key, *, dry_run: bool) -> CopiedValue:
    data = logs.read(source, key).data

    def read() -> bytes | None:
        return logs.read(target, key).data if logs.exists(target, key) else None

    if not data:
        return CopiedValue(where=target.describe(key), bytes=0, what=THERE)
    return _written(target, key, data, read, lambda: logs.append(target, key, data, 0), dry_run=dry_run)


def _value(target: Store, key: Key, data: bytes, *, dry_run: bool) -> CopiedValue:
    def read() -> bytes | None:
        known = target.get(key)
        return known.data if known else None

    return _written(target, key, data, read, lambda: target.put(key, data, ABSENT), dry_run=dry_run)


def _written(
    target: Store,
    key: Key,
    data: bytes,
    read: Callable[[], bytes | None],
    write: Callable[[], object],
    *,
    dry_run: bool,
) -> CopiedValue:
    there, what = read(), COPIED
    if there is not None:
        what = THERE if there == data else DIFFERENT
    elif not dry_run:
        try:
            write()
        except VersionConflict:
            what = DIFFERENT
        if what == COPIED and encoding.digest(read() or b"") != encoding.digest(data):
            what = FAILED
    return CopiedValue(where=target.describe(key), bytes=len(data), what=what)
