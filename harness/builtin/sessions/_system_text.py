"""The system text of a conversation: a role's words, then what the workspace gives, within one budget, the most stable first."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

from harness.base import encoding
from harness.base.record import Record
from harness.builtin.sessions import _places as of_sessions
from harness.builtin.sessions.keys import MEMORY, WORKSPACE
from harness.filesystem.keyvalue import KeyValueFiles
from harness.mission import config, roles
from harness.run import prompt
from harness.run.workspace_inputs import commit_of, committed
from harness.state import names
from harness.state.layout import Layout, home
from harness.stores.store import ABSENT, Key, Store, Value
from harness.workspace import disk_reader, grants, places, snapshot
from harness.workspace.snapshot import WorkspaceSnapshot

ROLE = "assistant"  # whose words a conversation has, unless others are asked for
READS = ("instructions", "knowledge", "skills", "memory")
POLL_SECONDS = 0.5  # for so long nobody looks again whether anything changed
KNOWN = 256  # users
KEY_CHARS = 32
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "system.md")


class SystemText(Record):
    """The beginning of a conversation: the system text, the rest of the workspace's content, and a key for the prompt cache."""

    system: str
    given: WorkspaceSnapshot
    key: str
    page: str = ""
    instructions: str = ""


class SystemTextSource:
    """The system texts of conversations in a folder, rebuilt when one of their files has changed. `own`: a text instead of the
    role's, "" for the role's; `store`: has the memory of users and, if it is `layered`, files of the workspace that override
    those of the folder."""

    def __init__(self, layout: Layout, agent: str, store: Store, own: str = "", *, layered: bool = False) -> None:
        self.layout, self.agent, self.own, self.store, self.layered = layout, agent, own, store, layered
        self._known: dict[
            tuple[str, Key], tuple[float, Any, SystemText]
        ] = {}  # by user and memory: when it was looked at, the stamp, the words
        self._shared: tuple[Any, SystemText] | None = None  # of users who have nothing of their own, with its stamp
        self._layers: tuple[str, set[str]] | None = None  # the users who have a layer at a commit
        self._stored: tuple[list[Key] | None, dict[str, Value]] = (None, {})  # the files of the store, with their state
        self._turn = threading.Lock()

    def known(self, user: str, memory: Key) -> SystemText | None:
        """The same, where it was looked at a moment ago."""
        known = self._known.get((user, memory))
        return known[2] if known and time.monotonic() - known[0] < POLL_SECONDS else None

    def text_for(self, user: str, memory: Key) -> SystemText:
        """The beginning of a conversation of this user with this memory now. Raises BrokenFile for a malformed file of the
        workspace."""
        if words := self.known(user, memory):
            return words
        with self._turn:
            commit, kept, over = commit_of(self.layout), self.store.get(memory), self.over()
            stamp = (commit, disk_reader.stamp(self._watched(user, memory, commit)), kept.version if kept else ABSENT,
                     {path: one.version for path, one in over.items()})  # fmt: skip
            known = self._known.get((user, memory))
            words = known[2] if known and known[1] == stamp else self._fresh(user, commit, kept, over, stamp)
            while len(self._known) >= KNOWN:
                self._known.pop(next(iter(self._known)))
            self._known[user, memory] = (time.monotonic(), stamp, words)
        return words

    def over(self) -> dict[str, Value]:
        """The files of the workspace that the store has, by path; read again if one has changed."""
        if not self.layered:
            return {}
        stored = KeyValueFiles(self.store, WORKSPACE)
        if (state := stored.state()) is None or state != self._stored[0]:
            self._stored = (state, stored.contents())
        return self._stored[1]

    def _fresh(self, user: str, commit: str, kept: Value | None, over: dict[str, Value], stamp: Any) -> SystemText:
        """The texts for a user; users without their own files share one, which is built once."""
        if kept is not None or over or self._has_layer(user, commit):
            return self._made(user, commit, kept, over)
        if self._shared is None or self._shared[0] != stamp:
            self._shared = (stamp, self._made("", commit, None, over))
        words = self._shared[1]
        return words.replace(given=words.given.replace(user=user))

    def _has_layer(self, user: str, commit: str) -> bool:
        """Whether a user has a layer in the workspace."""
        layout, folder = self.layout, places.folder_of_user(user)
        if os.path.exists(layout.path(names.WORKSPACE_LOG)) or not commit:
            return bool(commit) or os.path.isdir(os.path.join(layout.folders.project, folder))
        if self._layers is None or self._layers[0] != commit:
            self._layers = (commit, {path.split("/")[1] for path in committed(layout, commit, places.USERS)})
        return folder.partition("/")[2] in self._layers[1]

    def _watched(self, user: str, memory: Key, commit: str) -> list[str]:
        """The files outside of commits on which the words depend."""
        layout = self.layout
        more = config.load(layout).workspace.get("additional_context", ())
        inside = [] if commit else places.tops(places.folder_of_user(user), more)
        if not commit and (known := self._known.get((user, memory))):  # imported files, too
            inside += [one.source for one in known[2].given.sections if one.kind == "instructions"]
        outer = [os.path.join(folder, name) for _, folder in places.outer() for name in places.LAYERED]
        own = [layout.path(names.CONFIG), layout.path(names.WORKSPACE_LOG), layout.path(names.MEMORY)]
        own.append(grants.path(layout))
        words = [os.path.join(folder, f"{self.agent}.md") for folder in roles.folders(layout)]
        return [*own, *words, *outer, *(os.path.join(layout.folders.project, name) for name in dict.fromkeys(inside))]

    def _made(self, user: str, commit: str, kept: Value | None, over: dict[str, Value]) -> SystemText:
        settings = config.load(self.layout)
        own = of_sessions.section(kept, MEMORY) if user else None
        found = snapshot.gather(self.layout, commit, settings, READS, more=[own] if own else [], user=user,
                                load="load_skill", over={path: one.data for path, one in over.items()})  # fmt: skip
        memory = [found.memory] if found.memory else []
        parts = prompt.workspace([*found.sections, *memory])
        text = f"{_page()}\n{self._role()}\n{prompt.text_of(parts).decode()}".rstrip("\n") + "\n"
        key = encoding.digest(text.encode())[:KEY_CHARS]
        rules = "\n".join(one.text for one in found.sections if one.kind == "instructions")
        return SystemText(system=text, given=found, key=key, page=_page(), instructions=rules)

    def _role(self) -> str:
        """The words of the role; those of ours for a name that has none."""
        if self.own:
            return self.own.rstrip("\n") + "\n"
        there = any(os.path.exists(os.path.join(one, f"{self.agent}.md")) for one in roles.folders(self.layout))
        name = self.agent if there else ROLE
        text = roles.words(self.layout, name)
        path = os.path.join(home(), "roles", f"{name}.md")
        return prompt.text_of([prompt.words(text, path, 0)]).decode()


def _page() -> str:
    with open(PAGE, encoding="utf-8") as file:
        return file.read()
