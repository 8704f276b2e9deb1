"""The events and the reply of a call, as typed values. docs/sessions.md lists them in one table.

The loop reports rows of plain JSON; here they become events for a program.
"""

from __future__ import annotations

from typing import get_args

from harness.base.record import Json, Record


class Reply(Record):
    """The result of a call. `outcome`: `ok`, `interrupted`, or the failure as for runs, with a `reason`; `text`: the answer, or
    the part of it that arrived; `output`: its value, if one was requested; `usage`: tokens and cost; `call`: its number in the
    session; `turns`: its first and last request."""

    text: str
    outcome: str
    reason: str
    user: str
    session: str
    call: int
    turns: list[int]
    seconds: float
    usage: dict[str, Json]
    output: object = None

    def __str__(self) -> str:
        return self.text


class TextEvent(Record):
    """A piece of the answer."""

    text: str
    type: str = "text"


class CallEvent(Record):
    """The model calls a tool. `id`: of the call; `arguments`: each as text of at most 200 characters."""

    id: str
    name: str
    arguments: dict[str, str]
    type: str = "call"


class ResultEvent(Record):
    """The tool call with this id has a result. `chars`: the number of its characters."""

    id: str
    name: str
    failed: bool
    chars: int
    type: str = "result"


class UsageEvent(Record):
    """The usage of the call so far: requests, tokens, and the cost in USD; None if unknown."""

    model: str = ""
    turns: int | None = None
    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cost_usd: float | None = None
    type: str = "usage"


class WaitEvent(Record):
    """A request failed for the moment and is tried again."""

    why: str
    type: str = "waits"


class SummaryEvent(Record):
    """The older part of the conversation was compacted; `failed`: why it was not, or ""."""

    failed: str
    type: str = "summary"


class WarningEvent(Record):
    """A sentence about something that the conversation lacks, such as a server."""

    text: str
    type: str = "lacks"


class TaskEvent(Record):
    """Something happened in the subagent with the id `task`: `what` is the type of its event."""

    task: str
    what: str
    name: str = ""
    type: str = "task"


class EndEvent(Record):
    """The call has ended; the last event."""

    reply: Reply
    type: str = "end"


Event = (
    TextEvent | CallEvent | ResultEvent | UsageEvent | WaitEvent | SummaryEvent | WarningEvent | TaskEvent | EndEvent
)
# All events that rows of the loop become; a reply is not a row.
BY_TYPE: dict[object, type[Event]] = {one.default("type"): one for one in get_args(Event) if one is not EndEvent}


def event_of(row: dict[str, Json]) -> Event | None:
    """The event of a row; None for a row that is only for runs."""
    kind = BY_TYPE.get(row["type"])
    return kind(**{name: row[name] for name in kind.fields if name in row}) if kind else None
