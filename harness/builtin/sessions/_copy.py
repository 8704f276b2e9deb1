"""Copies all sessions, memories and files of one store to another, checked by digest; a second call goes on with what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness.base import encoding
from harness.base.errors import VersionConflict
from harness.base.record import Record
from harness.builtin.sessions import keys as of_sessions
from harness.builtin.sessions import state as states
from harness.builtin.sessions.keys import STATE, WORKSPACE
from harness.filesystem.keyvalue import KeyValueFiles
from harness.filesystem.protocol import FileFault
from harness.filesystem.transfer import whole
from harness.state.layout import Layout
from harness.stores import log as logs
from harness.stores.log import Appending
from harness.stores.store import ABSENT, Key, Store, Value
from harness.workspace.disk_reader import reader_of
from harness.workspace.places import ROOTS

GATES, LOGS = "gate.json", ".jsonl"
COPIED, THERE, DIFFERENT, FAILED = (
    "copied",
    "there already",
    "different there, left as it is",
    "not as it was after the copy",
)


class CopiedValue(Record):
    """One value: where it is in the target, its bytes, and what was done (one of those above)."""

    where: str
    bytes: int
    what: str


def copied(source: Store, target: Store, *, dry_run: bool) -> Iterator[CopiedValue]:
    """Copy every value that the target lacks, states last, so that a session is there when all of it is. With `dry_run` nothing
    is written. A gate belongs to its store and stays."""
    found = [key for key in source.list(()) if key[-1] != GATES]
    one_log = [key for key in found if key[-1].endswith(LOGS)]
    parts = dict.fromkeys(key[:-1] for key in found if len(key) > 1 and key[-2].endswith(LOGS))
    for key in [*one_log, *parts]:
        yield _log(source, target, key, dry_run=dry_run)
    rest = [key for key in found if key not in one_log and key[:-1] not in parts]
    for key in sorted(rest, key=lambda key: key[-1] == STATE and len(key) == 3):
        known = source.get(key)
        if known is not None:
            yield _value(target, key, _moved(source, target, key, known), dry_run=dry_run)


def static(layout: Layout, target: Store, *, dry_run: bool) -> Iterator[CopiedValue]:
    """Copy the files of a workspace in a folder to the target, where they lie over those of every folder."""
    reader, above = reader_of(layout, "", "", (), None), KeyValueFiles(target, WORKSPACE)
    paths = [path for path in reader.paths if path.split("/")[0] in ROOTS]
    for path, data in reader.accepted.read(paths).items():

        def read(path: str = path) -> bytes | None:
            found = whole(above, path)
            return None if isinstance(found, FileFault) else found.data

        def write(path: str = path, data: bytes = data) -> object:
            return above.write(path, data, create=True)

        yield _written(target, (*WORKSPACE, *path.split("/")), data, read, write, dry_run=dry_run)


def _moved(source: Store, target: Store, key: Key, known: Value) -> bytes:
    """The bytes of a value in the target: the position in a state is of its store's kind, so the log is read from its start."""
    if key[-1] != STATE or len(key) != 3 or isinstance(source, Appending) == isinstance(target, Appending):
        return known.data
    row = encoding.parse_json(known.data, source.describe(key))
    made = states.parse(known, source.describe(key), of_sessions.keys(row["user"], row["session"]))
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
