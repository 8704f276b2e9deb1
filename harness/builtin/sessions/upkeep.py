"""Sessions between their calls: what was said in them, and how a program or a person changes, copies and removes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from harness.base.errors import UsageFault
from harness.builtin.loop.exchange import Message, said
from harness.builtin.sessions import _session, log, recall
from harness.builtin.sessions import state as states
from harness.builtin.sessions._session import Session
from harness.builtin.sessions.keys import SESSION, USER, SessionKeys, session_keys
from harness.builtin.sessions.recall import RecalledMessage
from harness.builtin.sessions.state import AgentState
from harness.stores import gate
from harness.stores.store import ABSENT, ANY, Store

T = TypeVar("T")
ROLES: dict[str, Callable[[str], Message]] = {"user": lambda text: {"role": "user", "text": text}, "assistant": said}


class Sessions:
    """The sessions of a store, for any user. A change of a session waits until its calls have ended. Every method raises
    UsageFault if there is no such session, and BrokenFile if it cannot be read."""

    def __init__(self, store: Store, agent: str) -> None:
        self.store, self.agent = store, agent

    def all(self, user_id: str = "") -> list[AgentState]:
        """The sessions of a user, or of all, the newest first."""
        return states.of_user(self.store, user_id)

    def state(self, session_id: str = SESSION, user_id: str = USER) -> AgentState:
        """The session besides its messages."""
        keys = session_keys(user_id, session_id)
        found, _ = states.load(self.store, keys)
        if found is None:
            raise UsageFault(f"There is no session {keys.session} of {keys.user}.")
        return found

    def messages(self, session_id: str = SESSION, user_id: str = USER) -> list[RecalledMessage]:
        """All that was said in a session, whole, oldest first; also what a summary took the place of."""
        return recall.messages(self.store, session_keys(user_id, session_id), most=None)

    def export(self, session_id: str = SESSION, user_id: str = USER) -> dict[str, Any]:
        """The state and the messages as plain JSON."""
        rows = [one.asdict() for one in self.messages(session_id, user_id)]
        return {"state": json.loads(self.state(session_id, user_id).to_json()), "messages": rows}

    def interrupt(self, session_id: str = SESSION, user_id: str = USER, words: str = "") -> int:
        """End the running and the waiting calls of a session, in whatever process; returns how many. `words` are for the
        agent."""
        return gate.stop(self.store, session_keys(user_id, session_id).gate, words)

    def append(self, text: str, session_id: str = SESSION, user_id: str = USER, *, role: str = "user") -> None:
        """Add a message without asking the model; a new session begins with it. `role`: `user` or `assistant`."""
        if role not in ROLES or not text.strip():
            raise UsageFault(f"A message has a text, and is of one of {', '.join(ROLES)}.")
        self._change(session_keys(user_id, session_id), lambda session: session.append(ROLES[role](text)))

    def set_summary(self, text: str, session_id: str = SESSION, user_id: str = USER) -> None:
        """Replace all messages so far by this summary; the log keeps them."""
        if not text.strip():
            raise UsageFault("The summary is empty.")
        self.state(session_id, user_id)
        self._change(session_keys(user_id, session_id), lambda session: session.summarise(text, []))

    def fork(self, new: str, session_id: str = SESSION, user_id: str = USER) -> None:
        """Copy a session; both can continue. Raises UsageFault if a session with the new id exists."""
        self._held(session_keys(user_id, session_id), lambda keys: self._copy(keys, session_keys(user_id, new)))

    def rename(self, new: str, session_id: str = SESSION, user_id: str = USER) -> None:
        """Give a session another id. Raises UsageFault if there is a session with it."""

        def moved(keys: SessionKeys) -> None:
            self._copy(keys, session_keys(user_id, new))
            self._remove(keys)

        self._held(session_keys(user_id, session_id), moved)

    def delete(self, session_id: str = SESSION, user_id: str = USER) -> None:
        """Remove a session with all that is its own, or what a killed change left of it; the memory and the files of its user
        stay."""
        keys = session_keys(user_id, session_id)
        if not self.store.list(keys.top):
            self.state(session_id, user_id)
        with gate.held(self.store, keys.gate):
            self._remove(keys)
        self.store.delete(keys.gate, ANY)

    def _held(self, keys: SessionKeys, change: Callable[[SessionKeys], T]) -> T:
        self.state(keys.session, keys.user)
        with gate.held(self.store, keys.gate):
            self.state(keys.session, keys.user)
            return change(keys)

    def _change(self, keys: SessionKeys, change: Callable[[Session], None]) -> None:
        with gate.held(self.store, keys.gate) as place:
            session = _session.load(self.store, keys, "" if self.store.get(keys.state) else self.agent)
            session.begin(place)
            change(session)
            session.state = session.state.replace(fence=place.number)
            if not session.state.newest:
                session.note_call("", log.now(), "ok", place)
            session.save()

    def _copy(self, keys: SessionKeys, to: SessionKeys) -> None:
        """Copy all keys, the state last: without it a copy is not a session, and a second attempt begins again."""
        made = self.state(keys.session, keys.user).replace(session=to.session)
        if (there := states.load(self.store, to)[0] if self.store.get(to.state) else None) and there != made:
            raise UsageFault(f"There is a session {to.session} of {to.user} already.")
        if there:  # by a change that was killed
            return
        self._remove(to)
        for key in self.store.list(keys.top):
            if key not in (keys.state, keys.gate) and (known := self.store.get(key)) is not None:
                self.store.put((*to.top, *key[len(keys.top) :]), known.data, ABSENT)
        self.store.put(to.state, made.dumped(), ABSENT)

    def _remove(self, keys: SessionKeys) -> None:
        """Remove all keys but the gate, the state first."""
        for key in (keys.state, *self.store.list(keys.top)):
            if key != keys.gate:
                self.store.delete(key, ANY)
