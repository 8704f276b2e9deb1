"""The loop: send a request, carry out the tool calls of the answer, and repeat until an answer has no call. One conversation,
no globals.

Every step is durable before the next one. The loop returns an End, also for a failure; it raises for bugs only."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor

from harness.agents.base import LOOP
from harness.base.record import Json, Record
from harness.builtin.loop import _text_calls
from harness.builtin.loop.exchange import (
    BROKEN,
    CONFIG,
    CUT_OFF,
    LIMIT,
    NOT_READ,
    REFUSED,
    Answer,
    Call,
    Model,
    ModelFault,
)
from harness.builtin.loop.message_history import MessageHistory
from harness.builtin.loop.message_text import counted, estimate, model_of
from harness.builtin.tools import registry
from harness.builtin.tools.tool import READS, ToolResult, ToolSession
from harness.mission import usage
from harness.mission.usage import Usage

Report = Callable[[dict[str, Json]], None]
Prepare = Callable[["Loop", bool], Awaitable[bool]]
"""Prepares a request; with True: after one that was too long for the model. It says whether to ask again."""

CHECKS = 3  # answers that may fail the check of a conversation
EMPTY_ANSWERS = 2  # in a row; then the model has nothing to say
GO_ON = (
    "Your answer met the limit of one output and was cut off there. Go on exactly where it ends, in the middle of a word if need"
    " be, and repeat nothing: the parts are joined as they are."
)
NO_PRICE = (
    'the price of {model} is not known, so a cap in USD cannot hold: write [prices."{model}"] with input and output, in USD per'
    " million tokens, into config.toml, or cap the tokens"
)
CUT = "{reason}; the answer is cut"
NO_CALL = (
    "Your call could not be read by the vendor, so nothing was carried out. Call the tool again with valid arguments."
)
AGAIN = {CUT_OFF: GO_ON, NOT_READ: NO_CALL}  # by how an answer ended: what the model is told to go on
NO_JSON = "The arguments are no JSON object, so nothing was carried out: {raw}. Call {name} again with valid arguments."
SHOWN_CHARS = 200


class Limits(Record):
    """The limits of a conversation. `cost_usd` and `tokens`: what is left of the caps, None for no cap; `waits`: seconds before
    each retry of a request that failed temporarily; `patience`: the longest wait that a vendor may ask for, in seconds."""

    max_steps: int = 200
    cost_usd: float | None = None
    tokens: int | None = None
    prices: Mapping[str, Mapping[str, float]] = {}
    waits: list[float] = [0.5, 1.0, 2.0, 4.0]
    patience: float = 20.0


class Budget:
    """The shared `limits` of a conversation and its subagents, and what they have used so far."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits, self.used = limits or Limits(), Usage()

    def add(self, one: Usage) -> None:
        """Count the usage of an answer."""
        self.used = usage.total([self.used, one]) or one

    def exhausted(self) -> str:
        """The cap that is used up, in words; "" for none."""
        used, limits = self.used, self.limits
        if limits.cost_usd is not None and (used.cost_usd or 0.0) >= limits.cost_usd:
            return f"{used.cost_usd or 0.0:.4f} USD in this run, all that was left of max_cost_usd"
        if limits.tokens is not None and (used.tokens or 0) >= limits.tokens:
            estimated = f" ({used.estimated} of them estimated)" if used.estimated else ""
            return f"{used.tokens or 0} tokens{estimated} in this run, all that was left of max_tokens"
        return ""


class End(Record):
    """How a conversation ended: `outcome` as runs have it, the last text of the model, and for a failure the reason and when its
    vendor accepts requests again (unix seconds, 0: not said)."""

    outcome: str
    reply: str = ""
    reason: str = ""
    until: int = 0


