"""Composes the workspace of a turn as a manifest of references, and hydrates it where the agent runs.

One listing of each source shows which files changed. Only their heads are read, and the content only if the local file, hashed
again, differs. The next hydration finishes one that was killed.
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
    source_key,
)
from harness.team._runtime import RuntimeFolder

CONCURRENT_READS = 16
TRIES = 10  # of a turn whose sources change while it begins
SCRATCH = "scratch"  # the folder at the root for files that go to no source
CACHES = {"__pycache__", "node_modules"}
MANIFEST_NAME, TIME_NAME = ".hydrate_manifest.json", ".rendered_at"


class TeamThread:
    """A thread and its sources in a store. `tenant`: the tenant's folder; `sources`: the agent, space, user, thread, and
    delegates; `projections`: {path: content}, rendered from the database."""

    def __init__(
        self, store: Store, tenant: str, sources: Sequence[TeamSource], projections: Mapping[str, bytes] | None = None
    ) -> None:
        self.store, self.tenant, self.sources = store, tenant, sources
        self.values, self.projections = FileValues(store, ()), projections or {}
        self.mounts = mounts_of(tenant, sources)
        self.key = next((source_key(tenant, one) for one in sources if one.kind == "thread"), ())
        if not self.key:
            raise UsageFault("A workspace needs a thread among its sources.")


def prepare(thread: TeamThread, runtime: RuntimeFolder, access: Access) -> Manifest:
    """Compose and hydrate the workspace of the next turn, and repeat it if sources change meanwhile. Raises VersionConflict if
    they keep changing; after any error the next call continues."""
    key, manifest = (*thread.key, MANIFEST_NAME), runtime.manifest()
    if manifest is None and (saved := thread.store.get(key)):
        manifest = read_manifest(saved.data, thread.store.describe(key))
    for _ in range(TRIES):
        try:
            manifest = compose(thread, access, manifest, runtime.keep_base)
            hydrate(thread, manifest, runtime)
        except VersionConflict:
            continue
        for one in mounts_of(thread.tenant, thread.sources, access):
            if one.is_folder and one.mode == WRITE:
                runtime.make_folder(one.prefix)
        thread.store.put(key, manifest.to_bytes(), ANY)
        thread.store.put((*thread.key, TIME_NAME), f"{clock.now()}\n".encode(), ANY)
        return manifest
    raise VersionConflict(thread.store.describe(thread.key))


def compose(
    thread: TeamThread, access: Access, known: Manifest | None = None, keep: Callable[[bytes], None] = lambda _: None
) -> Manifest:
    """The manifest of all files that the thread's sources have now. Files that `known` has in the same version are not read
    again. `keep` receives the content that was read. Raises UsageFault for files that exclude each other."""
    mounts = mounts_of(thread.tenant, thread.sources, access)
    found = _list_sources(thread, mounts)
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

    with ThreadPoolExecutor(CONCURRENT_READS) as pool:
        list(pool.map(read, unread))
    _publish_projections(thread, mounts, found)
    manifest = Manifest(tenant=thread.tenant, entries=found)
    if fault := manifest_fault(manifest):
        raise UsageFault(f"{fault}.")
    return manifest


def _entry(path: str, mount: TeamMount, key: Key, version: str, mode: str) -> ManifestEntry:
    """An entry without the digest and size of its content."""
    of = {"owner": mount.source.owner, "key": "/".join(key), "version": version, "mode": mode}
    return ManifestEntry(path=path, digest="", size=0, generated=mode == PROJECTION, **of)


def _list_sources(thread: TeamThread, mounts: Sequence[TeamMount]) -> dict[str, ManifestEntry]:
    """{path: entry without digest and size} of every file that the workspace shows, from one listing of each source."""
    stamps = dict[Key, str]()
    for root in {source_key(thread.tenant, one.source) for one in mounts if one.mode}:
        stamps |= {root + names: stamp for names, stamp in FileValues(thread.store, root).stamps().items()}
    shown = dict[str, ManifestEntry]()
    for mount in mounts:  # later mounts are on top
        for key, stamp in stamps.items():
            if (path := mount.path(key)) and mount in (at := mounts_at(mounts, path)):
                shown[path] = _entry(path, mount, key, stamp, at[-1].mode or READ)
    return shown


def _publish_projections(thread: TeamThread, mounts: Sequence[TeamMount], found: dict[str, ManifestEntry]) -> None:
    """Write projections to the store if it has other content."""
    for path, data in thread.projections.items():
        if path not in found or found[path].digest != encoding.digest(data):
            mount = mounts_at(mounts, path)[-1]
            key = mount.key(path)
            head = thread.values.put(key, data, thread.values.get(key))
            entry = _entry(path, mount, key, head.stamp, mount.mode)
            found[path] = entry.replace(digest=head.digest, size=head.size)


def is_scratch(path: str) -> bool:
    """Whether a new file stays on this machine: it is below scratch/, in a cache, or hidden, such as the log of a session."""
    names = path.split("/")
    return names[0] == SCRATCH or any(name[0] == "." or name in CACHES for name in names)


def hydrate(thread: TeamThread, manifest: Manifest, runtime: RuntimeFolder) -> int:
    """Make the workspace match the manifest; returns the number of files that were fetched. Local changes that no finalize
    has settled are moved to `refused/`; scratch files stay. Raises VersionConflict if a source has changed since."""
    runtime.begin_hydration()
    wanted = dict(manifest.entries)
    for path, size in runtime.sizes().items():
        entry = wanted.get(path)
        if entry is None and is_scratch(path):
            continue
        digest = encoding.digest(runtime.content(path)) if 0 <= size <= MAX_FILE_BYTES else ""
        if entry and digest == entry.digest:
            del wanted[path]
        elif digest and runtime.base_content(digest) is not None:
            runtime.remove(path)
        else:
            runtime.set_aside("refused", "unfinished", path)

    def place(entry: ManifestEntry) -> bool:
        data = runtime.base_content(entry.digest)
        if is_fetched := data is None:
            data = _fetch(thread, entry)
            runtime.keep_base(data)
        assert data is not None, "it was kept or fetched"
        runtime.write(entry.path, data, writable=entry.mode in (WRITE, APPEND))
        return is_fetched

    with ThreadPoolExecutor(CONCURRENT_READS) as pool:
        count = sum(pool.map(place, wanted.values()))
    runtime.end_hydration(manifest)
    return count


def _fetch(thread: TeamThread, entry: ManifestEntry) -> bytes:
    """The content of an entry. Raises VersionConflict if it has changed, and BrokenFile if it does not match its digest."""
    key = tuple(entry.key.split("/"))
    head = thread.values.get(key)
    data = read_content(thread.values, key, head) if head and head.stamp == entry.version else None
    if data is None:
        raise VersionConflict(thread.store.describe(key))
    if encoding.digest(data) != entry.digest:
        raise BrokenFile(thread.store.describe(key), "its content does not match its digest")
    return data


def read_content(values: FileValues, key: Key, head: StoredFile) -> bytes | None:
    """The content of a stored file; None if the file was replaced meanwhile."""
    try:
        return values.content(key, head)
    except PartGone:
        return None
