"""A model without a vendor, for offline tests of a program: it returns the given answers, and keeps the requests."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from harness.base import encoding
from harness.base.record import Json, Record
from harness.builtin.loop.exchange import CONFIG, Alive, Answer, Call, Message, ModelFault, Request, RequestSent, Sent
from harness.mission.usage import Usage

NAME = "simulated:model"
OVER = "the simulated model has no answer left: give it one for each request"


class SimulatedCall(Record):
    """A call of a tool that a simulated model makes."""

    name: str
    arguments: dict[str, Json] = {}


SimulatedAnswer = str | SimulatedCall | list[SimulatedCall]


class SimulatedModel:
    """Answers its requests one after another with these texts and calls; an answer may be a function of the request, and an
    exception is raised (ModelFault for what a vendor would say). `requests`: what it was asked, oldest first."""

    def __init__(self, *answers: SimulatedAnswer | Exception | Callable[[Request], SimulatedAnswer]) -> None:
        self.answers, self.requests = list(answers), list[Request]()
        self.parameters: dict[str, Any] = {"model": NAME}

    def another(self, parameters: dict[str, Any]) -> SimulatedModel:
        """The same, with other parameters in its requests; see ModelClient."""
        made = SimulatedModel()
        made.answers, made.requests, made.parameters = self.answers, self.requests, parameters
        return made

    async def ask(self, request: Request, sent: RequestSent, alive: Alive) -> Answer:
        data = encoding.dump_json(request.asdict())
        going = sent(Sent(path=NAME, digest=encoding.digest(data), bytes=len(data), by=NAME))
        if going is not None:
            await going
        self.requests.append(request.replace(messages=list(request.messages)))
        if not self.answers:
            raise ModelFault(CONFIG, OVER)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        made = answer if isinstance(answer, str | SimulatedCall | list) else answer(request)
        return self._answer(made, alive)

    def _answer(self, made: SimulatedAnswer, alive: Alive) -> Answer:
        text, calls = (made, []) if isinstance(made, str) else ("", made if isinstance(made, list) else [made])
        for piece in re.findall(r"\S*\s*", text):
            alive(piece)
        parts: list[dict[str, Any]] = [{"content": text, "part_kind": "text"}] if text else []
        for number, one in enumerate(calls):
            name = f"call-{len(self.requests)}-{number}"
            parts.append({"tool_name": one.name, "args": one.arguments, "tool_call_id": name, "part_kind": "tool-call"})
        message: Message = {"role": "assistant", "parts": parts}
        finish = "tool_call" if calls else "stop"
        return Answer(
            message=message,
            text=text,
            calls=self.calls(message),
            finish=finish,
            usage=Usage(model=NAME.partition(":")[2], turns=1),
        )

    def calls(self, message: Message) -> list[Call]:
        return [
            Call(id=one["tool_call_id"], name=one["tool_name"], arguments=one["args"])
            for one in message["parts"]
            if one["part_kind"] == "tool-call"
        ]

    def cost(self, used: Usage) -> float | None:
        """See exchange.Model: nothing is paid."""
        return 0.0

    async def close(self) -> None:
        """See ModelClient: there is nothing to close."""
