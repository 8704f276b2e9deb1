"""The rules of a session, on calls of tools: what they are, and how a person changes them between its calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.base.errors import UsageFault
from harness.builtin.sessions import _session
from harness.builtin.sessions import state as states
from harness.builtin.sessions.keys import SessionKeys
from harness.builtin.tools import permissions
from harness.stores import gate
from harness.stores.gate import GatePlace
from harness.stores.store import Store
from harness.workspace import rules

KINDS = (rules.ALLOW, rules.ASK, rules.DENY)
DROP = "drop"
VERBS = (*KINDS, DROP)


def known(store: Store, keys: SessionKeys) -> dict[str, list[str]]:
    """The rules by kind. Raises UsageFault if there is no such session."""
    found, _ = states.load(store, keys)
    if found is None:
        raise UsageFault(f"There is no session {keys.session} of {keys.user}. The first `ask` begins it.")
    return _of(found.kept)


def _of(state: dict[str, Any]) -> dict[str, list[str]]:
    found = state.get(permissions.KEY, {})
    return {kind: list(found.get(kind, [])) for kind in KINDS}


def changed(store: Store, keys: SessionKeys, verb: str, texts: Sequence[str]) -> dict[str, list[str]]:
    """Add or remove rules; returns all rules. Waits for its turn at the gate. Raises UsageFault for an invalid rule."""
    for text in texts:
        if wrong := rules.fault(text):
            raise UsageFault(f"'{text}' is no rule: it lacks {wrong}. Write execute, or 'execute(git *)'.")
    if not texts:
        raise UsageFault(f"Name the rules to {verb}.")
    known(store, keys)
    with gate.held(store, keys.gate) as place:
        return _changed(_session.load(store, keys, ""), place, verb, texts)


def _changed(session: _session.Session, place: GatePlace, verb: str, texts: Sequence[str]) -> dict[str, list[str]]:
    found = _of(session.history.state)
    for text in texts:
        if verb == DROP and not any(text in found[kind] for kind in KINDS):
            raise UsageFault(f"The session has no rule '{text}'.")
        for kind in KINDS:
            found[kind] = [rule for rule in found[kind] if rule != text]
        if verb != DROP:
            found[verb].append(text)
    session.history.state[permissions.KEY] = {kind: rows for kind, rows in found.items() if rows}
    session.begin(place)
    session.writer.add({"state": session.history.state, "by": "person"})
    session.save()
    return found
