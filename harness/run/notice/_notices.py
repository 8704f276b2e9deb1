"""notices.jsonl: which hooks were called for which events, a line after the calls."""

from __future__ import annotations

from typing import Any

from harness.base import clock, encoding, schema
from harness.base.record import Record
from harness.state import json_lines, names
from harness.state.layout import Layout
from harness.state.state import State

OF_RUN = "run-"  # the beginning of the events of lines that belong to a run


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
        return schema.record(NoticeRow, _of_calls(row), "a notice has")

    data, path = State(layout).data(names.NOTICES), layout.path(names.NOTICES)
    return json_lines.parse(data, path, made, "the line is not a notice", "Remove that line.")


def _of_calls(row: Any) -> Any:
    """A line, also one of earlier missions, which have a line for each call and one for the newest run after them."""
    if not isinstance(row, dict) or "state" not in row:
        return row
    calls = {} if row["state"] in ("begun", "seen") else {row.get("key"): row.get("said", "")}
    event = f"{OF_RUN}{row.get('event')}" if row["state"] == "seen" else row.get("event") if calls else ""
    return {"at": row.get("at"), "event": event, "calls": calls}
