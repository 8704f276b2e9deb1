"""The sandboxes of an agent, one for each scope. One call at a time holds a sandbox, with copies of the workspace's files and its
own state."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TypeVar
from weakref import WeakValueDictionary

from harness.base import encoding
from harness.base.errors import BrokenFile, HarnessError, LockBusy, Unavailable, UsageFault, VersionConflict
from harness.base.record import Record
from harness.builtin.sessions import _places
from harness.builtin.sessions._placement import SHARED
from harness.builtin.sessions._placement import STATIC as FOLDERS
from harness.builtin.sessions._system_text import SystemTextSource
from harness.builtin.sessions._watch import Watch, turn
from harness.builtin.sessions.keys import STATE, SessionKeys, gate_of
from harness.builtin.tool_environment import RESULTS, ToolEnvironment
from harness.filesystem import sandbox, transfer
from harness.filesystem.composite import Composite
from harness.filesystem.protocol import FileContent, FileFault
from harness.filesystem.sandbox import RemoteShell
from harness.mission import config
from harness.state import files, names
from harness.stores import gate
from harness.stores.disk import DiskStore
from harness.stores.store import ABSENT, ANY, Store, StoreKey
from harness.workspace import grants, places
from harness.workspace.disk_reader import reader_of

T = TypeVar("T")

ID = re.compile(r"[0-9a-f]{16}([0-9a-f]{16})?")
REMOTE_ROOT = "~/.harness-sandboxes"  # the folder of sandboxes behind a prefix
LIMITS = {"memory_mb", "cpu_seconds", "processes"}
SCOPE = "{scope}"  # in a prefix, stands for the name of the scope
FILES, NOTES = "files", ".sandbox"  # in a sandbox: the root of the tools, and our own notes
ASSETS, STAMP, PART = ".assets", f"{NOTES}/saved", "part-"
KINDS = ("instructions", *FOLDERS)  # of the workspace's files that are copied in
COMMAND_SECONDS = 600.0  # limit of one command below
BUSY_SECONDS = 20  # in which the processes of a dead holder end: 8 s of silence, then its commands
MAX_OUTPUT_BYTES = 10_000_000  # of one command below
HOLD_LOCK = f"exec 9< . && flock -w {BUSY_SECONDS} 9 && echo held && exec sleep infinity"
DIGESTS = "find {paths} -type f -exec sha256sum -z {{}} + 2> /dev/null; true"
LISTING = f"find . -path ./{NOTES} -prune -o -printf '%P\\0%y%m %s %T@ %l\\0' | LC_ALL=C sort -z | sha256sum"
PACK = f"mkdir -p {NOTES} && tar -c --exclude=./{NOTES} . | gzip -1 | split -b 1M -d -a 6 - {NOTES}/{PART}"
UNPACK = f"rm -f {STAMP}; find . -mindepth 1 -maxdepth 1 ! -name {NOTES} -exec rm -rf {{}} + && cat {NOTES}/{PART}* | tar -xz"
SWEEP = f"rm -f {NOTES}/{PART}*"
UNSAVED = "The state of the sandbox is not saved in the store yet. It stays in its folder: {fault}"
HELD = "The sandbox of {scope} is in use by another session. Try again later."


class SandboxRecord(Record):
    """The record of a sandbox in a store. `id`: a part of the name of its folder; `saved`: the name of its saved state, "" for
    none."""

    id: str
    saved: str = ""


class Sandboxes:
    """The sandboxes of a store's scopes: in bubblewrap on this machine, or behind the command `prefix`. Each has a permanent
    folder. If the store is not a disk, it also has the state, so that the next call may be on another machine."""

    def __init__(
        self, prefix: str, store: Store, source: SystemTextSource, shared: Sequence[str], limits: Mapping[str, int]
    ) -> None:
        self.prefix, self.store, self.source, self.shared, self.limits = prefix, store, source, shared, limits
        if not limits.keys() <= LIMITS:
            raise UsageFault(f"sandbox_limits has the keys {', '.join(sorted(LIMITS))}, not {', '.join(limits)}.")
        if limits and prefix:
            raise UsageFault(f"sandbox_limits apply to a sandbox on this machine, not to one behind {prefix!r}.")
        self.layout = source.layout
        here = os.path.dirname(store.root) if isinstance(store, DiskStore) else self.layout.state
        self.root = os.path.join(here, names.SANDBOXES)
        self._known: WeakValueDictionary[str, RemoteShell] = WeakValueDictionary()

    def environment(self, keys: SessionKeys) -> ToolEnvironment:
        """The files and the shell of the sandbox; results and memory are in the store."""
        folders = {RESULTS: keys.results, **{name.strip("/"): (SHARED, name.strip("/")) for name in self.shared}}
        mounts = {f"{name}/": _places.stored_files(self.store, key, make=True) for name, key in folders.items()}
        memory = StoreKey(self.store, keys.memory)
        return ToolEnvironment(home=self.layout, memory=memory, filesystem=Composite(self._shell(keys), mounts))

    @contextlib.asynccontextmanager
    async def held(self, keys: SessionKeys, watch: Watch, report: Callable[[str], None]) -> AsyncIterator[None]:
        """Hold the sandbox for a call, alone across all processes. `report`: receives warnings. Raises Unavailable without
        bubblewrap, and if the other side cannot be reached."""
        place = gate.enter(self.store, gate_of(keys.sandbox))
        watch.add(place, lambda words: None)
        box: _HeldSandbox | None = None
        try:
            await turn(place)
            box = _HeldSandbox(self._shell(keys), StoreKey(self.store, keys.sandbox))
            await asyncio.to_thread(box.begin, _assets(self.source, keys.user), report)
            try:
                yield
            finally:
                await asyncio.shield(asyncio.to_thread(box.save, report))
        finally:
            if box:
                await asyncio.shield(asyncio.to_thread(box.home.close))
            watch.remove(place)
            place.leave()

    def _shell(self, keys: SessionKeys) -> RemoteShell:
        """The shell of a sandbox; all sessions of the scope share it."""
        name = f"{keys.scope}.{_record(StoreKey(self.store, keys.sandbox)).id}"
        if (known := self._known.get(name)) is None:
            known = self._known[name] = self._make_shell(keys.scope, name)
        return known

    def _make_shell(self, scope: str, name: str) -> RemoteShell:
        if self.prefix:
            return sandbox.remote_shell(shlex.split(self.prefix.replace(SCOPE, scope)), f"{REMOTE_ROOT}/{name}/{FILES}")
        if os.path.dirname(self.root) == self.layout.state:
            grants.begin(self.layout)
        files.make_folder(folder := os.path.join(self.root, name))
        known = {name: limit for name, limit in self.limits.items() if name != "memory_mb"}
        memory_bytes = self.limits.get("memory_mb", 0) * 1024 * 1024
        made = sandbox.sandbox(folder, network=config.load(self.layout).network, memory_bytes=memory_bytes, **known)
        return made.at(f"{made.root}/{FILES}")


class _HeldSandbox:
    """A sandbox during a call. `files`: its shell; `home`: a shell at the folder above; `at`: the key of its record."""

    def __init__(self, shell: RemoteShell, at: StoreKey) -> None:
        self.files, self.home = shell, shell.at(os.path.dirname(shell.root))
        self.at, self.scope = at, ".".join(at.key[:-1])
        self.record = _record(at)
        self.saves = not isinstance(at.store, DiskStore)

    def begin(self, assets: Mapping[str, bytes], report: Callable[[str], None]) -> None:
        """Lock it, load the saved state if another machine saved it, and copy the files of the workspace in."""
        self._lock()
        if self.saves:
            self._restore()
        for fault in self._write_assets(assets):
            report(fault)

    def _lock(self) -> None:
        """Lock its folder until the connection ends, because a holder that lost its place at the gate may not know it yet."""
        job = self.home.start(HOLD_LOCK)
        if isinstance(job, FileFault):
            raise Unavailable(job.text)
        while not (said := job.page().data):
            if job.status() is not None and not (said := job.page().data):
                raise LockBusy(HELD.format(scope=self.scope))
            time.sleep(0.005)
        if said != b"held\n":
            raise Unavailable(f"The sandbox cannot be locked: {said.decode('utf-8', 'replace').strip()}")

    def _write_assets(self, assets: Mapping[str, bytes]) -> list[str]:
        """Write the files of the workspace that differ, and delete those that it no longer has; returns faults."""
        known = {path for path in self._read_note(ASSETS).split("\0") if path}
        tops = {f"./{top if (top := path.split('/')[0]) in FOLDERS else path}" for path in assets}
        found = self._run(self.files, DIGESTS.format(paths=shlex.join(sorted(tops)))) if tops else ""
        there = {row[66:].removeprefix("./"): row[:64] for row in found.split("\0")}
        for path in known - assets.keys():
            self.files.delete(path)
        if known != assets.keys():
            self.home.write(ASSETS, "\0".join(assets).encode("utf-8", "surrogateescape"))
        changed = {path: data for path, data in assets.items() if there.get(path) != encoding.digest(data)}
        return [one.text for one in transfer.upload(self.files, changed).values() if isinstance(one, FileFault)]

    def _restore(self) -> None:
        """Load the saved state if the folder is in another one. Changes after the saved state stay."""
        saved = self.record.saved
        if not saved or self._read_note(STAMP).split(" ")[0] == saved:
            return
        self._run(self.home, SWEEP)
        for key in self.at.store.list((*self.at.key, saved)):
            if (known := self.at.store.get(key)) is not None:
                _require(self.home.write(f"{NOTES}/{key[-1]}", known.data))
        self._run(self.home, UNPACK)
        self._stamp(saved)

    def save(self, report: Callable[[str], None]) -> None:
        """Save its state in the store if it changed. If that fails, the folder keeps the state for the next call."""
        if not self.saves:
            return
        try:
            if self._read_note(STAMP) != f"{self.record.saved} {self._run(self.home, LISTING)}":
                self._save_as(os.urandom(8).hex())
        except HarnessError as fault:
            report(UNSAVED.format(fault=fault))

    def _save_as(self, name: str) -> None:
        """Write the parts below a new name, then the record with that name; then remove older parts."""
        store, key = self.at
        self._run(self.home, f"{SWEEP}; {PACK}")
        for part in self._run(self.home, f"cd {NOTES} && ls | grep ^{PART}").split():
            store.put((*key, name, part), _require(transfer.read_whole(self.home, f"{NOTES}/{part}")).data, ANY)
        version = known.version if (known := store.get((*key, STATE))) else ABSENT
        if _record(self.at) != self.record:
            raise LockBusy(HELD.format(scope=self.scope))
        store.put((*key, STATE), encoding.dump_json(self.record.replace(saved=name).asdict()), version)
        self._stamp(name)
        for one in store.list(key):
            if len(one) == len(key) + 2 and one[-2] != name:
                store.delete(one, ANY)

    def _stamp(self, saved: str) -> None:
        """Note that the folder is in this saved state."""
        listing = self._run(self.home, f"{SWEEP}; {LISTING}")
        _require(self.home.write(STAMP, f"{saved} {listing}".encode()))

    def _read_note(self, path: str) -> str:
        found = transfer.read_whole(self.home, path)
        return found.data.decode("utf-8", "surrogateescape") if isinstance(found, FileContent) else ""

    def _run(self, shell: RemoteShell, command: str) -> str:
        """The output of a command. Raises Unavailable if it fails."""
        found = shell.execute(f"set -o pipefail; {command}", seconds=COMMAND_SECONDS, most=MAX_OUTPUT_BYTES)
        if isinstance(found, FileFault) or found.exit:
            said = found.text if isinstance(found, FileFault) else found.stderr.decode("utf-8", "replace").strip()
            raise Unavailable(f"The sandbox of {self.scope} does not work: {said}")
        return found.stdout.decode("utf-8", "surrogateescape")


def _record(at: StoreKey) -> SandboxRecord:
    """The record in the store; a new one if there is none. Raises BrokenFile."""
    key = (*at.key, STATE)
    if (known := at.store.get(key)) is None:
        made = SandboxRecord(id=os.urandom(8).hex())
        with contextlib.suppress(VersionConflict):
            at.store.put(key, encoding.dump_json(made.asdict()), ABSENT)
        return _record(at)
    where = at.store.describe(key)
    row = encoding.parse_json(known.data, where)
    if not isinstance(row, dict) or set(row) != {"id", "saved"} or not ID.fullmatch(f"{row['id']}{row['saved']}"):
        raise BrokenFile(where, "it is not the record of a sandbox", remedy="Remove it; the sandbox then begins empty.")
    return SandboxRecord(**row)


def _assets(source: SystemTextSource, user: str) -> dict[str, bytes]:
    """{path: content} of the workspace's files in a user's sandbox: those of the store override those of the folder."""
    reader, own = reader_of(source.layout, "", user, (), None), f"{places.folder_of_user(user)}/"
    found = {**reader.accepted.read(reader.paths), **{path: one.data for path, one in source.over().items()}}
    shown = [path for path in found if path.startswith(own) or not path.startswith(f"{places.USERS}/")]
    return {path: found[path] for path in shown if places.kind_of(path, ()) in KINDS}


def _require(found: T | FileFault) -> T:
    if isinstance(found, FileFault):
        raise Unavailable(found.text)
    return found
