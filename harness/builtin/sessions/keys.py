"""The keys of sessions in a store. Names of ours have a dot or begin with `_`, as no encoded id does."""

from __future__ import annotations

from harness.base import ids
from harness.base.errors import UsageFault
from harness.base.record import Record
from harness.stores.store import Key, Store

MAX_ID_CHARS = 4096
STATE, MEMORY = "state.json", "_memory.md"
WORKSPACE = ("_workspace",)  # the prefix of the files of a workspace that a store has
USER, SESSION = "default", "default"  # where nobody names them
OF_SESSION, OF_USER, OF_AGENT, OF_ALL = "session", "user", "agent", "global"
SCOPES = (OF_SESSION, OF_USER, OF_AGENT, OF_ALL)
"""Who shares a memory and files: one session, the sessions of a user, those of an agent, or all."""


class SessionKeys(Record):
    """The keys of one session. `results`, `tasks` and `files` are prefixes; `memory` and `files` are the user's, or of
    another scope."""

    user: str
    session: str
    top: Key
    state: Key
    log: Key
    gate: Key
    results: Key
    tasks: Key
    memory: Key
    files: Key

    @property
    def scope(self) -> str:
        """The name of the scope that the files are of, for people and folders."""
        return ".".join(self.files[:-1])

    @property
    def sandbox(self) -> Key:
        """The prefix of what is known of the sandbox of the scope."""
        return (*self.files[:-1], "_sandbox")

    def compaction(self, number: int) -> Key:
        """The log with the request and the answer of the n-th compaction."""
        return (*self.top, "compactions", f"{number:06d}.jsonl")


def session_keys(user: str, session: str) -> SessionKeys:
    """The keys of this session of this user. Raises UsageFault for an id that is empty or too long."""
    for what, one in (("user", user), ("session", session)):
        if not one or len(one) > MAX_ID_CHARS:
            raise UsageFault(f"The id of a {what} has from 1 to {MAX_ID_CHARS} characters; this one has {len(one)}.")
    owner = ids.encoded(user)
    top = (owner, ids.encoded(session))
    return SessionKeys(
        user=user,
        session=session,
        top=top,
        state=(*top, STATE),
        log=(*top, "log.jsonl"),
        gate=gate_of(top),
        results=(*top, "results"),
        tasks=(*top, "tasks"),
        memory=memory_of(user),
        files=(owner, "_files"),
    )


def scoped(keys: SessionKeys, scope: str, agent: str) -> SessionKeys:
    """The same with the memory and the files of a scope. Raises UsageFault for one that is none, and without the agent's name."""
    if scope not in SCOPES:
        raise UsageFault(f"There is no scope {scope}. There are: {', '.join(SCOPES)}.")
    if not agent:
        raise UsageFault("The agent has no name.")
    tops = {OF_SESSION: keys.top, OF_USER: keys.top[:1], OF_AGENT: ("_agents", ids.encoded(agent)), OF_ALL: ("_all",)}
    return keys.replace(memory=(*tops[scope], MEMORY), files=(*tops[scope], "_files"))


def gate_of(top: Key) -> Key:
    """The key of the gate of a session whose keys begin with `top`."""
    return (*top, "gate.json")


def memory_of(user: str) -> Key:
    """The key of what was kept for a user."""
    return (ids.encoded(user), MEMORY)


def states(store: Store, user: str = "") -> list[Key]:
    """The keys of the states of all sessions, or of one user's."""
    prefix = (ids.encoded(user),) if user else ()
    return [key for key in store.list(prefix) if len(key) == 3 and key[-1] == STATE]
