"""Where sessions of a folder are, where their tools work, and what was kept for later conversations with a user (memory_save)."""

from __future__ import annotations

import os

from harness.base import ids
from harness.base.errors import Unavailable
from harness.builtin.sessions.store import keys
from harness.builtin.tool_session import STATE, Place
from harness.filesystem.local import Mount
from harness.filesystem.protocol import Filesystem, LocalFolder, Shell
from harness.mission import config
from harness.state import files, names
from harness.state.layout import Layout
from harness.workplace import confine
from harness.workspace import budget
from harness.workspace.budget import WorkspaceSection
from harness.workspace.places import OF_USER
from harness.workspace.snapshot import WorkspaceSnapshot

MEMORY = "_memory.md"
TITLE = "## What you kept for later\n\nLines that you saved in earlier conversations with this person."
REST = "session_search finds what was said"


def memory(top: str, user: str) -> str:
    """The file with what was kept for a user."""
    return os.path.join(top, ids.encoded(user), MEMORY)


def kept(top: str, user: str) -> WorkspaceSection | None:
    """What was kept for a user, as a part of the system text; None for nothing."""
    text = files.read_text(memory(top, user))
    if not text:
        return None
    return WorkspaceSection(
        kind="kept", title=TITLE, text=text, source=MEMORY, layer=OF_USER, keep=budget.NEWEST, rest=REST
    )


def root(layout: Layout) -> str:
    """The folder of the sessions of a workspace."""
    return layout.path(names.SESSIONS)


def of_folder(layout: Layout, user: str, session: str) -> Place:
    """The folder itself, with a shell; of the harness's own files in it those of this session alone are seen."""
    of = keys(user, session)
    results = os.path.join(root(layout), of.results)
    mission = os.path.exists(layout.path(names.FORMAT))
    return Place(
        folder=layout.folders.project,
        layout=layout if mission else None,
        home=layout,
        results=results,
        memory=memory(root(layout), user),
        also={STATE: Mount(path=results)},
    )


def confined(
    layout: Layout, where: Place, elsewhere: Filesystem | None, given: WorkspaceSnapshot
) -> tuple[Place, Filesystem | None]:
    """The place with what its commands and servers may touch, as config.toml says; and the files `elsewhere`, their commands
    confined in the same way."""
    starts = elsewhere is None or isinstance(elsewhere, Shell) or (given.tools and given.tools.servers)
    if where.confinement is not None or not starts:
        return where, elsewhere
    own = elsewhere.folder() if isinstance(elsewhere, LocalFolder) else ""
    folder = where.folder or own or layout.folders.project
    try:
        known, environment = confine.of_conversation(
            layout, config.load(layout), folder, where.results, where.environment
        )
        made = where.replace(folder=folder, confinement=known, environment=environment)
    except Unavailable as fault:
        made = where.replace(folder=folder, refusal=str(fault))
    if elsewhere is not None and isinstance(elsewhere, Shell):
        elsewhere = elsewhere.confined(made.confinement, made.environment, made.refusal)
    return made, elsewhere
