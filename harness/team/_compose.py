"""Composes the workspace of a turn by reference, a manifest without a copy, and hydrates it where the agent runs.

A listing of each source says which files have changed. Heads of these alone are read, and their content only where the local
file, hashed again, is another one. A hydration that was killed is finished by the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from harness.base import clock, encoding
from harness.base.errors import BrokenFile, UsageFault, VersionConflict
from harness.filesystem.stored_files import FileValues, PartGone, StoredFile
from harness.stores.store import ANY, Key, Store
from harness.team._manifest import MAX_FILE_BYTES, Manifest, ManifestEntry, manifest_fault, read_manifest
from harness.team._mounts import (
    APPEND,
    PROJECTION,
    READ,
    WRITE,
    Access,
    TeamMount,
    TeamSource,
    mounts_at,
    mounts_of,
    names_of,
)
from harness.team._runtime import RuntimeFolder

AT_ONCE = 16
TRIES = 10  # of a turn whose sources change while it begins
SCRATCH = "scratch"  # the folder at the root for what no source takes
CACHES = {"__pycache__", "node_modules"}
MANIFEST_NAME, TIME_NAME = ".hydrate_manifest.json", ".rendered_at"


class TeamThread:
    """A thread's sources in a store. `tenant`: its folder; `sources`: the agent, space, user, thread, and delegates;
    `projections`: {path: content} rendered from the database."""

    def __init__(
        self, store: Store, tenant: str, sources: Sequence[TeamSource], projections: Mapping[str, bytes] | None = None
    ) -> None:
        self.store, self.tenant, self.sources = store, tenant, sources
        self.values, self.projections = FileValues(store, ()), projections or {}
        self.mounts = mounts_of(tenant, sources)
        self.own = next((names_of(tenant, one) for one in sources if one.kind == "thread"), ())
        if not self.own:
            raise UsageFault("A workspace is composed for a thread, and none is among the sources.")


def prepare(thread: TeamThread, runtime: RuntimeFolder, access: Access) -> Manifest:
    """Compose and hydrate the workspace of the next turn, again if sources change meanwhile. Raises VersionConflict if they
    do so all the time; after any error the next call goes on."""
    key, made = (*thread.own, MANIFEST_NAME), runtime.manifest()
    if made is None and (saved := thread.store.get(key)):
        made = read_manifest(saved.data, thread.store.describe(key))
    for _ in range(TRIES):
        try:
            made = compose(thread, access, made, runtime.keep)
            hydrate(thread, made, runtime)
        except VersionConflict:
            continue
        for one in mounts_of(thread.tenant, thread.sources, access):
            if one.is_folder and one.mode == WRITE:
                runtime.make(one.prefix)
        thread.store.put(key, made.to_bytes(), ANY)
        thread.store.put((*thread.own, TIME_NAME), f"{clock.now()}\n".encode(), ANY)
        return made
    raise VersionConflict(thread.store.describe(thread.own))


def compose(
    thread: TeamThread, access: Access, known: Manifest | None = None, keep: Callable[[bytes], None] = lambda _: None
) -> Manifest:
    """The manifest of all files that the thread's sources have now. Of those that `known` has in the same version nothing is
    read. `keep` takes content that was read. Raises UsageFault for files that exclude each other."""
    mounts = mounts_of(thread.tenant, thread.sources, access)
    found = _listed(thread, mounts)
    before = {(one.key, one.version): one for one in known.entries.values()} if known else {}
    unread = list[ManifestEntry]()
    for one in found.values():
        if same := before.get((one.key, one.version)):
            one.digest, one.size = same.digest, same.size
        else:
            unread.append(one)

    def read(entry: ManifestEntry) -> None:
        if head := thread.values.get(tuple(entry.key.split("/"))):
            entry.version, entry.digest, entry.size = head.stamp, head.digest, head.size
            keep(head.data) if head.data is not None else None
        else:
            del found[entry.path]

    with ThreadPoolExecutor(AT_ONCE) as together:
        list(together.map(read, unread))
    _publish(thread, mounts, found)
    made = Manifest(tenant=thread.tenant, entries=found)
    if fault := manifest_fault(made):
        raise UsageFault(f"{fault}.")
    return made


def _entry(path: str, mount: TeamMount, key: Key, version: str, mode: str) -> ManifestEntry:
    """An entry without its content."""
    of = {"owner": mount.source.owner, "key": "/".join(key), "version": version, "mode": mode}
    return ManifestEntry(path=path, digest="", size=0, generated=mode == PROJECTION, **of)


def _listed(thread: TeamThread, mounts: Sequence[TeamMount]) -> dict[str, ManifestEntry]:
    """{path: its entry, yet without content} of every file that the workspace shows; one listing a source."""
    stamps = dict[Key, str]()
    for root in {names_of(thread.tenant, one.source) for one in mounts if one.mode}:
        stamps |= {root + names: stamp for names, stamp in FileValues(thread.store, root).stamps().items()}
    shown = dict[str, ManifestEntry]()
    for mount in mounts:  # a later one is on top
        for key, stamp in stamps.items():
            if (path := mount.path(key)) and mount in (at := mounts_at(mounts, path)):
                shown[path] = _entry(path, mount, key, stamp, at[-1].mode or READ)
    return shown


def _publish(thread: TeamThread, mounts: Sequence[TeamMount], found: dict[str, ManifestEntry]) -> None:
    """Put projections that are not in the store as they are now."""
    for path, data in thread.projections.items():
        if path not in found or found[path].digest != encoding.digest(data):
            mount = mounts_at(mounts, path)[-1]
            key = mount.key(path)
            head = thread.values.put(key, data, thread.values.get(key))
            made = _entry(path, mount, key, head.stamp, mount.mode)
            found[path] = made.replace(digest=head.digest, size=head.size)


def is_scratch(path: str) -> bool:
    """Whether a new file stays on this machine: below scratch/, a cache, or hidden, as the logs of sessions are."""
    names = path.split("/")
    return names[0] == SCRATCH or any(name[0] == "." or name in CACHES for name in names)


def hydrate(thread: TeamThread, manifest: Manifest, runtime: RuntimeFolder) -> int:
    """Make the workspace what the manifest says; returns the number of files that were fetched. Local changes that no
    finalize took are set aside, below `refused/`; scratch files stay. Raises VersionConflict if a source has changed since."""
    runtime.begin()
    wanted = dict(manifest.entries)
    for path, size in runtime.sizes().items():
        entry = wanted.get(path)
        if entry is None and is_scratch(path):
            continue
        digest = encoding.digest(runtime.content(path)) if 0 <= size <= MAX_FILE_BYTES else ""
        if entry and digest == entry.digest:
            del wanted[path]
        elif digest and runtime.base(digest) is not None:
            runtime.remove(path)
        else:
            runtime.set_aside("refused", "unfinished", path)

    def place(entry: ManifestEntry) -> bool:
        data = runtime.base(entry.digest)
        if is_fetched := data is None:
            data = _fetched(thread, entry)
            runtime.keep(data)
        assert data is not None, "it was kept or fetched"
        runtime.write(entry.path, data, writable=entry.mode in (WRITE, APPEND))
        return is_fetched

    with ThreadPoolExecutor(AT_ONCE) as together:
        count = sum(together.map(place, wanted.values()))
    runtime.end(manifest)
    return count


def _fetched(thread: TeamThread, entry: ManifestEntry) -> bytes:
    """The content of an entry. Raises VersionConflict if it changed since, BrokenFile if it is not what its head says."""
    key = tuple(entry.key.split("/"))
    head = thread.values.get(key)
    data = content(thread.values, key, head) if head and head.stamp == entry.version else None
    if data is None:
        raise VersionConflict(thread.store.describe(key))
    if encoding.digest(data) != entry.digest:
        raise BrokenFile(thread.store.describe(key), "its content is not what it was written with")
    return data


def content(values: FileValues, key: Key, head: StoredFile) -> bytes | None:
    """The content of a stored file; None if it was replaced meanwhile."""
    try:
        return values.content(key, head)
    except PartGone:
        return None
