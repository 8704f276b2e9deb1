"""What a call reports while it runs, and its reply, as typed values. docs/sessions.md has them in one table.

The loop reports rows of plain JSON; they become events here, where they leave for a program.
"""

from __future__ import annotations

from typing import Any

from harness.base.record import Record


class Reply(Record):
    """What came of a call. `outcome`: `ok`, `interrupted`, or why it failed, as runs have it, with a `reason`; `text`: the
    answer, or as much of it as there was; `output`: the value of it, where one was asked for; `usage`: tokens and cost; `call`:
    its number in the session, `turns`: its first and last request."""

    text: str
    outcome: str
    reason: str
    user: str
    session: str
    call: int
    turns: list[int]
    seconds: float
    usage: dict[str, Any]
    output: Any = None

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
    """The call of the tool with this id has a result, of so many characters."""

    id: str
    name: str
    failed: bool
    chars: int
    type: str = "result"


class UsageEvent(Record):
    """What the call has used so far: requests, tokens, and the cost in USD, None where it is not known."""

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
    """Something that the conversation lacks, such as a server, in a sentence."""

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
KINDS: tuple[type[Event], ...] = (
    TextEvent,
    CallEvent,
    ResultEvent,
    UsageEvent,
    WaitEvent,
    SummaryEvent,
    WarningEvent,
    TaskEvent,
)
BY_TYPE: dict[Any, type[Event]] = {one.default("type"): one for one in KINDS}


def event_of(row: dict[str, Any]) -> Event | None:
    """The event of a row; None for a row that is for runs alone."""
    kind = BY_TYPE.get(row["type"])
    return kind(**{name: row[name] for name in kind.fields if name in row}) if kind else None
