"""notices.jsonl: deliveries of events to hooks. The relevant part is cached, so that only new lines are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.base import clock, encoding, schema
from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.state import documents, json_lines, names
from harness.state.layout import Layout
from harness.state.state import State

if TYPE_CHECKING:  # a type for checkers; at run time the kind of a field
    Word = str
else:
    Word = schema.one_of(("begun", "done", "failed", "seen"))

BEGUN, DONE, FAILED, SEEN = "begun", "done", "failed", "seen"
CACHE = "notices"
TAIL = 256  # bytes before the end of the cached part; the cache is valid only if they match
MAX_KEPT = 500  # calls for ends of run.sh; those of runs count only after the newest completed run
CACHED_EVERY = 4096  # bytes


class NoticeRow(Record):
    """A line of notices.jsonl: a call of the hook `key` (`label`) for an event, or the newest run whose events are
    delivered (`seen`). `said`: the first output line of a failed call."""

    at: str
    event: str
    state: Word
    key: str = ""
    label: str = ""
    said: str = ""


class NoticeCache(Record):
    """The relevant part of the first `size` bytes, which end with `tail`: the newest completed run; {event and key:
    state} of repeatable calls; {key: line} of hooks whose newest call failed."""

    size: int = 0
    tail: str = ""
    seen: str = ""
    states: dict[str, str] = {}
    failed: dict[str, dict[str, str]] = {}

    def state(self, event: str, key: str) -> str:
        """The state of a call; "" if there was none."""
        return self.states.get(f"{event} {key}", "")

    def take(self, row: NoticeRow) -> None:
        """Add a line."""
        if row.state == SEEN:
            self.seen = row.event
            ends = [call for call in self.states if not of_run(call)]
            self.states = {call: self.states[call] for call in ends[-MAX_KEPT:]}
            return
        self.states[f"{row.event} {row.key}"] = row.state
        if row.state != BEGUN:
            self.failed.pop(row.key, None)
        if row.state == FAILED:
            self.failed[row.key] = row.asdict()


def of_run(call: str) -> bool:
    """Whether an event belongs to a finished run; others belong to an end of run.sh and may repeat."""
    return call.startswith(("run-", "passed-", "failed-", "auth-"))


def write(layout: Layout, row: NoticeRow) -> NoticeRow:
    """Append a line with the present time, durable on return."""
    made = row.replace(at=clock.stamp(clock.now()))
    State(layout).append(names.NOTICES, encoding.dump_json(made.asdict()))
    return made


def rows(layout: Layout) -> list[NoticeRow]:
    """All lines, oldest first; raises BrokenFile."""
    return _parsed(layout, State(layout).data(names.NOTICES))


def known(layout: Layout, *, keep: bool = False) -> NoticeCache:
    """The relevant part of all lines; `keep`: cache it. Raises BrokenFile."""
    state, fields = State(layout), (*NoticeCache.fields, *NoticeRow.fields)
    length = state.length(names.NOTICES)
    found = NoticeCache(**(documents.recall(layout.cache, CACHE, CACHE, fields) or {}))
    behind = len(found.tail.encode())
    if found.size > length or state.part(names.NOTICES, found.size - behind, behind) != found.tail.encode():
        found = NoticeCache()
    data = state.part(names.NOTICES, found.size, length - found.size)
    data = data[: data.rfind(b"\n") + 1]
    try:
        new = _parsed(layout, data)
    except BrokenFile:
        rows(layout)  # names the line by its number
        raise
    for row in new:
        found.take(row)
    if keep and len(data) >= CACHED_EVERY:
        tail = data[-TAIL:].partition(b"\n")[2] or data  # whole lines of UTF-8
        value = found.replace(size=found.size + len(data), tail=tail.decode())
        documents.keep(layout.cache, CACHE, CACHE, value.asdict(), fields)
    return found


def _parsed(layout: Layout, data: bytes | None) -> list[NoticeRow]:
    def made(row: Any) -> NoticeRow:
        return schema.record(NoticeRow, row, "a notice has")

    return json_lines.parse(data, layout.path(names.NOTICES), made, "the line is not a notice", "Remove that line.")
