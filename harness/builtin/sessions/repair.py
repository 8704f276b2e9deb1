"""Repairs a session whose log or state is damaged: what can be read stays, the rest is kept aside."""

from __future__ import annotations

from functools import partial

from harness.base.errors import BrokenFile, UsageFault
from harness.base.record import Record
from harness.builtin.loop import turns
from harness.builtin.loop.turns import Log
from harness.builtin.sessions import _log_rows, _session, log
from harness.builtin.sessions import state as states
from harness.builtin.sessions._session import Session
from harness.builtin.sessions.keys import SessionKeys
from harness.builtin.sessions.log import LogPart
from harness.builtin.sessions.state import AgentState
from harness.stores import gate
from harness.stores import log as logs
from harness.stores.store import ABSENT, ANY, Store


class Repair(Record):
    """The result of a repair. `fault`: the damage, "" if there was none and nothing was done; `rows`: number of rows of the log
    that stay; `lost`: bytes that do not, kept at `aside`; `missing`: acknowledged rows that are lost."""

    fault: str = ""
    rows: int = 0
    lost: int = 0
    aside: str = ""
    missing: int = 0


def repair(store: Store, keys: SessionKeys) -> Repair:
    """Repair a session, once it is its turn. After a kill, another repair finishes. Raises UsageFault if there is no such
    session, or if its user is unknown, and OtherFormat."""
    if store.get(keys.state) is None and not logs.exists(store, keys.log):
        raise UsageFault(f"There is no session {keys.session} of {keys.user}.")
    try:
        gate.waiting(store, keys.gate)
    except BrokenFile:
        store.delete(keys.gate, ANY)
    with gate.held(store, keys.gate) as place:
        return _repaired(store, keys, place.number)


def _repaired(store: Store, keys: SessionKeys, number: int) -> Repair:
    known, rows = _state(store, keys), logs.read(store, keys.log)
    if not (fault := _fault(store, keys)):
        return Repair(rows=known.rows)
    data, lost = _log_rows.sound(rows.data)
    data, read, more = _parsed(data)
    lost += more + rows.torn
    made = _made(known, read, number)
    if not made.agent:
        raise UsageFault(f"Nothing of {store.describe(keys.top)} can be read. Move it away.")
    aside = _kept_aside(store, keys, lost) if lost else ""
    kept = read.rows  # the session adds the ends of calls
    read.end = logs.replace(store, keys.log, data) if data != rows.data else rows.end
    session = Session(store, keys, made, ANY, read)
    session.end_left()
    session.save()
    missing = max(0, known.rows - kept)
    return Repair(fault=fault, rows=kept, lost=len(lost), aside=aside, missing=missing)


def _fault(store: Store, keys: SessionKeys) -> str:
    """The fault of the session; "" for none."""
    try:
        _session.load(store, keys, "")
        log.whole(store, keys)
    except states.OtherFormat:
        raise
    except BrokenFile as fault:
        return str(fault)
    return ""


def _state(store: Store, keys: SessionKeys) -> AgentState:
    """The state; if it cannot be read, one with only the ids."""
    try:
        found, _ = states.load(store, keys)
    except BrokenFile:
        found = None
    return found or AgentState(user=keys.user, session=keys.session, agent=states.agent_of(store, keys), created="")


def _parsed(data: bytes) -> tuple[bytes, LogPart, bytes]:
    """(the rows up to the first invalid one, their content, the rest)."""
    lines = data.splitlines(keepends=True)
    while True:
        read = LogPart(turns=Log(), rows=len(lines))
        try:
            read.turns = turns.parse(b"".join(lines), "", partial(log.note, read))
        except BrokenFile as fault:
            lines = lines[: (fault.line or 1) - 1]
            continue
        kept = b"".join(lines)
        return kept, read, data[len(kept) :]


def _made(known: AgentState, read: LogPart, number: int) -> AgentState:
    """The state with these rows, to which the session adds their calls."""
    calls = [read.calls[one] for one in sorted(read.calls)]
    made = known.replace(part=0, calls=0, turns=0, used={}, fence=number)
    if not calls:
        return made
    newest = states.newest(calls[-1].message, calls[-1].ended or calls[-1].begun, calls[-1].outcome)
    return made.replace(
        agent=calls[-1].agent or known.agent,
        created=known.created or calls[0].begun,
        compactions=max(0, read.parts - 1),
        newest=newest,
    )


def _kept_aside(store: Store, keys: SessionKeys, lost: bytes) -> str:
    """Where the bytes are that do not stay."""
    number = len(store.list((*keys.top, "damaged"))) + 1
    key = (*keys.top, "damaged", f"{number:06d}.jsonl")
    store.put(key, lost, ABSENT)
    return store.describe(key)
