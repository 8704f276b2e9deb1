"""The rules of a session, on calls of tools: what they are, and how a person changes them between its calls."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from harness.base.errors import UsageFault
from harness.builtin.sessions import _session
from harness.builtin.sessions.store import Keys, Store, turn
from harness.builtin.tools import permissions
from harness.workspace import rules

KINDS = (rules.ALLOW, rules.ASK, rules.DENY)
DROP = "drop"
VERBS = (*KINDS, DROP)


def known(store: Store, of: Keys) -> dict[str, list[str]]:
    """The rules by what they do. Raises UsageFault where there is no such session."""
    return _of(_loaded(store, of).talk.state)


def _loaded(store: Store, of: Keys) -> _session.Session:
    if store.get(of.state) is None:
        raise UsageFault(f"There is no session {of.session} of {of.user}. The first `ask` begins it.")
    return _session.load(store, of, "")


def _of(state: dict[str, Any]) -> dict[str, list[str]]:
    found = state.get(permissions.KEY, {})
    return {kind: list(found.get(kind, [])) for kind in KINDS}


def changed(store: Store, of: Keys, verb: str, texts: Sequence[str]) -> dict[str, list[str]]:
    """Add rules, or take them back; returns all. It waits until it is its turn. Raises UsageFault for what is no rule."""
    for text in texts:
        if wrong := rules.fault(text):
            raise UsageFault(f"'{text}' is no rule: it lacks {wrong}. Write execute, or 'execute(git *)'.")
    if not texts:
        raise UsageFault(f"Name the rules to {verb}.")
    known(store, of)
    return asyncio.run(_changed(store, of, verb, texts))


async def _changed(store: Store, of: Keys, verb: str, texts: Sequence[str]) -> dict[str, list[str]]:
    place = store.enter(of.queue)
    try:
        await turn(place)
        one = _loaded(store, of)
        found = _of(one.talk.state)
        for text in texts:
            if verb == DROP and not any(text in found[kind] for kind in KINDS):
                raise UsageFault(f"The session has no rule '{text}'.")
            for kind in KINDS:
                found[kind] = [rule for rule in found[kind] if rule != text]
            if verb != DROP:
                found[verb].append(text)
        one.talk.state[permissions.KEY] = {kind: rows for kind, rows in found.items() if rows}
        one.writer.place = place
        one.writer.add({"state": one.talk.state, "by": "person"})
        one.writer.write()
        store.sync(of.log)
        return found
    finally:
        place.leave()
