"""Where sessions of a folder are, where their tools work, and what was kept for later conversations with a user (memory_save)."""

from __future__ import annotations

import os

from harness.base.errors import UsageFault
from harness.builtin.sessions.keys import SessionKeys
from harness.builtin.tool_environment import STATE, ToolEnvironment
from harness.filesystem.keyvalue import KeyValueFiles
from harness.filesystem.local import Local, Mount
from harness.filesystem.protocol import Filesystem
from harness.state import files, names
from harness.state.layout import Layout
from harness.stores.disk import DiskStore
from harness.stores.store import Key, Store, StoreKey, Value
from harness.workspace import budget
from harness.workspace.budget import WorkspaceSection
from harness.workspace.places import OF_USER

SHARED = ("knowledge",)  # folders of the workspace that a user's own files show, to be read
TITLE = "## What you kept for later\n\nLines that you saved in earlier conversations with this person."
REST = "memory_search finds them"


def section(kept: Value | None, where: str) -> WorkspaceSection | None:
    """The memory of a user as a part of the system text; None if it is empty."""
    if kept is None or not kept.data:
        return None
    text = kept.data.decode("utf-8", "replace")
    return WorkspaceSection(
        kind="kept", title=TITLE, text=text, source=where, layer=OF_USER, keep=budget.NEWEST, rest=REST
    )


def root(layout: Layout) -> str:
    """The folder of the sessions of a workspace."""
    return layout.path(names.SESSIONS)


def of_folder(store: DiskStore, layout: Layout, keys: SessionKeys) -> ToolEnvironment:
    """The folder itself, with a shell; of the harness's files in it only those of this session are visible."""
    results = store.path(keys.results)
    mission = os.path.exists(layout.path(names.FORMAT))
    return ToolEnvironment(
        folder=layout.folders.project,
        layout=layout if mission else None,
        home=layout,
        results=results,
        memory=StoreKey(store, keys.memory),
        also={STATE: Mount(path=results)},
    )


def of_user(store: DiskStore, layout: Layout, keys: SessionKeys) -> ToolEnvironment:
    """A user's own folder, without a shell, and beside it the workspace's knowledge, to be read."""
    made = ToolEnvironment(shell=False, home=layout, memory=StoreKey(store, keys.memory))
    folder, results = store.path(keys.files), store.path(keys.results)
    for one in (folder, results):
        files.make_folder(one)
    shared = {name: os.path.join(layout.folders.project, name) for name in SHARED}
    also = {name: Mount(path=path) for name, path in shared.items() if os.path.isdir(path)}
    return made.replace(folder=folder, results=results, also={STATE: Mount(path=results), **also})


def stored_files(store: Store, prefix: Key, *, make: bool) -> Filesystem:
    """The files below a prefix: on a disk as they are, which needs their folder; elsewhere as values."""
    if not isinstance(store, DiskStore):
        return KeyValueFiles(store, prefix)
    if make:
        files.make_folder(store.path(prefix))
    return Local(store.path(prefix))


def of_program(store: Store, keys: SessionKeys, made: Filesystem | ToolEnvironment) -> ToolEnvironment:
    """Where the tools work as a program says; raises UsageFault for a filesystem that lacks something."""
    if isinstance(made, ToolEnvironment):
        return made.replace(memory=made.memory or StoreKey(store, keys.memory))
    if lacking := [name for name in dir(Filesystem) if name[0] != "_" and not hasattr(made, name)]:
        raise UsageFault(f"The filesystem {type(made).__name__} lacks {', '.join(lacking)}: see docs/filesystem.md.")
    return ToolEnvironment(filesystem=made, memory=StoreKey(store, keys.memory))
