"""Requests to a model and its answers, for any vendor; messages are plain JSON.

A message is `{"role": "user", "text", "images"}`, `{"role": "tool", "id", "name", "text", "failed", "images"}` (the result of a
call), or `{"role": "assistant", …}`, whose other keys belong to the wire format."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from harness.base.record import Json, Record
from harness.mission.usage import Usage

Message = dict[str, Json]
RequestSent = Callable[["Sent"], Awaitable[None] | None]
Alive = Callable[[str], None]

LIMIT, AUTH, CONFIG, BROKEN = "limit", "auth", "config", "agent_error"
RULES = 3  # the version of how a request is made, among its parameters; _gate.py has them all
CUT_OFF = "length"  # the finish of an answer that met the limit of the model's output
NOT_READ = "error"  # of one whose call the vendor itself could not read
AS_TEXT = "as_text"  # marks the part of an answer that is a call which its model wrote as text
REFUSED = "content_filter"  # of a refusal, by the model or by its vendor's filter; the text says why


class Request(Record):
    """One request: the system text, the tools as {"name", "description", "parameters"}, the messages, and what else decides the
    bytes that are sent (`parameters`)."""

    system: str
    tools: list[dict[str, Json]]
    messages: list[Message]
    parameters: dict[str, Json]


class Sent(Record):
    """The body of a request as it goes out: the address without its host, SHA-256, and bytes; `by`: what made them."""

    path: str
    digest: str
    bytes: int
    by: str


class Call(Record):
    """A tool call. `arguments`: None if `raw`, the text of the model, is not a JSON object."""

    id: str
    name: str
    arguments: dict[str, Json] | None
    raw: str = ""


class Answer(Record):
    """A whole answer: the message to keep, its text, its calls, why it ended, and what it cost."""

    message: Message
    text: str
    calls: list[Call]
    finish: str
    usage: Usage


class ModelFault(Exception):
    """A request that failed. `outcome`: of the run, where it comes to that: LIMIT, AUTH, CONFIG or BROKEN; `after`: seconds until
    the vendor accepts requests again, None where it does not say; `again`: worth another try; `too_long`: the conversation does
    not fit into the model."""

    def __init__(
        self, outcome: str, reason: str, after: float | None = None, *, again: bool = False, too_long: bool = False
    ) -> None:
        super().__init__(reason)
        self.outcome, self.reason, self.after = outcome, reason, after
        self.again, self.too_long = again, too_long


def said(text: str) -> Message:
    """An answer of which only this text is known."""
    return {"role": "assistant", "parts": [{"content": text, "part_kind": "text"}]}


class Model(Protocol):
    """A model that answers. `parameters` are those of its requests."""

    parameters: dict[str, Json]

    def another(self, parameters: dict[str, Any]) -> Model:
        """One for another conversation, with these parameters."""

    async def close(self) -> None:
        """Close its connections, unless another one has them."""

    async def ask(self, request: Request, sent: RequestSent, alive: Alive) -> Answer:
        """Send a request once. `sent` is called with what goes out, before it does, and what it returns is waited for; `alive`
        with the text of each piece of the answer, "" for one that has none. Raises ModelFault."""

    def calls(self, message: Message) -> list[Call]:
        """The calls in an answer that was kept."""

    def cost(self, used: Usage) -> float | None:
        """The list price of a usage in USD; None where it is not known."""
