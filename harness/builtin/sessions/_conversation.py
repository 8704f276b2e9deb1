"""The conversation of a session: read from its log, continued, and left so that the next call can continue."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from harness.builtin.loop import turns
from harness.builtin.loop.exchange import Answer, Call, Message, Model, Request, Sent, said
from harness.builtin.loop.message_history import HEADS, MessageHistory, interrupted, open_calls
from harness.builtin.sessions.log import LogPart, LogWriter

INTERRUPTED = "[A person interrupted here.{words}]"
CANCELLED = "[The call was cancelled here.]"
SHUT_DOWN = "[The process was shut down here. What was asked is not finished.]"
KILLED = "the process ended"
STOPPED = "a person interrupted"


class DurableHistory(MessageHistory):
    """Messages whose rows are made durable together with those of others."""

    writer: LogWriter

    def sent(self, what: Sent) -> Awaitable[None]:
        super().sent(what)
        return self.writer.durable()

    async def durable(self) -> None:
        await self.writer.durable()


class SessionHistory(DurableHistory):
    """The messages of a session. `partial`: what the model has said of an answer that is not there yet; `begun`: {call id: name}
    of calls that may have had effects."""

    def __init__(self, writer: LogWriter) -> None:
        super().__init__(writer)
        self.begun: dict[str, str] = {}
        self.partial: list[str] = []
        self.tokens = 0  # of the newest request and its answer, as the vendor counts them
        self.counted = 0  # messages that are in these

    def resume(self, read: LogPart) -> None:
        """Go on with what the log has."""
        self.writer.adopt(read.turns)
        self.writer.heads = set(read.heads)
        self.messages, self.context = read.turns.messages(), list(read.turns.context)
        self.begun, self.turn = dict(read.turns.begun), read.answered
        self._named = dict.fromkeys(HEADS, "")  # until `set_heads` names them
        newest = next(reversed(read.turns.turns.values()), None)
        if newest is not None and newest.answer is not None:
            self._weighed(newest.answer["usage"], len(newest.context) + 1)

    def _weighed(self, usage: dict[str, Any], messages: int) -> None:
        names = ("input", "cache_read", "cache_write", "output")
        self.tokens, self.counted = sum(usage.get(name) or 0 for name in names), messages

    def request(self) -> Request:
        self.partial.clear()
        return super().request()

    def answered(self, answer: Answer, seconds: float) -> None:
        super().answered(answer, seconds)
        self.partial.clear()
        self._weighed(answer.usage.asdict(), len(self.messages))

    def begins(self, call: Call) -> None:
        super().begins(call)
        self.begun[call.id] = call.name

    def close(self, model: Model, why: str, note: str = "") -> None:
        """Leave it so that a request can follow: what the model had said stays, every call has a result, and `note` says what
        happened."""
        for call in open_calls(self.messages, model):
            self.add(interrupted(call, call.id in self.begun, why))
        if text := "".join(self.partial).strip():
            self.add(said(text))
        self.partial.clear()
        if note:
            self.say(note)

    def start_part(self, part: int, counts: turns.Row, messages: list[Message]) -> int:
        """Go on in a new part of the log with these messages; returns the byte where it begins."""
        rows = [turns.put(message) for message in messages]
        heads = self.head_rows()
        begins = self.writer.part(part, counts, [*heads, *rows])
        self._named = dict(zip(HEADS, [row["put"] for row in heads], strict=True))
        self.messages, self.context = messages, [row["put"] for row in rows]
        self.tokens = self.counted = 0
        return begins
