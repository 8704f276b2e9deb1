"""One call of a session: its place in the queue, the state, the loop, and its result, on disk before it is given back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from harness.base import encoding
from harness.base.record import Record
from harness.builtin.equipment import Equipment
from harness.builtin.loop.exchange import Answer, Call, ModelFault
from harness.builtin.loop.loop import Bill, End, Limits, Loop, Report
from harness.builtin.sessions import _compaction, _conversation, _places, _session, index, log, store
from harness.builtin.sessions._compaction import Compact
from harness.builtin.sessions._session import Session
from harness.builtin.sessions._system_text import SystemText, SystemTextSource
from harness.builtin.sessions.interrupts import Interrupt, Watch, Watched
from harness.builtin.sessions.log import CallRecord, Syncs
from harness.builtin.sessions.store import Keys, QueuePlace, Store
from harness.builtin.subagents.runner import Means, SubagentRunner
from harness.builtin.tool_session import RESULTS, Powers
from harness.builtin.tool_session import Place as Where
from harness.builtin.tools.tool import NO, Question, Tool, ToolResult, Workbench
from harness.filesystem.protocol import FileEntry, Filesystem, Shell
from harness.mission import runs
from harness.workspace.rules import ToolRules

if TYPE_CHECKING:  # of the extra: only their types are meant
    from harness.builtin.loop.model_client import ModelClient

Ask = Callable[[Question, Callable[[], bool]], str]
Files = Callable[[Keys], tuple[Where, Filesystem | None]]

MOST_KEPT = 1000  # sessions in memory that nobody uses now
TOOL_THREADS = 128
MESSAGE_CHARS = 500  # of a message, in the row of its call
OUTCOMES = (*runs.OUTCOMES, log.INTERRUPTED, log.CANCELLED)


class Engine(Record):
    """What all calls of an agent share; nothing in it changes. `source`: the system texts; `files`: where the tools of a session
    work; `parameters`: of each request; `rules`: besides those of the workspace; `more`: tools of a session, by its keys."""

    agent: str
    store: Store
    source: SystemTextSource
    files: Files
    parameters: dict[str, Any]
    limits: Limits
    compact: Compact
    rules: ToolRules | None = None
    more: Callable[[Keys], list[Tool]] = lambda keys: []


class Parts:
    """What the calls of one event loop share, and the sessions that it has in memory."""

    def __init__(self, engine: Engine, wire: ModelClient) -> None:
        self.engine, self.wire = engine, wire
        self.syncs, self.watch = Syncs(engine.store), Watch(engine.store)
        self.threads = ThreadPoolExecutor(TOOL_THREADS, "tool")
        self.known: dict[str, Session] = {}
        self.running: dict[str, int] = {}
        self._shapes: dict[bytes, list[dict[str, Any]]] = {}
        self._keyed: dict[str, dict[str, Any]] = {}

    def shapes(self, tools: list[Tool]) -> list[dict[str, Any]]:
        """The tools as requests have them, one list for all conversations that have the same."""
        rows = [{name: getattr(tool, name) for name in ("name", "description", "parameters")} for tool in tools]
        if len(self._shapes) > MOST_KEPT:
            self._shapes.clear()
        return self._shapes.setdefault(encoding.dump_json(rows), rows)

    def parameters(self, words: SystemText) -> dict[str, Any]:
        """The parameters of requests with this system text."""
        if words.key not in self._keyed:
            if len(self._keyed) > MOST_KEPT:
                self._keyed.clear()
            self._keyed[words.key] = {**self.engine.parameters, "cache_key": words.key}
        return self._keyed[words.key]

    async def spare(self) -> None:
        """Let go of sessions that were not used for the longest time."""
        for name in [name for name in self.known if name not in self.running][: max(0, len(self.known) - MOST_KEPT)]:
            await self.known.pop(name).close()

    async def close(self) -> None:
        """End everything."""
        for one in self.known.values():
            await one.close()
        self.known.clear()
        self.watch.close()
        self.threads.shutdown(wait=False)
        await self.wire.close()


class SessionCall(Record):
    """A call: what is said, who is asked about calls of tools (None: nobody), where its steps are reported, and its limits."""

    message: str
    report: Report
    ask: Ask | None = None
    limits: Limits | None = None


class Stop:
    """Whether a call shall end: interrupted by a person, or cancelled by its caller."""

    def __init__(self) -> None:
        self.interrupt: Interrupt | None = None
        self.work: asyncio.Task[End] | None = None
        self.bench: Workbench | None = None

    @property
    def now(self) -> bool:
        """Whether its tools shall end."""
        return self.bench is not None and self.bench.stopping

    def tools(self) -> None:
        """End what a tool does now."""
        if self.bench is not None:
            self.bench.stopping = True

    def tell(self, interrupt: Interrupt) -> None:
        """A person interrupted."""
        self.interrupt = interrupt
        if self.work is not None:
            self.work.cancel()


class SessionLoop(Loop):
    """See Loop: tools in threads that end when the call shall, pieces of answers as they come, and summaries in between."""

    one: Session
    parts: Parts
    stop: Stop

    async def _answer(self) -> Answer:
        rule = self.parts.engine.compact
        if _compaction.due(self.one.talk, rule, self.one.failed_at):
            await self._sum_up()
        try:
            return await super()._answer()
        except ModelFault as fault:
            if not fault.too_long or not await self._sum_up(too_long=True):
                raise
        return await super()._answer()

    async def _sum_up(self, *, too_long: bool = False) -> bool:
        model = self.parts.wire.another(self.talk.parameters)
        made = await self.one.sum_up(self.parts.engine.compact, model, self.one.aside(), too_long=too_long)
        if made is None:
            return False
        if made.usage is not None:
            self._count(made.usage)
        self.report({"type": "summary", "failed": made.fault})
        if made.text:
            await self.talk.durable()
            await asyncio.to_thread(self.one.save)
        return bool(made.text)

    def _alive(self, piece: str) -> None:
        if piece:
            self.one.talk.partial.append(piece)
            self.report({"type": "text", "text": piece})

    async def _result(self, call: Call) -> ToolResult:
        if call.arguments is None:
            return await super()._result(call)
        future = asyncio.get_running_loop().run_in_executor(
            self.parts.threads, self.hands.call, call.name, call.arguments
        )
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            self.stop.tools()
            await asyncio.wait([future])
            self.talk.ended(call, future.result())
            raise


async def carried_out(parts: Parts, keys: Keys, asked: SessionCall) -> CallRecord:
    """Carry a call out. Raises what keeps it from being recorded: BrokenFile, Lost, Changed, OSError; and CancelledError, with
    all of it recorded, where its caller was cancelled."""
    known, stop = parts.engine.store, Stop()
    start = known.length(keys.interrupts)
    place = known.enter(keys.queue)  # at once: so the order is that of the calls
    watched = Watched(keys=keys, start=start, number=place.number, tell=stop.tell)
    parts.watch.add(watched)
    parts.running[keys.top] = parts.running.get(keys.top, 0) + 1
    try:
        await store.turn(place)
        return await _in_turn(parts, keys, asked, place, stop)
    finally:
        parts.watch.remove(watched)
        place.leave()
        parts.running[keys.top] -= 1
        if not parts.running[keys.top]:
            del parts.running[keys.top]
        await parts.spare()


async def _in_turn(parts: Parts, keys: Keys, asked: SessionCall, place: QueuePlace, stop: Stop) -> CallRecord:
    """The call, once it is its turn."""
    one = parts.known.pop(keys.top, None)
    if one is None or not one.is_current():
        if one is not None:
            await one.close()
        one = await asyncio.to_thread(_session.load, parts.engine.store, keys, parts.engine.agent)
    whole = False
    try:
        one.begin(place, parts.syncs)
        await _prepared(parts, one, asked, stop)
        result = await _recorded(parts, one, asked, place, stop)
        whole = True
    finally:
        if whole:
            parts.known[keys.top] = one
        else:
            await one.close()
    return result


async def _prepared(parts: Parts, one: Session, asked: SessionCall, stop: Stop) -> None:
    """The session has its words, tools and model."""
    source, user = parts.engine.source, one.keys.user
    known = source.known(user)
    words = known if known is not None else await asyncio.to_thread(source.of, user)
    parameters, one.report = parts.parameters(words), asked.report
    if one.equipment is None or one.given is not words.given:
        await one.close()
        one.equipment = await asyncio.to_thread(_equipment, parts, one, words)
        for fault in one.equipment.faults:
            asked.report({"type": "lacks", "text": fault})
        if words.given.subagents and isinstance(one.hands.bench.files, Shell):  # else theirs would be other files
            one.means = _recruited(parts, one, words, parameters)
        one.given, one.shapes = words.given, parts.shapes(one.hands.tools)
    bench = one.hands.bench
    bench.state, bench.stopping, stop.bench = one.talk.state, False, bench
    ask = asked.ask
    one.asking = None if ask is None else lambda question: NO if stop.now else ask(question, lambda: stop.now)
    bench.ask = one.asking
    model = one.model if one.model is not None and one.talk.parameters is parameters else None
    one.opened(model or parts.wire.another(parameters), words.system, one.shapes, parameters)


def _equipment(parts: Parts, one: Session, words: SystemText) -> Equipment:
    """What the session works with: files, tools, servers. It may wait for servers to start."""
    engine, keys = parts.engine, one.keys

    def ask(question: Question) -> str:
        return NO if one.asking is None else one.asking(question)

    powers = Powers(given=words.given, more=engine.more(keys), ask=ask)
    if engine.rules is not None:
        own = powers.obeyed
        joined = {name: [*getattr(own, name), *getattr(engine.rules, name)] for name in own.fields}
        powers = powers.replace(rules=own.replace(**joined))
    where, elsewhere = engine.files(keys)
    where, elsewhere = _places.confined(engine.source.layout, where, elsewhere, words.given)
    made = Equipment(where, powers, elsewhere)
    if elsewhere is not None and isinstance(elsewhere.stat(RESULTS), FileEntry):
        made.hands.bench.results = RESULTS
    return made


def _recruited(parts: Parts, one: Session, words: SystemText, parameters: dict[str, Any]) -> Means:
    """Let the session start subagents; what they work with."""
    assert one.equipment is not None, "it was made just now"
    means = Means(
        model=lambda parameters: parts.wire.another(parameters),
        parameters=parameters,
        limits=parts.engine.limits,
        bill=Bill(),
        report=lambda row: one.report(row),
        folder=parts.engine.store.where(f"{one.keys.top}/tasks"),
        head=words.page,
        instructions=words.instructions,
    )
    SubagentRunner(means, one.equipment)
    return means


async def _recorded(parts: Parts, one: Session, asked: SessionCall, place: QueuePlace, stop: Stop) -> CallRecord:
    """The call with its message, its loop and its result, durable."""
    begun, number, first = time.monotonic(), one.state.calls + 1, one.talk.turn + 1
    when, message = log.now(), asked.message[:MESSAGE_CHARS]
    row = {"call": number, "at": when, "agent": parts.engine.agent, "place": place.number}
    one.writer.add({**row, "message": message})
    one.talk.say(_with_faults(one, asked.message))
    limits, bill = asked.limits or parts.engine.limits, Bill()
    if one.means is not None:
        one.means.bill, one.means.limits = bill, limits
    loop = SessionLoop(one.talk, one.model, one.hands, limits, asked.report, bill=bill)  # type: ignore[arg-type]  # both are there, see _prepared
    loop.one, loop.parts, loop.stop = one, parts, stop
    end, cancelled = await _looped(one, loop, stop)
    used = bill.used
    result = CallRecord(
        call=number,
        agent=parts.engine.agent,
        begun=when,
        message=message,
        outcome=end.outcome,
        reason=end.reason,
        reply=end.reply,
        turns=[first, one.talk.turn] if one.talk.turn >= first else [],
        seconds=round(time.monotonic() - begun, 3),
        usage={name: value for name, value in used.asdict().items() if value},
    )
    one.ended(result, used, place)
    await asyncio.shield(_saved(parts, one, result))
    if cancelled is not None:
        raise cancelled
    return result


def _with_faults(one: Session, message: str) -> str:
    """The message, and behind it what is not available, where the model does not know that yet."""
    told = one.equipment.told() if one.equipment else ""
    known = not told or any(told in row.get("text", "") for row in one.talk.messages)
    return message if known else f"{message}\n\n{told}"


async def _looped(one: Session, loop: SessionLoop, stop: Stop) -> tuple[End, asyncio.CancelledError | None]:
    """The loop to its end, and the conversation so that the next call can follow."""
    cancelled = None
    try:
        if stop.interrupt is not None:
            raise asyncio.CancelledError
        stop.work = asyncio.ensure_future(loop.run())
        end = await stop.work
    except asyncio.CancelledError as fault:
        partial = "".join([loop.begun, *one.talk.partial]).strip()
        if stop.interrupt is not None:
            words = f" They say: {stop.interrupt.words}" if stop.interrupt.words else ""
            one.talk.close(one.model, _conversation.STOPPED, _conversation.INTERRUPTED.format(words=words))  # type: ignore[arg-type]  # it is there
            end = End(outcome=log.INTERRUPTED, reply=partial, reason=stop.interrupt.words)
        else:
            one.talk.close(one.model, _conversation.STOPPED, _conversation.CANCELLED)  # type: ignore[arg-type]  # as above
            end, cancelled = End(outcome=log.CANCELLED, reply=partial), fault
    else:
        one.talk.partial.clear()
    finally:
        await asyncio.shield(one.rest())
    return end, cancelled


async def _saved(parts: Parts, one: Session, result: CallRecord) -> None:
    """Log and state are durable; the index is told."""
    await one.writer.durable()
    if one.must_save():
        await asyncio.to_thread(one.save)
    index.add(parts.engine.store, one.keys, one.state, result)