class Loop:
    """A running conversation. `used`: its cost so far, without its subagents, which share its `budget`. `unfinished`: the text
    so far of an answer that reached the limit of one output.

    The parameters are what differs between conversations: `steps`, the maximum of requests (None: as the limits of the budget
    say); `threads`, where tool calls run (None: in this thread); `prepare`, called before a request, and after one that was too
    long; `piece`, reports a piece of an answer; `check`, returns the fault of a last answer in words for the model, "" for
    none; `checks`, how many answers may fail it (0: it decides)."""

    def __init__(self, history: MessageHistory, model: Model, session: ToolSession, budget: Budget, report: Report, *,
                 steps: int | None = None, threads: Executor | None = None, prepare: Prepare | None = None,
                 piece: Callable[[str], None] | None = None, check: Callable[[str], str] | None = None,
                 checks: int = CHECKS) -> None:  # fmt: skip
        self.history, self.model, self.session, self.budget, self.report = history, model, session, budget, report
        self.limits, self.steps, self.threads = budget.limits, steps or budget.limits.max_steps, threads
        self.prepare, self.piece = prepare, piece or (lambda _: report({"type": "delta", "delta": True}))
        self.used, self.unfinished = Usage(), ""
        self.check, self.checks, self.failed = check or (lambda _: ""), checks, 0
        self.before = history.turn
        known = (*registry.TOOLS.values(), *session.extra_tools)  # those that are not loaded yet, too
        self.effects = {tool.name for tool in known if tool.effects != READS}

    async def run(self) -> End:
        """To its end; where that comes in the middle of an answer, it has what there is of it."""
        end = await self._run()
        return (
            end.replace(reply=self.unfinished.strip(), reason=CUT.format(reason=end.reason)) if self.unfinished else end
        )

    async def _run(self) -> End:
        asked, empty = model_of(self.model.parameters), 0
        if self.limits.cost_usd is not None and self._priced(Usage(model=asked, input=1, output=1)).cost_usd is None:
            return End(outcome=CONFIG, reason=NO_PRICE.format(model=asked))
        while True:
            if cap := self.budget.exhausted():
                return End(outcome="killed", reason=f"ended at its cap: {cap}")
            if self.history.turn - self.before >= self.steps:
                return End(outcome=BROKEN, reason=f"it was not done after max_steps = {self.steps} requests")
            try:
                answer = await self._prepared_answer()
            except ModelFault as fault:
                until = int(time.time() + fault.after) + 1 if fault.after is not None else 0
                reason = fault.reason + (registry.remedy(self.session, fault.reason) if fault.outcome == CONFIG else "")
                return End(outcome=fault.outcome, reason=reason, until=until if fault.outcome == LIMIT else 0)
            if answer.finish == REFUSED:
                return End(
                    outcome=BROKEN, reply=answer.text, reason=f"the model refused: {' '.join(answer.text.split())}"
                )
            for call in answer.calls:
                await self._carry_out(call)
            text = self.unfinished + answer.text
            self.unfinished = text if answer.finish == CUT_OFF and not answer.calls else ""
            empty = 0 if answer.calls or answer.text.strip() else empty + 1
            if empty == EMPTY_ANSWERS:
                limit = " at max_output_tokens" if answer.finish == CUT_OFF else ""
                return End(
                    outcome=BROKEN, reason=f"the model answered with nothing{limit}, {EMPTY_ANSWERS} times in a row"
                )
            if answer.finish in AGAIN and not answer.calls:
                self.history.say(AGAIN[answer.finish])
            elif text.strip() and not answer.calls and (left := self._reminder()):
                self.history.say(left)
            elif text.strip() and not answer.calls:
                if not (wrong := self.check(text.strip())):
                    return End(outcome="ok", reply=text.strip())
                self.failed += 1
                if self.failed == self.checks:
                    return End(outcome=BROKEN, reply=text.strip(), reason=wrong)
                self.history.say(wrong)

    async def _prepared_answer(self) -> Answer:
        """The next answer, with the preparation of this conversation before it; raises ModelFault."""
        self.history.set_heads(self.history.system, registry.described(self.session), self.history.parameters)
        if self.prepare is not None:
            await self.prepare(self, False)
        try:
            return await self._answer()
        except ModelFault as fault:
            if not fault.too_long or self.prepare is None or not await self.prepare(self, True):
                raise
        return await self._answer()

    async def _answer(self) -> Answer:
        """The next answer of the model, kept and counted; tries again what failed for the moment. Raises ModelFault."""
        begun = time.monotonic()
        for wait in (*self.limits.waits, None):
            try:
                answer = await self._asked()
                break
            except ModelFault as fault:
                if wait is None or not fault.again or (fault.after or 0.0) > self.limits.patience:
                    raise
                self.report({"type": "waits", "why": fault.reason})
                await asyncio.sleep(max(wait, fault.after or 0.0))
        if not self.unfinished and answer.finish not in (*AGAIN, REFUSED):
            answer = _text_calls.taken(answer, self.history, self.session)
        self.history.answered(answer, time.monotonic() - begun)
        self.count(answer.usage)
        if text := answer.text.strip():
            self.report({"type": "said", "text": text})
        return answer

    async def _asked(self) -> Answer:
        """One request. Where its answer is cut off, what there was of both counts, as an estimate."""
        request, heard = self.history.request(), list[str]()

        def alive(piece: str) -> None:
            heard.append(piece)
            self.piece(piece)

        try:
            return counted(request, await self.model.ask(request, self.history.sent, alive))
        except (ModelFault, asyncio.CancelledError) as fault:
            if heard or isinstance(fault, asyncio.CancelledError):
                self.count(estimate(request, "".join(heard)))
            raise

    def count(self, one: Usage) -> None:
        """Add what an answer cost."""
        one = self._priced(one)
        self.used = usage.total([self.used, one]) or one
        self.budget.add(one)
        counts = {
            name: getattr(self.budget.used, name)
            for name in ("turns", *usage.COUNTS, "estimated", "cost_usd", "cost_source")
        }
        self.report({"type": "usage", "model": one.model, **counts})

    def _priced(self, one: Usage) -> Usage:
        """With its cost: by the prices of config.toml where they have its model, as it answers or as it was asked for, or the
        agent's name, else by the list price."""
        names, prices = (one.model, model_of(self.model.parameters)), self.limits.prices
        if name := next((name for name in (*names, LOOP) if usage.price_of(name, prices)), ""):
            return usage.priced(one.replace(model=name, cost_usd=None), prices).replace(model=one.model)
        costs = (self.model.cost(one.replace(model=name)) for name in names if one.cost_usd is None)
        cost = next((cost for cost in costs if cost is not None), one.cost_usd)
        return one if cost == one.cost_usd else one.replace(cost_usd=cost, cost_source=usage.TABLE)

    async def _carry_out(self, call: Call) -> None:
        """One call: that it begins is on disk before it does, where it may have effects, and its result before anything else."""
        shown = {key: str(value)[:SHOWN_CHARS] for key, value in (call.arguments or {}).items()}
        self.report({"type": "call", "id": call.id, "name": call.name, "arguments": shown})
        if call.name in self.effects and call.arguments is not None:
            self.history.begins(call)
            await self.history.durable()
        result = await self._result(call)
        self.history.ended(call, result)
        counts = {"failed": result.failed, "chars": len(result.text), "text": result.text}
        self.report({"type": "result", "id": call.id, "name": call.name, **counts})

    async def _result(self, call: Call) -> ToolResult:
        if call.arguments is None:
            return ToolResult(text=NO_JSON.format(raw=call.raw[:SHOWN_CHARS], name=call.name), failed=True)
        if self.threads is None:
            return registry.call(self.session, call.name, call.arguments)
        context = contextvars.copy_context()
        work = asyncio.get_running_loop().run_in_executor(
            self.threads, context.run, registry.call, self.session, call.name, call.arguments
        )
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            self.session.stopping = True
            await asyncio.wait([work])
            self.history.ended(call, work.result())
            raise

    def _reminder(self) -> str:
        """The work that still runs when the model gives its last answer, in words for the model; "" if there is none, or if the
        model knows."""
        return self.session.subagents.reminder() if self.session.subagents else ""
