"""Where an agent works, by one line of configuration: this folder, a store that processes share, or a sandbox."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

from harness.base.errors import UsageFault
from harness.base.record import Record
from harness.builtin.sessions import _places
from harness.builtin.sessions.keys import WORKSPACE, SessionKeys
from harness.builtin.tool_environment import RESULTS, ToolEnvironment
from harness.filesystem.composite import Composite
from harness.filesystem.keyvalue import KeyValueFiles
from harness.filesystem.layered import Layered
from harness.filesystem.local import Local
from harness.filesystem.protocol import Filesystem
from harness.state.layout import Layout
from harness.stores.disk import DiskStore
from harness.stores.store import Store, StoreKey
from harness.stores.urls import open_store
from harness.workspace import grants
from harness.workspace.places import KNOWLEDGE, SKILLS, SUBAGENTS

LOCAL, STORE, SANDBOX = "local", "store", "sandbox"
STATIC = (KNOWLEDGE, SKILLS, SUBAGENTS)  # folders of the workspace that users read
SHARED = "_shared"  # the names of folders that all users write begin so
ALL = ["*"]
LONELY = (
    "Files at {address} are reached by other machines, and sessions on this disk are not. Name one that others reach:"
    ' store = "URL" in [agents.builtin], or HarnessAgent(store="URL").'
)
TWICE = "Both `{name}` and the placement {place} say where the {what} are. Leave one of them out."
NEEDS_IDS = '`placement = {kind}:…` needs user_id in each call (and session_id with `scope = "session"`).'


class Placement(Record, frozen=True):
    """A place: its `kind`, and the `address` of a store, or the words before a shell of a sandbox ("": on this machine)."""

    kind: str = LOCAL
    address: str = ""

    @property
    def is_shared(self) -> bool:
        """Whether several machines may use it."""
        return bool(self.address)


def parse(text: str) -> Placement:
    """The place of a line of configuration. Raises UsageFault for what is none."""
    kind, _, address = text.partition(":")
    if text not in (LOCAL, SANDBOX) and (kind not in (STORE, SANDBOX) or not address.strip()):
        raise UsageFault(f"There is no place '{text}'. Write local, store:URL, sandbox or sandbox:PREFIX.")
    return Placement(kind=kind, address=address.strip())


def store_of(place: Placement, layout: Layout, given: Store | None) -> Store:
    """Where the sessions of a place are. Raises UsageFault if others could not reach them."""
    if place.kind == STORE:
        if given is not None:
            raise UsageFault(TWICE.format(name="store", place=f"{STORE}:{place.address}", what="sessions"))
        return open_store(place.address)
    made = given or DiskStore(_places.root(layout))
    if isinstance(made, DiskStore) and made.root == _places.root(layout):
        made.begin = partial(grants.begin, layout)
    if place.is_shared and isinstance(made, DiskStore):
        raise UsageFault(LONELY.format(address=place.address))
    return made


def of_store(store: Store, layout: Layout, keys: SessionKeys, shared: Sequence[str]) -> ToolEnvironment:
    """The files of a user in the store, the `shared` folders, and read-only the workspace: files of the store override those of
    the folder. There is no shell, because no command can run where the files are."""
    mounts: dict[str, Filesystem] = {f"{name}/": _static(store, layout, name) for name in STATIC}
    mounts |= {f"{name.strip('/')}/": KeyValueFiles(store, (SHARED, name.strip("/"))) for name in shared}
    files = Composite(KeyValueFiles(store, keys.files), {**mounts, f"{RESULTS}/": KeyValueFiles(store, keys.results)})
    return ToolEnvironment(shell=False, home=layout, memory=StoreKey(store, keys.memory), filesystem=files)


def _static(store: Store, layout: Layout, name: str) -> Filesystem:
    above = KeyValueFiles(store, (*WORKSPACE, name), read_only=ALL)
    folder = os.path.join(layout.folders.project, name)
    return Layered(above, Local(folder, read_only=ALL)) if os.path.isdir(folder) else above
