"""One call of a session: its place in the queue, the state, the loop, and its result, on disk before it is given back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from harness.base.record import Record
from harness.builtin.conversation import Conversation, ConversationSpec
from harness.builtin.hooks import Hooks
from harness.builtin.loop.exchange import Model
from harness.builtin.loop.loop import Budget, End, Limits, Loop, Report
from harness.builtin.sessions import _compaction, _conversation, _session, log, recall
from harness.builtin.sessions._compaction import Compact
from harness.builtin.sessions._sandboxes import Sandboxes
from harness.builtin.sessions._session import Session
from harness.builtin.sessions._shutdown import ShutdownCalls
from harness.builtin.sessions._system_text import SystemText, SystemTextSource
from harness.builtin.sessions._watch import Watch, turn
from harness.builtin.sessions.keys import SessionKeys
from harness.builtin.sessions.log import CallRecord
from harness.builtin.subagents.runner import SubagentRunner
from harness.builtin.tool_environment import ToolEnvironment
from harness.builtin.tools.tool import NO, Question, Tool
from harness.memory import user_memory
from harness.mission import runs
from harness.stores import gate
from harness.stores.gate import GatePlace
from harness.stores.store import Key, Store, StoreKey
from harness.workspace.rules import ToolRules

T = TypeVar("T")
Ask = Callable[[Question, Callable[[], bool]], str]

MOST_KEPT = 1000  # sessions in memory that nobody uses now
TOOL_THREADS = 128
MESSAGE_CHARS = 500  # of a message, in the row of its call
OUTCOMES = (*runs.OUTCOMES, log.INTERRUPTED, log.CANCELLED, log.SHUTDOWN)


class AgentConfig(Record, frozen=True):
    """The configuration of a HarnessAgent. `base_url`, `api_key_env`, `temperature`, `max_output_tokens` and `request_seconds`:
    as in `[agents.builtin]`; `api_key`: the key itself; `limits`: of each call; `compact`: when a conversation is compacted;
    `curate`: whether a compaction extracts facts for the user's memory; `plans`: the folder among the tools' files for the file
    of a plan ("": none is written); `rules`: tool rules besides those of the workspace; `hooks`: functions that run around
    calls; `instructions`: a text instead of the role's; `placement`: `local`, `store:URL`, `sandbox` or `sandbox:PREFIX`;
    `scope`: who shares memory and files (keys.SCOPES); `shared`: folders of a store that all users write; `sandbox_limits`:
    `memory_mb`, `cpu_seconds` and `processes` of a sandbox on this machine, none by default."""

    base_url: str = ""
    api_key: str = ""
    api_key_env: str = ""
    temperature: float | None = None
    max_output_tokens: int | None = None
    request_seconds: float = 600.0
    limits: Limits = Limits()
    compact: Compact = Compact()
    curate: bool = True
    plans: str = "plans"
    rules: ToolRules = ToolRules()
    hooks: Hooks = Hooks()
    instructions: str = ""
    placement: str = "local"
    scope: str = "user"
    shared: list[str] = []
    sandbox_limits: dict[str, int] = {}


class SessionPool:
    """The shared state of the calls of one event loop, with the sessions that it has in memory. `source`: of system texts;
    `environment`: returns where the tools of a session work; `sandboxes`: those of the tools, if any; `model`: its connections
    are shared; `tools`: those of the program."""

    def __init__(self, agent: str, store: Store, source: SystemTextSource, environment: Callable[[SessionKeys], ToolEnvironment],
                 sandboxes: Sandboxes | None, config: AgentConfig, model: Model, tools: list[Tool]) -> None:  # fmt: skip
        self.agent, self.store, self.source, self.environment = agent, store, source, environment
        self.sandboxes, self.config, self.model, self.tools = sandboxes, config, model, tools
        self.watch, self.stops = Watch(), ShutdownCalls()
        self.threads = ThreadPoolExecutor(TOOL_THREADS, "tool")
        self.known: dict[Key, Session] = {}
        self.running: dict[Key, int] = {}

    async def spare(self) -> None:
        """Let go of sessions that were not used for the longest time."""
        for name in [name for name in self.known if name not in self.running][: max(0, len(self.known) - MOST_KEPT)]:
            await self.known.pop(name).close()

    async def close(self) -> None:
        """End everything."""
        for session in self.known.values():
            await session.close()
        self.known.clear()
        self.watch.close()
        self.threads.shutdown(wait=False)
        await self.model.close()


class SessionCall(Record):
    """A call: its message, who answers questions about tool calls (None: nobody), the function that receives its steps, its
    limits, the images of the message, and how the last answer is checked (see Loop)."""

    message: str
    report: Report
    ask: Ask | None = None
    limits: Limits | None = None
    images: list[tuple[str, bytes]] = []
    check: Callable[[str], str] | None = None


class Stop:
    """Whether the call must end: a person or the end of the process interrupted it, or its caller cancelled it."""

    def __init__(self) -> None:
        self.words: str | None = None  # of the person who interrupted
        self.outcome = log.INTERRUPTED
        self.work: asyncio.Task[End] | None = None

    def tell(self, words: str) -> None:
        """A person interrupted, with these words."""
        self.words = words
        if self.work is not None:
            self.work.cancel()

    def shut_down(self) -> None:
        """The process ends."""
        self.outcome = log.SHUTDOWN
        self.tell("")

    def end(self, partial: str) -> tuple[End, str]:
        """How an interrupted call ended, with what the model had said, and what the next request says of it."""
        said = f" They say: {self.words}" if self.words else ""
        note = _conversation.INTERRUPTED.format(words=said)
        shut = self.outcome == log.SHUTDOWN
        return End(
            outcome=self.outcome, reply=partial, reason=self.words or ""
        ), _conversation.SHUT_DOWN if shut else note


Work = Callable[["SessionPool", Session, SessionCall, GatePlace, Stop], Awaitable[T]]


class Compacter:
    """Compacts the conversation of a session where a request would be, or was, too long."""

    def __init__(self, config: AgentConfig, session: Session) -> None:
        self.rule, self.curate, self.session = config.compact, config.curate, session

    async def __call__(self, loop: Loop, too_long: bool) -> bool:
        rule, session = self.rule, self.session
        if not too_long and not _compaction.due(session.history, rule, session.failed_at):
            return False
        memory = loop.session.memory if self.curate else None
        made = await session.sum_up(
            rule, loop.model, session.summary_log(), too_long=too_long, curate=memory is not None
        )
        if made is None:
            return False
        if made.usage is not None:
            loop.count(made.usage)
        loop.report({"type": "summary", "failed": made.fault})
        if made.facts and memory is not None:
            await asyncio.to_thread(user_memory.remember, memory, made.facts)
        if made.text:
            await asyncio.to_thread(session.save)
        return bool(made.text)


async def carried_out(pool: SessionPool, keys: SessionKeys, call: SessionCall) -> CallRecord:
    """Carry a call out. Raises what keeps it from being recorded: BrokenFile, Lost, Changed, OSError; and CancelledError, with
    all of it recorded, where its caller was cancelled."""
    return await _queued(pool, keys, call, _in_sandbox if pool.sandboxes else _recorded)


async def compacted(pool: SessionPool, keys: SessionKeys, call: SessionCall) -> bool:
    """Compact the conversation of a session, once it is its turn; whether it was."""
    return await _queued(pool, keys, call, _compacted)


async def prepared(pool: SessionPool, keys: SessionKeys, call: SessionCall) -> None:
    """Open the conversation of a session for the next call."""

    async def opened(pool: SessionPool, session: Session, call: SessionCall, place: GatePlace, stop: Stop) -> None:
        await _prepared(pool, session, call)

    await _queued(pool, keys, call, opened)


async def _queued(pool: SessionPool, keys: SessionKeys, call: SessionCall, work: Work[T]) -> T:
    """Do this work on a session, once it is its turn."""
    stop, place = Stop(), gate.enter(pool.store, keys.gate)  # at once: so the order is that of the calls
    pool.watch.add(place, stop.tell)
    pool.stops.add(stop.shut_down)
    pool.running[keys.top] = pool.running.get(keys.top, 0) + 1
    try:
        await turn(place)
        return await _in_turn(pool, keys, call, place, stop, work)
    finally:
        pool.watch.remove(place)
        place.leave()
        pool.stops.remove(stop.shut_down)
        pool.running[keys.top] -= 1
        if not pool.running[keys.top]:
            del pool.running[keys.top]
        await pool.spare()


async def _in_turn(
    pool: SessionPool, keys: SessionKeys, call: SessionCall, place: GatePlace, stop: Stop, work: Work[T]
) -> T:
    """The work, on the session as it is now."""
    session = pool.known.pop(keys.top, None)
    if session is None or not session.is_current():
        if session is not None:
            await session.close()
        session = await asyncio.to_thread(_session.load, pool.store, keys, pool.agent)
    whole = False
    try:
        session.begin(place)
        result = await work(pool, session, call, place, stop)
        whole = True
    finally:
        if whole:
            pool.known[keys.top] = session
        else:
            await session.close()
    return result


async def _prepared(pool: SessionPool, session: Session, call: SessionCall) -> Conversation:
    """The conversation of the session, with the system text and the workspace of now, for this call."""
    source, whose = pool.source, (session.keys.user, session.keys.memory)
    known = source.known(*whose)
    words = known if known is not None else await asyncio.to_thread(source.text_for, *whose)
    conversation = session.conversation
    if conversation is None or conversation.spec.workspace is not words.given:
        await session.close()
        conversation = session.conversation = await Conversation.open(_spec(pool, session, words, call))
        for fault in conversation.faults:
            call.report({"type": "lacks", "text": fault})
    conversation.report, conversation.budget = call.report, Budget(call.limits or pool.config.limits)
    tools, ask = conversation.session, call.ask
    tools.stopping = False
    tools.ask = ask and (lambda question: NO if tools.stopping else ask(question, lambda: tools.stopping))
    session.opened(conversation.model, *conversation.heads)
    return conversation


def _spec(pool: SessionPool, session: Session, words: SystemText, call: SessionCall) -> ConversationSpec:
    """The specification with which the conversation of a session is opened."""
    keys, config = session.keys, pool.config
    environment = pool.environment(keys)
    return ConversationSpec(
        name=f"session {keys.session}",
        environment=environment.replace(home=environment.home or pool.source.layout),
        history=session.history,
        model=pool.model,
        parameters=pool.model.parameters,
        system=words.system,
        budget=Budget(config.limits),
        report=call.report,
        workspace=words.given,
        rules=config.rules,
        more=[*recall.tools(pool.store, keys), *pool.tools],
        hooks=config.hooks,
        threads=pool.threads,
        tasks=StoreKey(pool.store, keys.tasks),
        head=words.page,
        instructions=words.instructions,
        plans=config.plans,
        supervisor=SubagentRunner,
    )


async def _compacted(pool: SessionPool, session: Session, call: SessionCall, place: GatePlace, stop: Stop) -> bool:
    conversation = await _prepared(pool, session, call)
    done = await Compacter(pool.config, session)(conversation.loop(), True)
    used = log.added(session.state.used, conversation.budget.used)
    session.state = session.state.replace(used=used, fence=place.number)
    await asyncio.shield(asyncio.to_thread(session.save))
    return done


async def _in_sandbox(
    pool: SessionPool, session: Session, call: SessionCall, place: GatePlace, stop: Stop
) -> CallRecord:
    """The call, which has its sandbox for itself."""
    assert pool.sandboxes, "else there is none"
    async with pool.sandboxes.held(session.keys, pool.watch, lambda text: call.report({"type": "lacks", "text": text})):
        return await _recorded(pool, session, call, place, stop)


async def _recorded(pool: SessionPool, session: Session, call: SessionCall, place: GatePlace, stop: Stop) -> CallRecord:
    """The call with its message, its loop and its result, durable."""
    conversation = await _prepared(pool, session, call)
    begun, number, first = time.monotonic(), session.state.calls + 1, session.history.turn + 1
    when, message = log.now(), call.message[:MESSAGE_CHARS]
    row = {"call": number, "at": when, "agent": pool.agent, "place": place.number}
    session.writer.add({**row, "message": message})
    session.history.say(_with_faults(conversation, call.message), call.images)
    session.note_call(message, when, log.KILLED, place)
    await asyncio.shield(asyncio.to_thread(session.save))  # from now on, who had the place before cannot save
    if (words := place.stop_words()) is not None:  # the watch may not have looked yet
        stop.tell(words)
    end, cancelled = await _looped(session, _loop(pool, session, conversation, call.check), stop)
    used = conversation.budget.used
    result = CallRecord(
        call=number,
        agent=pool.agent,
        begun=when,
        message=message,
        outcome=end.outcome,
        reason=end.reason,
        reply=end.reply,
        turns=[first, session.history.turn] if session.history.turn >= first else [],
        seconds=round(time.monotonic() - begun, 3),
        usage={name: value for name, value in used.asdict().items() if value},
    )
    session.ended(result, used, place)
    await asyncio.shield(asyncio.to_thread(session.save))
    if cancelled is not None:
        raise cancelled
    return result


def _loop(pool: SessionPool, session: Session, conversation: Conversation, check: Callable[[str], str] | None) -> Loop:
    """The loop of a call: its pieces of answers are kept and reported as they come."""

    def piece(text: str) -> None:
        if text:
            session.history.partial.append(text)
            conversation.report({"type": "text", "text": text})

    return conversation.loop(prepare=Compacter(pool.config, session), piece=piece, check=check)


def _with_faults(conversation: Conversation, message: str) -> str:
    """The message, and behind it what is not available, where the model does not know that yet."""
    note = conversation.note()
    known = not note or any(note in row.get("text", "") for row in conversation.history.messages)
    return message if known else f"{message}\n\n{note}"


async def _looped(session: Session, loop: Loop, stop: Stop) -> tuple[End, asyncio.CancelledError | None]:
    """The loop to its end, and the conversation so that the next call can follow."""
    cancelled = None
    try:
        if stop.words is not None:
            raise asyncio.CancelledError
        stop.work = asyncio.ensure_future(loop.run())
        end = await stop.work
    except asyncio.CancelledError as fault:
        partial = "".join([loop.unfinished, *session.history.partial]).strip()
        if stop.words is not None:
            end, note = stop.end(partial)
            session.history.close(loop.model, _conversation.STOPPED, note)
        else:
            session.history.close(loop.model, _conversation.STOPPED, _conversation.CANCELLED)
            end, cancelled = End(outcome=log.CANCELLED, reply=partial), fault
    else:
        session.history.partial.clear()
    finally:
        await asyncio.shield(session.stop_tools())
    return end, cancelled
