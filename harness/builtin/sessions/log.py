"""log.jsonl of a session: all its messages, requests, answers and calls, append-only. Rows are those of builtin/loop/turns.py.

A row with `call` begins a call of the session, and one with `ended` is its result. A row with `part` begins a part that can be
read without earlier rows: the first row, and one after each compaction. The state names the part to read from."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from typing import Any

from harness.base import clock, schema
from harness.base.errors import BrokenFile, UsageFault
from harness.base.record import Json, Record
from harness.builtin.loop import turns
from harness.builtin.loop.turns import Log, Row, StoredTurnWriter
from harness.builtin.sessions import _log_rows
from harness.builtin.sessions import state as states
from harness.builtin.sessions._log_rows import REMEDY
from harness.builtin.sessions.keys import SessionKeys
from harness.builtin.sessions.state import AgentState
from harness.mission.usage import Usage
from harness.stores import log as logs
from harness.stores.gate import GatePlace
from harness.stores.store import Key, Store, StoreKey

KILLED, INTERRUPTED, CANCELLED = "killed", "interrupted", "cancelled"
SHUTDOWN = "interrupted by shutdown"
TURNS = schema.listed(schema.WHOLE).part("the first and the last", lambda found: len(found) in (0, 2))


class CallRecord(Record):
    """The result of a call of a session. `outcome`: as for runs, or one of those above; `turns`: the numbers of the first and
    last request, [] for none; `begun` and `ended`: times, "" while the call runs, or if it was cut off."""

    call: int
    agent: str = ""
    begun: str = ""
    ended: str = ""
    message: str = ""
    outcome: str = KILLED
    reason: str = ""
    reply: str = ""
    turns: list[int] = []
    seconds: float = 0.0
    usage: dict[str, Json] = {}


class LogPart(Record):
    """A part of a log that was read: its `turns`, the results of its `calls` by number, the number of the newest part and of the
    newest answer, the position behind it, and the number of its last row. `asked`: the request that its newest call waits
    for, 0 for none."""

    turns: Log
    calls: dict[int, CallRecord] = {}
    parts: int = 0
    answered: int = 0
    end: int = 0
    rows: int = 0
    heads: list[str] = []
    asked: int = 0


class LogWriter(StoredTurnWriter):
    """Adds to the log of a session while its place at the gate holds. `end` and `rows`: where the log ends, and the number
    of its last row. Rows wait until `durable` or `write`."""

    def __init__(self, store: Store, key: Key, end: int, rows: int) -> None:
        super().__init__(StoreKey(store, key))
        self.end, self.rows = end, rows
        self.place: GatePlace | None = None
        self.waiting: list[bytes] = []  # lines that are not written yet
        self._lock = threading.Lock()

    def part(self, number: int, counts: Row, rows: Iterable[Row]) -> int:
        """Begin a part with these rows; returns the position where it begins."""
        self.write()
        self.forget()
        self.heads.clear()
        self.add({"part": number, "at": now(), **counts}, *rows)
        return self.end

    def begin(self, rows: Iterable[Row]) -> None:
        """The first rows of a conversation; see TurnWriter."""
        self.add(*rows)

    def add(self, *rows: Row) -> None:
        """More rows; they are durable once `durable` was waited for."""
        for row in rows:
            self.rows += 1
            self.waiting.append(_log_rows.line_of(row, self.rows))
        self._put(rows)

    def write(self) -> None:
        """Make what waits durable. Raises LostPlace, VersionConflict, OSError; then nothing of it was written."""
        with self._lock:
            if lines := list(self.waiting):
                if self.place is not None:
                    self.place.check()
                self.end = logs.append(self.store, self.key, b"".join(lines), self.end)
                del self.waiting[: len(lines)]

    async def durable(self) -> None:
        """The same, in a thread."""
        if self.waiting:
            await asyncio.to_thread(self.write)


def now() -> str:
    """The time of a row."""
    return clock.stamp(clock.now())


def read(store: Store, keys: SessionKeys, state: AgentState) -> LogPart:
    """The part of the log with the context of now. Raises BrokenFile, also if the last row that the state names is not there."""
    found = LogPart(turns=Log(), answered=state.turns)
    data = _rows(store, keys, state, found, state.part)
    found.turns = turns.parse(data, store.describe(keys.log), lambda row: note(found, row), REMEDY)
    if data and not found.parts:
        raise BrokenFile(store.describe(keys.log), f"no part of it begins at {state.part}", line=1, remedy=REMEDY)
    return found


def whole(store: Store, keys: SessionKeys, each: Callable[[Row], None] = lambda row: None) -> LogPart:
    """The whole log. Raises BrokenFile, and UsageFault if there is no such session."""
    state, _ = states.load(store, keys)
    if state is None:
        raise UsageFault(f"There is no session {keys.session} of {keys.user}.")
    found = LogPart(turns=Log())

    def noted(row: Row) -> None:
        note(found, row)
        each(row)

    found.turns = turns.parse(_rows(store, keys, state, found, 0), store.describe(keys.log), noted, REMEDY)
    return found


def _rows(store: Store, keys: SessionKeys, state: AgentState, found: LogPart, start: int) -> bytes:
    """The rows from a position on, checked; notes where they end. A torn row behind what was acknowledged is a crash's."""
    where, rows = store.describe(keys.log), logs.read(store, keys.log, start)
    last = _log_rows.last(rows.data, where, None if start else 0)
    if last < state.rows:
        fault = f"row {state.rows}, the last one that {store.describe(keys.state)} has seen, is not there"
        raise BrokenFile(where, fault, line=last or None, remedy=REMEDY)
    found.end, found.rows = rows.end, last
    return rows.data


def note(found: LogPart, row: Row) -> None:
    """Note the content of a row besides its turns."""
    if not {"turn", "answer", "call", "ended"}.isdisjoint(row):
        found.asked = row.get("turn", 0)
    if "part" in row:
        found.parts, found.heads = row["part"], []
    elif "call" in row:
        same = {name: row[name] for name in ("call", "agent", "message")}
        found.calls[row["call"]] = CallRecord(**same, begun=row["at"])
    elif "ended" in row:
        if not TURNS.fits(row["turns"]):
            raise ValueError("turns of another kind")
        more = {name: row[name] for name in ("outcome", "reason", "reply", "turns", "seconds", "usage")}
        call = found.calls.get(row["ended"], CallRecord(call=row["ended"]))
        found.calls[row["ended"]] = call.replace(**more, ended=row["at"])
    elif "answer" in row:
        found.answered = row["answer"]
        newest = next(reversed(found.calls.values()), None)
        if newest is not None and not newest.ended:  # what a kill cuts off counts, too
            newest.usage = added(newest.usage, Usage(**row["usage"]))
    elif "put" in row and "role" not in row["value"]:
        found.heads.append(row["put"])


def result_row(result: CallRecord) -> Row:
    """The row that ends a call."""
    names = ("outcome", "reason", "reply", "turns", "seconds", "usage")
    return {"ended": result.call, "at": now(), **{name: getattr(result, name) for name in names}}


def added(used: dict[str, Any], more: Usage) -> dict[str, Any]:
    """The totals of a session with those of one more call."""
    names = ("turns", "input", "cache_read", "cache_write", "output", "reasoning", "estimated", "cost_usd")
    counts = {name: (used.get(name) or 0) + (getattr(more, name) or 0) for name in names}
    return {name: round(value, 9) if name == "cost_usd" else value for name, value in counts.items() if value}
