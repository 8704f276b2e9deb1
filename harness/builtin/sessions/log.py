"""log.jsonl of a session: every message, request, answer and call of it, never shortened. Rows are those of builtin/turns.py.

A row with `call` begins a call of the session, one with `ended` is its result. A row with `part` begins a part that can be read
alone: the first, and one after each time the conversation was summed up. So the state names where to read from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from harness.base import clock, encoding, schema
from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.builtin.loop import turns
from harness.builtin.loop.turns import Log, Row
from harness.builtin.sessions.state import AgentState
from harness.builtin.sessions.store import Keys, QueuePlace, Store
from harness.mission.usage import Usage

REMEDY = "It is not what was written there. Nothing was changed; restore the log from a copy, or move the session's folder away."
KILLED, INTERRUPTED, CANCELLED = "killed", "interrupted", "cancelled"
TURNS = schema.listed(schema.WHOLE).part("the first and the last", lambda found: len(found) in (0, 2))


class CallRecord(Record):
    """What came of a call of a session. `outcome`: as runs have it, or `interrupted` or `cancelled`; `turns`: the numbers of the
    first and last request, [] for none; `begun` and `ended`: when, "" while it runs, or where it was cut off."""

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
    usage: dict[str, Any] = {}


class LogPart(Record):
    """A part of a log that was read: its `turns`, the results of its `calls` by number, the number of the newest part and of the
    newest answer, and how many bytes it ends behind. `asked`: the request that its newest call waits for, 0 for none."""

    turns: Log
    calls: dict[int, CallRecord]
    parts: int
    answered: int
    length: int
    heads: list[str]
    asked: int = 0


class Syncs:
    """Makes appends durable, those of many conversations together, in a thread. Of one event loop."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.waiting: list[tuple[str, asyncio.Future[None]]] = []
        self.work: asyncio.Task[None] | None = None

    def sync(self, key: str) -> Awaitable[None]:
        """Durable once it was waited for; raises OSError."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append((key, future))
        if self.work is None or self.work.done():
            self.work = asyncio.get_running_loop().create_task(self._all())
        return future

    async def _all(self) -> None:
        while self.waiting:
            some, self.waiting = self.waiting, []
            faults = await asyncio.to_thread(self._synced, list(dict.fromkeys(key for key, _ in some)))
            for key, future in some:
                if not future.done():
                    future.set_exception(faults[key]) if key in faults else future.set_result(None)

    def _synced(self, keys: list[str]) -> dict[str, OSError]:
        faults = {}
        for key in keys:
            try:
                self.store.sync(key)
            except OSError as fault:
                faults[key] = fault
        return faults


class LogWriter(turns.TurnWriter):
    """Adds to the log of a session, while its place in the queue holds. `length`: where the log ends; rows that nobody must be
    sure of yet are written with the next ones."""

    def __init__(self, store: Store, key: str, length: int) -> None:
        super().__init__(store.where(key))
        self.store, self.key, self.length = store, key, length
        self.place: QueuePlace | None = None
        self.syncs: Syncs | None = None
        self.waiting: list[bytes] = []  # lines that are not written yet
        self.open = False  # whether something is written and not durable yet
        self.heads: set[str] = set()  # digests of system texts, tools and parameters that this part has

    def part(self, number: int, counts: Row, rows: Iterable[Row]) -> int:
        """Begin a part with these rows; returns the byte where it begins."""
        self.forget()
        self.heads.clear()
        begins = self.length + sum(map(len, self.waiting))
        self.add({"part": number, "at": now(), **counts}, *rows)
        return begins

    def begin(self, rows: Iterable[Row]) -> None:
        """The first rows of a conversation; see turns.Writer."""
        self.add(*rows)

    def add(self, *rows: Row, quickly: bool = False) -> None:
        """More rows; they are durable once `durable` was waited for."""
        self.waiting += [encoding.dump_json(row) for row in rows]
        self._put(rows)

    def write(self) -> None:
        """Write what waits, at once. Raises Lost, Changed, OSError; then nothing of it was written."""
        if self.waiting:
            if self.place is not None:
                self.place.check()
            self.length = self.store.append(self.key, b"".join(self.waiting), self.length)
            self.waiting, self.open = [], True

    async def durable(self) -> None:
        """Wait until all of it is durable; raises Lost, Changed, OSError."""
        self.write()
        if self.open and self.syncs is not None:
            self.open = False
            await self.syncs.sync(self.key)


def now() -> str:
    """The time of a row."""
    return clock.stamp(clock.now())


def read(store: Store, keys: Keys, state: AgentState) -> LogPart:
    """The part of the log with the context of now. Raises BrokenFile, also where the log is shorter than the state has it."""
    where, data = store.where(keys.log), store.tail(keys.log, state.part)
    whole = data[: data.rfind(b"\n") + 1]
    if state.part + len(whole) < state.length:
        words = f"it ends at byte {state.part + len(whole)}, and {store.where(keys.state)} has seen {state.length}"
        raise BrokenFile(where, words, remedy=REMEDY)
    found = LogPart(
        turns=turns.Log(), calls={}, parts=0, answered=state.turns, length=state.part + len(whole), heads=[]
    )
    try:
        found.turns = turns.parse(whole, where, lambda row: _noted(found, row), REMEDY)
        if found.length and not found.parts:
            raise BrokenFile(where, f"no part of it begins at byte {state.part}", line=1)
    except BrokenFile as fault:
        before = store.tail(keys.log)[: state.part].count(b"\n")
        raise BrokenFile(where, fault.fault, line=before + (fault.line or 0), remedy=REMEDY) from None
    return found


def whole(store: Store, keys: Keys, each: Callable[[Row], None] = lambda row: None) -> LogPart:
    """All of the log. Raises BrokenFile."""
    data = store.tail(keys.log)
    found = LogPart(turns=turns.Log(), calls={}, parts=0, answered=0, length=data.rfind(b"\n") + 1, heads=[])

    def noted(row: Row) -> None:
        _noted(found, row)
        each(row)

    found.turns = turns.parse(data, store.where(keys.log), noted, REMEDY)
    return found


def _noted(found: LogPart, row: Row) -> None:
    """What a row says besides its turns."""
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


def gone(store: Store, keys: Keys) -> BrokenFile:
    """The fault of a log that is not there, although the state has seen it."""
    return BrokenFile(store.where(keys.log), "it is gone, and the state beside it has seen it", remedy=REMEDY)
