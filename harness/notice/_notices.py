"""notices.jsonl: which hook got which event. What of it still counts is cached, so that a look reads only what came since."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.base import clock, encoding, schema
from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.state import documents, json_lines, names
from harness.state.layout import Layout
from harness.state.state import State

if TYPE_CHECKING:  # a type here, at run time the kind of a field
    Word = str
else:
    Word = schema.one_of(("begun", "done", "failed", "seen"))

BEGUN, DONE, FAILED, SEEN = "begun", "done", "failed", "seen"
CACHE = "notices"
TAIL = 256  # bytes in front of what the cache covers: it is of this file only where they are the same
MAX_KEPT = 500  # calls for the ends of run.sh; those of runs count only behind the newest run that is done
CACHED_EVERY = 4096  # bytes


class NoticeRow(Record):
    """A line of notices.jsonl: a call of a hook, which `key` and `label` name, for an event, or the newest run whose events are
    done (`seen`). `said`: the first line of what a failing one printed."""

    at: str
    event: str
    state: Word
    key: str = ""
    label: str = ""
    said: str = ""


class NoticeCache(Record):
    """What counts of the first `size` bytes, which end with `tail`: the newest run that is done; {event and key: its state} of
    calls that may come again; {key: the line} of the hooks whose newest call failed."""

    size: int = 0
    tail: str = ""
    seen: str = ""
    states: dict[str, str] = {}
    failed: dict[str, dict[str, str]] = {}

    def state(self, event: str, key: str) -> str:
        """The state of a call; "" where there was none."""
        return self.states.get(f"{event} {key}", "")

    def take(self, row: NoticeRow) -> None:
        """Take one more line into account."""
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
    """Whether an event is one of a finished run; the others are of the end of run.sh, which may be the same again."""
    return call.startswith(("run-", "passed-", "failed-", "auth-"))


def write(layout: Layout, row: NoticeRow) -> NoticeRow:
    """Append a line with the time of now, durable on return."""
    made = row.replace(at=clock.stamp(clock.now()))
    State(layout).append(names.NOTICES, encoding.dump_json(made.asdict()))
    return made


def rows(layout: Layout) -> list[NoticeRow]:
    """All lines, oldest first; raises BrokenFile."""
    return _parsed(layout, State(layout).data(names.NOTICES))


def known(layout: Layout, *, keep: bool = False) -> NoticeCache:
    """What counts of all lines; `keep`: also for the next look. Raises BrokenFile."""
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

    return json_lines.parse(data, layout.notices, made, "the line is not a notice", "Remove that line.")
