"""The messages of a conversation with a model, and each step of it on disk before anything goes out or has effects."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable
from typing import Any

from harness.base import encoding
from harness.builtin.loop import turns
from harness.builtin.loop.exchange import Answer, Call, Message, Model, Request, Sent
from harness.builtin.loop.turns import Log, Row, TurnWriter
from harness.builtin.tools.tool import ToolResult

HEADS = turns.NAMED  # what comes before the messages of a request
NOT_BEGUN = "It was not carried out: {why} before it began."
BEGUN = (
    "Nobody knows how it ended: {why} while it ran. It may have had its effect, in whole or in part. Look at what is there "
    "before you do it again."
)
WENT_ON = (
    "{why} at this point, and this is a new run of the same task: the conversation above is yours and goes on. What it says of "
    "run ids and commands is out of date; the prompt of the new run follows.\n\n{prompt}"
)


class MessageHistory:
    """The messages of one conversation, in memory and in its turns.jsonl; and what requests have before them: system text, tools
    and parameters. `state`: what its tools keep between calls, saved with each result."""

    def __init__(self, writer: TurnWriter) -> None:
        self.writer, self.system = writer, ""
        self.tools: list[dict[str, Any]] = []
        self.parameters: dict[str, Any] = {}
        self.messages: list[Message] = []
        self.context: list[str] = []
        self.state: dict[str, Any] = {}
        self.turn = 0
        self._named: dict[str, str] = {}  # the digests of HEADS, once it has begun
        self._saved = encoding.dump_json({})

    def set_heads(self, system: str, tools: list[dict[str, Any]], parameters: dict[str, Any]) -> None:
        """The system text, the tools and the parameters of the next requests; on disk where they are new."""
        if (system, tools, parameters) == (self.system, self.tools, self.parameters):
            return
        self.system, self.tools, self.parameters = system, tools, parameters
        if self._named:
            rows = self.head_rows()
            self._named = dict(zip(HEADS, [row["put"] for row in rows], strict=True))
            if new := [row for row in rows if row["put"] not in self.writer.heads]:
                self.writer.add(*new)

    def head_rows(self) -> list[Row]:
        """The rows of what comes before the messages of a request."""
        return [turns.put({name: getattr(self, name)}) for name in HEADS]

    def begin(self, prompt: str) -> None:
        """A new conversation with this prompt."""
        self._begin([{"role": "user", "text": prompt}], {})

    def go_on(self, log: Log, model: Model, prompt: str, *, run: str, why: str) -> list[str]:
        """Continue the conversation of a run that was cut off (`why`: in words); returns the names of the calls whose outcome
        is unknown."""
        found = log.messages()
        left = open_calls(found, model)
        found += [interrupted(call, call.id in log.begun, why) for call in left]
        found.append({"role": "user", "text": WENT_ON.format(why=why, prompt=prompt)})
        self.state.update(log.state)
        self._begin(found, {"continues": run, "because": why, "state": self.state})
        return [call.name for call in left if call.id in log.begun]

    def _begin(self, messages: list[Message], first: Row) -> None:
        heads = self.head_rows()
        rows = [*heads, *(turns.put(value) for value in messages)]
        self.writer.begin([*([first] if first else []), *rows])
        self.messages, self.context = messages, [row["put"] for row in rows[len(heads) :]]
        self._named = dict(zip(HEADS, [row["put"] for row in rows], strict=False))
        self._saved = encoding.dump_json(self.state)

    def request(self) -> Request:
        """The next request."""
        return Request(system=self.system, tools=self.tools, messages=self.messages, parameters=self.parameters)

    def sent(self, what: Sent) -> Awaitable[None] | None:
        """It goes out, once what is returned was waited for."""
        self.writer.request(self.turn + 1, self._named, self.context, what)
        return None

    async def durable(self) -> None:
        """Wait until all so far is durable; here it is at once."""

    def answered(self, answer: Answer, seconds: float) -> None:
        """Note its answer."""
        self.turn += 1
        digest = turns.digest_of(answer.message)
        counts = {name: value for name, value in answer.usage.asdict().items() if value}
        used = {"usage": counts, "finish": answer.finish, "seconds": round(seconds, 3)}
        self.writer.answer(self.turn, digest, answer.message, **used)
        self._keep(answer.message, digest)

    def say(self, text: str, images: list[tuple[str, bytes]] | None = None) -> None:
        """Add a text of a person or of the harness for the model, with images as (media type, bytes)."""
        self.add({"role": "user", "text": text, **_images(images or [])})

    def begins(self, call: Call) -> None:
        """A call that may have effects begins."""
        self.writer.add({"begins": call.id, "name": call.name})

    def ended(self, call: Call, result: ToolResult) -> None:
        """A call has its result; what the tools keep is saved with it, where it changed. It is durable before the next call that
        may have effects, and before the next request."""
        self.add(_message(call, result.text, result.failed, result.images))

    def add(self, message: Message) -> None:
        """Add a message behind the others, with what the tools keep where that changed."""
        row = turns.put(message)
        if (state := encoding.dump_json(self.state)) != self._saved:
            row["state"], self._saved = self.state, state
        self.writer.add(row)
        self._keep(message, row["put"])

    def _keep(self, message: Message, digest: str) -> None:
        self.messages.append(message)
        self.context.append(digest)


def open_calls(messages: list[Message], model: Model) -> list[Call]:
    """The calls of the newest answer that have no result."""
    at = max((number for number, one in enumerate(messages) if one["role"] == "assistant"), default=-1)
    done = {one["id"] for one in messages[at + 1 :] if one["role"] == "tool"}
    return [call for call in model.calls(messages[at]) if call.id not in done] if at >= 0 else []


def interrupted(call: Call, begun: bool, why: str) -> Message:
    """The result of a call that did not come to its end."""
    return _message(call, (BEGUN if begun else NOT_BEGUN).format(why=why), True, [])


def _message(call: Call, text: str, failed: bool, images: list[tuple[str, bytes]]) -> Message:
    return {"role": "tool", "id": call.id, "name": call.name, "text": text, "failed": failed, **_images(images)}


def _images(images: list[tuple[str, bytes]]) -> Message:
    return {"images": [[kind, b64encode(data).decode()] for kind, data in images]} if images else {}
