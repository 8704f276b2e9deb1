"""runs/<id>/turns.jsonl: all that a run of the built-in agent sent to its model and got back, by digest; the whole conversation.

What goes out, and what may have effects, begins once all rows before it are durable. A row with `put` has a value under its
digest: the system text, the tools, the parameters, or a message. A row with `turn` is a request: the digests of those, and its
messages: the first `keeps` of the request before it, then `adds`, or without that the messages whose rows came since. It has only
what differs from the request before, so a request costs what is new in it. A row with `part` begins a part that can be read
without what is before it: its values and the messages of its first request all follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from harness.base import clock, encoding, schema
from harness.base.errors import BrokenFile
from harness.base.record import Json, Record
from harness.builtin.loop.exchange import Message, Request, Sent
from harness.mission.usage import Usage
from harness.state import files, json_lines
from harness.stores import log as logs
from harness.stores.store import StoreKey
from harness.workspace.tools import Tools_

Row = dict[str, Json]

NAMED = ("system", "tools", "parameters")  # what a request has besides its messages
REMEDY = "It is not what the built-in agent wrote; restore it from a copy, or leave it: a run then begins a new conversation."


class ToolState(Record):
    """The state of tools between calls, as far as more than one tool reads it."""

    permissions: dict[str, Tools_] = {}
    plan: dict[str, Json] = {}
    todo: list[dict[str, str]] = []
    loaded_tools: list[str] = []
    seen: dict[str, str] = {}
    jobs: dict[str, dict[str, Json]] = {}


TEXTS = ("put", "path", "digest", "by", "begins", "name", "at", "agent", "message", "outcome", "reason", "reply")
NUMBERS = ("turn", "keeps", "bytes", "answer", "part", "call", "ended")
STATE = schema.OBJECT.part("what tools keep", lambda value: _keeps(value))
MESSAGES = {  # what ours read of a message, by its role
    "user": {"text": schema.TEXT},
    "tool": {**dict.fromkeys(("id", "name", "text"), schema.TEXT), "failed": schema.WORDS["bool"]},
    "assistant": {"parts": schema.listed(schema.OBJECT.part("a part", lambda one: _is_part(one)))},
}
FIELDS = {  # what each field of a row must be, in whichever rows it is
    **dict.fromkeys(TEXTS, schema.TEXT),
    **dict.fromkeys(NUMBERS, schema.WHOLE),
    "seconds": schema.NUMBER,
    "value": schema.OBJECT,
    "adds": schema.listed(schema.TEXT),
    "usage": schema.row_of(Usage),
    "state": STATE,
}


class Turn(Record):
    """One request as it was recorded, and what came of it: the row of its answer, None where the run was cut off before it.
    `row`: whole, with what it shares with the request before; `context`: the digests of its messages, of which it shares the
    first `keeps`."""

    row: dict[str, Json]
    context: list[str]
    keeps: int
    answer: dict[str, Json] | None = None


class Log(Record):
    """A file of turns that was read. `values`: by digest; `turns`: by number; `context`: the digests of the conversation's
    messages, oldest first; `begun`: {call id: name} of calls that had begun; `state`: what the tools keep; `since`: the messages
    since the newest request."""

    values: dict[str, Json] = {}
    turns: dict[int, Turn] = {}
    context: list[str] = []
    begun: dict[str, str] = {}
    since: list[str] = []
    state: dict[str, Json] = {}

    @property
    def answered(self) -> bool:
        """Whether the model answered at least once, in this run or in one whose conversation it went on with."""
        return any(one["role"] == "assistant" for one in self.messages())

    def messages(self) -> list[Message]:
        """The conversation."""
        return [self.values[digest] for digest in self.context]

    def request(self, number: int) -> Request:
        """The request of a turn, rebuilt; raises KeyError where there is none."""
        turn = self.turns[number]
        return Request(
            system=self.values[turn.row["system"]]["system"],
            tools=self.values[turn.row["tools"]]["tools"],
            messages=[self.values[digest] for digest in turn.context],
            parameters=self.values[turn.row["parameters"]]["parameters"],
        )


def put(value: object) -> Row:
    """The row of a value."""
    return {"put": digest_of(value), "value": value}


def digest_of(value: object) -> str:
    """The digest of a value: SHA-256 of its JSON in our form."""
    return encoding.digest(encoding.dump_json(value))


class TurnWriter:
    """Writes the turns of one run. `last`: the digests of the messages of the newest request; `since`: those of the messages
    that were put since."""

    def __init__(self, path: str) -> None:
        self.path, self.last, self.since = path, list[str](), list[str]()
        self.heads: set[str] = set()  # digests of system texts, tools and parameters that it has
        self._row: Row = {}

    def adopt(self, log: Log) -> None:
        """Go on behind what was read of the same file."""
        self.since = list(log.since)
        if log.turns:
            newest = next(reversed(log.turns.values()))
            self.last = list(newest.context)
            self._row = {name: newest.row[name] for name in (*NAMED, *Sent.fields, "turn")}

    def forget(self) -> None:
        """The next request has all that belongs to it."""
        self.last, self.since, self._row = [], [], {}

    def begin(self, rows: Iterable[Row]) -> None:
        """The first rows, in a new file."""
        rows = list(rows)
        files.replace(self.path, _lines(rows), files.PRIVATE)
        self._put(rows)

    def add(self, *rows: Row) -> None:
        """More rows, durable on return."""
        files.add_line(self.path, _lines(rows))
        self._put(rows)

    def _put(self, rows: Iterable[Row]) -> None:
        for name, value in ((row["put"], row["value"]) for row in rows if "put" in row):
            self.since += [name] if "role" in value else []
            self.heads |= set() if "role" in value else {name}

    def request(self, number: int, named: Row, context: list[str], sent: Sent) -> None:
        """The row of a request, before it is sent; repeating the same bytes adds no row. `named`: the digests of system, tools
        and parameters."""
        whole = {**named, **sent.asdict(), "turn": number}
        if whole == self._row:
            return
        keeps = _shared(self.last, context)
        new = {name: value for name, value in whole.items() if self._row.get(name) != value}
        if keeps < len(self.last) or context[keeps:] != self.since:
            new["adds"] = context[keeps:]
        self.add({"turn": number, "at": clock.stamp(clock.now()), **new, "keeps": keeps})
        self.last, self.since, self._row = list(context), [], whole

    def answer(self, number: int, digest: str, message: Message, **more: Any) -> None:
        """The answer of a turn, whole."""
        self.add({"answer": number, "put": digest, "value": message, **more})


class StoredTurnWriter(TurnWriter):
    """The same as a log in a store. `end`: its position. (The folder of a run has no store: the run's lease holds its lock.)"""

    def __init__(self, at: StoreKey) -> None:
        super().__init__(at.store.describe(at.key))
        self.store, self.key = at
        self.end = 0

    def begin(self, rows: Iterable[Row]) -> None:
        rows = list(rows)
        self.end = logs.replace(self.store, self.key, _lines(rows))
        self._put(rows)

    def add(self, *rows: Row) -> None:
        self.end = logs.append(self.store, self.key, _lines(rows), self.end)
        self._put(rows)


def _lines(rows: Iterable[Row]) -> bytes:
    return b"".join(encoding.dump_json(row) for row in rows)


def _shared(one: list[str], two: list[str]) -> int:
    """How many items both begin with."""
    if two[: len(one)] == one:
        return len(one)
    differ = (at for at, pair in enumerate(zip(one, two, strict=False)) if pair[0] != pair[1])
    return next(differ, min(len(one), len(two)))


def read(path: str) -> Log | None:
    """The turns of a run; None where it has none. Raises BrokenFile; a last line that a kill cut off is left out."""
    data = files.read(path)
    return None if data is None else parse(data, path)


def parse(data: bytes, path: str, each: Callable[[Row], None] = lambda row: None, remedy: str = REMEDY) -> Log:
    """The turns in these bytes of a file; `each` sees every row. Raises BrokenFile."""
    log = Log()
    for number, line in json_lines.whole(data):
        try:
            row = json_lines.value(line)
            _check(row)
            each(row)
            _take(log, row)
        except (ValueError, TypeError, LookupError, AttributeError) as fault:
            raise BrokenFile(path, f"the line is no row of turns ({fault!r})", line=number, remedy=remedy) from None
    return log


def _keeps(state: dict[str, Any]) -> bool:
    """Whether the known parts of the state have the right types; tools may keep more."""
    return not schema.faults({name: state[name] for name in ToolState.fields if name in state}, "", ToolState)


def is_message(value: Any) -> bool:
    """Whether a value is a valid message."""
    kinds = MESSAGES.get(str(value.get("role")), {}) if isinstance(value, dict) else {}
    return bool(kinds) and all(kind.fits(value.get(name)) for name, kind in kinds.items())


def _is_part(part: dict[str, Any]) -> bool:
    return part.get("part_kind") != "text" or "content" in part


def _check(row: Row) -> None:
    """Raises ValueError for an invalid row: a field of another type, or a value that does not match its digest."""
    if wrong := [name for name, kind in FIELDS.items() if name in row and not kind.fits(row[name])]:
        raise ValueError(f"{', '.join(wrong)} of another kind")
    if "put" in row and digest_of(row["value"]) != row["put"]:
        raise ValueError("its value is not that of its digest")
    if "put" in row and "role" in row["value"] and not is_message(row["value"]):
        raise ValueError("its value is no message")


def _take(log: Log, row: Row) -> None:
    """Add the content of a row to the log."""
    if "part" in row:
        log.context, log.since = [], []
    if "put" in row:
        log.values[row["put"]] = row["value"]
        if "role" in row["value"]:
            log.context.append(row["put"])
            log.since.append(row["put"])
    if "turn" in row:
        before = next(reversed(log.turns.values()), Turn(row={}, context=[], keeps=0))
        new = row.pop("adds", log.since)
        whole = {**before.row, **row}
        if not (0 <= row["keeps"] <= len(before.context) and all("role" in log.values[name] for name in new)):
            raise ValueError("its messages are not there")
        _ = [log.values[whole[name]][name] for name in NAMED], [whole[name] for name in Sent.fields]
        context = [*before.context[: row["keeps"]], *new]
        log.turns[row["turn"]] = Turn(row=whole, context=context, keeps=row["keeps"])
        log.context, log.since = list(context), []
    elif "answer" in row:
        log.turns[row["answer"]].answer = {"usage": {}, **row}
    elif "begins" in row:
        log.begun[row["begins"]] = row["name"]
    if "state" in row:
        log.state = row["state"]
