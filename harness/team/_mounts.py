"""The mount table of a composed workspace: which source a path belongs to, and what a turn may do there.

Compose, the live filesystem and reconcile use the same rows. The longest prefix wins. Of two rows with the same prefix the later
is on top, and the files of the other show through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.base.errors import UsageFault
from harness.base.record import Record
from harness.filesystem.composite import Composite
from harness.filesystem.keyvalue import KeyValueFiles
from harness.filesystem.layered import Layered
from harness.filesystem.protocol import Filesystem
from harness.stores.memory import MemoryStore
from harness.stores.store import Key, Store
from harness.team._manifest import path_fault

READ, WRITE, APPEND, PROJECTION = "read", "write", "append", "projection"
FOLDERS = {"agent": "agents", "space": "spaces", "user": "users", "thread": "threads", "delegate": "agents"}
Access = Callable[[str, str], str]  # (kind of a source, its id) -> its access now: "write", "read" or ""

MOUNTS = (  # prefix in the workspace (`*`: the folder of a delegate), kind of the source, place in the source, mode
    ("", "agent", "", READ),
    ("memory/", "agent", "memory/", READ),
    ("memory/", "user", "memory/", WRITE),
    ("USER.md", "user", "USER.md", WRITE),
    ("Space/", "space", "", WRITE),
    ("workspaces/*/", "delegate", "", READ),
    ("GOAL.md", "thread", "GOAL.md", PROJECTION),
    ("PROGRESS.md", "thread", "PROGRESS.md", PROJECTION),
    ("DECISIONS.md", "thread", "DECISIONS.md", APPEND),
    ("ARTIFACTS.md", "thread", "ARTIFACTS.md", APPEND),
    ("HANDOFFS.md", "thread", "HANDOFFS.md", APPEND),
)


class TeamSource(Record, frozen=True):
    """A folder of files with one owner. `kind`: a key of FOLDERS; `id`: its identity in the database; `folder`: its unique
    name among those of its kind."""

    kind: str
    id: str
    folder: str

    @property
    def owner(self) -> str:
        """The owner as in a manifest."""
        return f"{self.kind}/{self.id}"


class TeamMount(Record, frozen=True):
    """A row of MOUNTS with its source. `names`: the prefix of the keys of its files, or the key of its one file; `mode`: "" if
    there is no access."""

    prefix: str
    source: TeamSource
    names: Key
    mode: str

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder and not one file."""
        return self.prefix[-1:] in ("", "/")

    def has(self, path: str) -> bool:
        """Whether the path is at or below the prefix."""
        return path.startswith(self.prefix) if self.is_folder else path == self.prefix

    def key(self, path: str) -> Key:
        """The key of a path that belongs to it."""
        return (*self.names, *filter(None, path[len(self.prefix) :].split("/")))

    def path(self, key: Key) -> str:
        """The path of a key in the workspace; "" if the key does not belong to it."""
        is_here = key[: len(self.names)] == self.names and (len(key) > len(self.names)) == self.is_folder
        return self.prefix + "/".join(key[len(self.names) :]) if is_here else ""


def source_key(tenant: str, source: TeamSource) -> Key:
    """The prefix of the keys of a source. Raises UsageFault for an invalid folder name."""
    for folder in (tenant, source.folder):
        if fault := "it has a slash" if "/" in folder else path_fault(folder):
            raise UsageFault(f"{folder!r} is not a folder name: {fault}.")
    return ("tenants", tenant, FOLDERS[source.kind], source.folder)


def mounts_of(tenant: str, sources: Sequence[TeamSource], access: Access | None = None) -> list[TeamMount]:
    """The rows of MOUNTS for these sources, limited to what `access` permits. Raises UsageFault without access to an agent."""
    found = list[TeamMount]()
    granted_mode = {one.owner: access(one.kind, one.id) if access else WRITE for one in sources}
    for prefix, kind, below, mode in MOUNTS:
        for one in (one for one in sources if one.kind == kind):
            given = granted_mode[one.owner]
            is_less = not given or (given == READ and mode in (WRITE, APPEND))
            names = (*source_key(tenant, one), *filter(None, below.split("/")))
            place = prefix.replace("*", one.folder)
            found.append(TeamMount(prefix=place, source=one, names=names, mode=given if is_less else mode))
    if not found or found[0].prefix or not found[0].mode:
        raise UsageFault("The thread has no agent, or no access to it. The agent's files are the root of a workspace.")
    return found


def mounts_at(mounts: Sequence[TeamMount], path: str) -> list[TeamMount]:
    """The mounts that a path belongs to, the one on top last; writes go to that one."""
    found = [one for one in mounts if one.has(path)]
    longest = max(len(one.prefix) for one in found)
    return [one for one in found if len(one.prefix) == longest]


def live_filesystem(store: Store, mounts: Sequence[TeamMount]) -> Filesystem:
    """The workspace as a filesystem over the store itself, without a copy; an `append` file can be written."""
    layers = dict[str, Filesystem]()
    for one in mounts:
        names = one.names if one.is_folder else one.names[:-1]
        read_only = () if one.mode in (WRITE, APPEND) else ("*",)
        files = KeyValueFiles(store if one.mode else MemoryStore(), names, read_only=read_only)
        layers[one.prefix] = Layered(files, layers[one.prefix]) if one.prefix in layers else files
    return Composite(layers.pop(""), layers)
