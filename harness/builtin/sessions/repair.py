"""Repairs a session whose log or state is damaged: what can be read stays, the rest is kept aside."""

from __future__ import annotations

from functools import partial

from harness.base.errors import BrokenFile, UsageFault
from harness.base.record import Record
from harness.builtin.loop import turns
from harness.builtin.loop.turns import Log
from harness.builtin.sessions import _chain, _session, log
from harness.builtin.sessions import state as states
from harness.builtin.sessions._chain import START
from harness.builtin.sessions.keys import SessionKeys
from harness.builtin.sessions.log import LogPart
from harness.builtin.sessions.state import AgentState
from harness.mission.usage import Usage
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
    if not (fault := _fault(store, keys)):
        return Repair(rows=_state(store, keys).rows)
    rows = logs.read(store, keys.log)
    data, lost = _chain.sound(rows.data)
    data, found, more = _parsed(data)
    lost += more + rows.torn
    made = _made(_state(store, keys), found, data, number)
    if not made.agent:
        raise UsageFault(f"Nothing of {store.describe(keys.top)} can be read. Move it away.")
    aside = _kept_aside(store, keys, lost) if lost else ""
    if data != rows.data:
        logs.replace(store, keys.log, data)
    known = _state(store, keys)
    store.put(keys.state, made.dumped(), ANY)
    missing = max(0, known.rows - made.rows)
    return Repair(fault=fault, rows=made.rows, lost=len(lost), aside=aside, missing=missing)


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
        found = LogPart(turns=Log())
        try:
            found.turns = turns.parse(b"".join(lines), "", partial(log.note, found))
        except BrokenFile as fault:
            lines = lines[: (fault.line or 1) - 1]
            continue
        kept = b"".join(lines)
        return kept, found, data[len(kept) :]


def _made(known: AgentState, found: LogPart, data: bytes, number: int) -> AgentState:
    """The state that belongs to these rows."""
    link = (_chain.links(data, "", START) or [START])[-1]
    calls = [found.calls[number] for number in sorted(found.calls)]
    made = known.replace(part=0, rows=link.number, sum=link.digest, turns=found.answered, fence=number)
    if not calls:
        return made
    used: dict[str, object] = {}
    for one in calls:
        used = log.added(used, Usage(**one.usage))
    last = calls[-1]
    return made.replace(
        agent=last.agent or known.agent,
        created=known.created or calls[0].begun,
        calls=last.call,
        compactions=max(0, found.parts - 1),
        kept=found.turns.state or known.kept,
        used=used,
        newest=states.newest(last.message, last.ended or last.begun, last.outcome),
    )


def _kept_aside(store: Store, keys: SessionKeys, lost: bytes) -> str:
    """Where the bytes are that do not stay."""
    number = len(store.list((*keys.top, "damaged"))) + 1
    key = (*keys.top, "damaged", f"{number:06d}.jsonl")
    store.put(key, lost, ABSENT)
    return store.describe(key)
