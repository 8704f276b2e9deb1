"""notices.jsonl: which hooks were called for which events, a line after the calls."""

from __future__ import annotations

from typing import Any

from harness.base import clock, encoding, schema
from harness.base.record import Record
from harness.state import json_lines, names
from harness.state.layout import Layout
from harness.state.state import State


class NoticeRow(Record):
    """A line of notices.jsonl: an event, or `run-<id>` for all events of a run; `calls`: {key of a hook: the first output line
    of a call that failed, else ""}."""

    at: str
    event: str
    calls: dict[str, str]


def write(layout: Layout, event: str, calls: dict[str, str]) -> None:
    """Append a line with the present time, durable on return."""
    row = NoticeRow(at=clock.stamp(clock.now()), event=event, calls=calls)
    State(layout).append(names.NOTICES, encoding.dump_json(row.asdict()))


def rows(layout: Layout) -> list[NoticeRow]:
    """All lines, oldest first; raises BrokenFile."""

    def made(row: Any) -> NoticeRow:
        return schema.record(NoticeRow, row, "a notice has")

    data, path = State(layout).data(names.NOTICES), layout.path(names.NOTICES)
    return json_lines.parse(data, path, made, "the line is not a notice", "Remove that line.")
