"""_index.jsonl of a user: a row for each call, for lists and searches. It is derived, and made again from the logs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.base import encoding, schema
from harness.base.record import Record
from harness.builtin.sessions import log, state
from harness.builtin.sessions.log import CallRecord
from harness.builtin.sessions.state import AgentState
from harness.builtin.sessions.store import INDEX, LOG, STATE, Keys, Store
from harness.state import json_lines

WORDS_CHARS = 120


class Entry(Record):
    """A session in a list: who speaks in it, its calls, when the last one ended and how, how that began, and what all used."""

    user: str
    session: str
    agent: str
    calls: int
    ended: str
    outcome: str
    words: str
    used: dict[str, Any] = {}


def add(store: Store, keys: Keys, now: AgentState, result: CallRecord) -> None:
    """A call has ended."""
    store.append(keys.index, _row(keys, now.agent, result, now.used))


def _row(keys: Keys, agent: str, result: CallRecord, used: dict[str, Any]) -> bytes:
    words = " ".join(result.message.split())[:WORDS_CHARS]
    entry = Entry(
        user=keys.user,
        session=keys.session,
        agent=agent,
        calls=result.call,
        ended=result.ended or log.now(),
        outcome=result.outcome,
        words=words,
        used=used,
    )
    return encoding.dump_json(entry.asdict())


def of_user(store: Store, owner: str) -> list[Entry]:
    """The sessions below the name `owner` (an encoded user), the newest first."""
    key = f"{owner}/{INDEX}"
    if not store.length(key):
        _rebuild(store, owner)
    return sorted(_read(store, key).values(), key=lambda entry: entry.ended, reverse=True)


def _read(store: Store, key: str) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for _, line in json_lines.whole(store.tail(key)):
        try:
            entry = schema.record(Entry, json_lines.value(line), "an index has")
        except (ValueError, TypeError):  # a line that a kill cut off, or of another version: the log has it
            continue
        found[entry.session] = entry
    return found


def _rebuild(store: Store, owner: str) -> None:
    """Make the index of a user again."""
    for name in _sessions(store, owner):
        item = store.get(f"{owner}/{name}/{STATE}")
        known = state.named(item) if item else None
        if known is None:
            continue
        results = log.whole(store, known).calls
        if results:
            newest = results[max(results)]
            store.append(known.index, _row(known, newest.agent, newest, {}))


def _sessions(store: Store, owner: str) -> Iterable[str]:
    return (name for name in store.names(owner) if not name.startswith("_") and store.length(f"{owner}/{name}/{LOG}"))


def owners(store: Store) -> list[str]:
    """The encoded names of all users."""
    return [name for name in store.names("") if not name.startswith("_")]
