"""HarnessAgent: the public Python interface. One instance serves any number of users and sessions at once."""

from __future__ import annotations

import asyncio
import difflib
import os
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from harness.agents import builtin
from harness.base.call_context import CallContext
from harness.base.errors import Unavailable, UsageFault
from harness.builtin import images
from harness.builtin.events import EndEvent, Event, Reply, event_of
from harness.builtin.loop.exchange import Model, ModelFault
from harness.builtin.loop.loop import Limits
from harness.builtin.loop.simulated_model import SimulatedModel
from harness.builtin.sessions import _calls, _placement, _places, _shutdown, log
from harness.builtin.sessions import state as states
from harness.builtin.sessions._calls import AgentConfig as AgentConfig
from harness.builtin.sessions._calls import Ask, SessionCall, SessionPool
from harness.builtin.sessions._sandboxes import Sandboxes
from harness.builtin.sessions._system_text import SystemTextSource
from harness.builtin.sessions.keys import OF_SESSION, SESSION, USER, SessionKeys, gate_of, scoped, session_keys
from harness.builtin.sessions.log import CallRecord
from harness.builtin.sessions.upkeep import Sessions
from harness.builtin.tool_environment import ToolEnvironment
from harness.builtin.tools.tool import Tool
from harness.filesystem.protocol import Filesystem
from harness.state.layout import Layout
from harness.stores import gate
from harness.stores.disk import DiskStore
from harness.stores.store import Store
from harness.stores.urls import open_store

Elsewhere = Callable[[str, str], Filesystem | ToolEnvironment]

GO_ON = "Go on with what was cut off."
IDS = ("session_id", "user_id")

if TYPE_CHECKING:  # of the extra: only its type is meant
    from harness.builtin.sessions._output import OutputFormat


class CallOptions(TypedDict, total=False):
    """The options of a call besides its message: `session_id` and `user_id`; `images`, each as bytes or a path; `output`, the
    type or the JSON schema of the answer; `attributes` of its context (base/call_context.py); `limits`."""

    session_id: str
    user_id: str
    images: Sequence[bytes | str]
    output: object
    attributes: Mapping[str, object]
    limits: Limits


class HarnessAgent:
    """An agent that any number of users talk with, each in any number of sessions; nothing of one is seen by another.

    `name`: of the role whose words it has (`roles/NAME.md`, else ours), and of the sessions that are its own; `model`: its
    vendor, a colon, its name. `workspace`: the folder with AGENTS.md, knowledge and skills, and, in `.harness/sessions`, the
    sessions; `store`: where sessions are kept instead, or its URL. `filesystem`: given (user, session), the files that tools
    work with, or the ToolEnvironment of them; by default each user has a folder, without a shell. `tools`: functions of the
    program that the agent may call, sync or async. `ask`: asks a person about a call, from a thread, until the second argument
    says that it is over; without it such calls are denied. `config`: the rest. `sessions`: what was said, and changes of it
    between calls."""

    def __init__(
        self,
        name: str,
        model: str | SimulatedModel,
        *,
        workspace: str = ".",
        store: Store | str | None = None,
        filesystem: Elsewhere | None = None,
        tools: Iterable[Callable[..., Any] | Tool] = (),
        ask: Ask | None = None,
        config: AgentConfig = AgentConfig(),  # noqa: B008 - it is frozen
    ) -> None:
        if isinstance(model, str) and not builtin.is_model(model):
            raise UsageFault(builtin.unknown(model))
        layout = Layout(workspace)
        self.name, self.model, self.ask, self.config = name, model, ask, config
        self.tools = _tools(tools)
        self.place = _placement.parse(config.placement)
        if filesystem is not None and self.place.kind != _placement.LOCAL:
            raise UsageFault(_placement.TWICE.format(name="filesystem", place=config.placement, what="files"))
        given = open_store(store) if isinstance(store, str) else store
        self.store: Store = _placement.store_of(self.place, layout, given)
        self.sessions = Sessions(self.store, name)
        here = self.store if isinstance(self.store, DiskStore) else None
        self.source = SystemTextSource(layout, name, self.store, config.instructions, layered=here is None)
        self.sandboxes: Sandboxes | None = None
        if self.place.kind == _placement.SANDBOX:
            limits = config.sandbox_limits
            self.sandboxes = Sandboxes(self.place.address, self.store, self.source, config.shared, limits)

        def environment(keys: SessionKeys) -> ToolEnvironment:
            if filesystem is not None:
                return _places.of_program(self.store, keys, filesystem(keys.user, keys.session))
            if self.sandboxes is not None:
                return self.sandboxes.environment(keys)
            if here is None:
                return _placement.of_store(self.store, layout, keys, config.shared)
            return _places.of_user(here, layout, keys)

        self.environment = environment
        self._pools: dict[asyncio.AbstractEventLoop, SessionPool] = {}
        self._own_loop: asyncio.AbstractEventLoop | None = None
        self._turn = threading.Lock()

    async def call(
        self, message: str, *, report: Callable[[Event], None] = lambda event: None, **options: Unpack[CallOptions]
    ) -> Reply:
        """Say something in a session, and wait for the answer. Calls of one session are carried out one after another, in the
        order in which they came, also where they come from several processes. `report` gets its events as they happen. Where the
        caller is cancelled, what there is is kept. Raises a HarnessError where the session cannot be read or written."""
        _shutdown.install()
        keys, hooks = self._keys(options), self.config.hooks
        attributes = options.get("attributes", {})
        with CallContext(user=keys.user, session=keys.session, agent=self.name, attributes=attributes).entered():
            message = (hooks.before_call and hooks.before_call(message)) or message
            if not message.strip():
                raise UsageFault("The message is empty.")
            wanted = _output_format(options)
            call = SessionCall(
                message=wanted.asked(message) if wanted else message,
                report=lambda row: report(event) if (event := event_of(row)) else None,
                ask=self.ask,
                limits=options.get("limits"),
                images=[images.loaded(one) for one in options.get("images", ())],
                check=wanted.fault if wanted else None,
            )
            reply = _reply(keys, await _calls.carried_out(self._here(), keys, call), wanted)
            if hooks.after_call:
                hooks.after_call(reply)
        return reply

    async def stream(self, message: str, **options: Unpack[CallOptions]) -> AsyncIterator[Event]:
        """The same, event by event; the last one is the EndEvent with the reply. A consumer that stops early cancels the call."""
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        work = asyncio.ensure_future(self.call(message, report=events.put_nowait, **options))
        work.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while event := await events.get():
                yield event
            yield EndEvent(reply=await work)
        finally:
            if not work.done():
                work.cancel()
                await asyncio.wait([work])

    def call_sync(self, message: str, **options: Unpack[CallOptions]) -> Reply:
        """`call` for programs without an event loop; from any number of threads."""
        _shutdown.install()
        return asyncio.run_coroutine_threadsafe(self.call(message, **options), self._loop()).result()

    async def resume(self, **options: Unpack[CallOptions]) -> Reply | None:
        """Go on with a call that the end of its process cut off; None where the newest call of the session came to its end."""
        keys = self._keys(options)
        found, _ = await asyncio.to_thread(states.load, self.store, keys)
        cut = found is not None and found.newest.get("outcome") in (log.KILLED, log.SHUTDOWN)
        return await self.call(GO_ON, **options) if cut and not gate.waiting(self.store, keys.gate) else None

    def resume_sync(self, **options: Unpack[CallOptions]) -> Reply | None:
        """`resume` for programs without an event loop."""
        return asyncio.run_coroutine_threadsafe(self.resume(**options), self._loop()).result()

    async def compact(self, **options: Unpack[CallOptions]) -> bool:
        """Replace the older part of a session by a summary now; False if there was too little of it, or the summary failed."""
        call = SessionCall(message="", report=lambda row: None, limits=options.get("limits"))
        return await _calls.compacted(self._here(), self._keys(options, (*IDS, "limits")), call)

    async def prepare(self, **options: Unpack[CallOptions]) -> None:
        """Load a session and start its servers, so that the next call finds them ready."""
        await _calls.prepared(self._here(), self._keys(options, IDS), SessionCall(message="", report=lambda row: None))

    def interrupt(self, session_id: str = "", user_id: str = USER, words: str = "") -> int:
        """End all calls of a session that run or wait, in any process, with these words for the agent; how many there are.
        Without a session: of the one that this instance has calls of. Raises UsageFault where those are several."""
        running = {key: one for pool in list(self._pools.values()) for key, one in list(pool.running.items())}
        if not session_id and len(running) > 1:
            raise UsageFault(f"{len(running)} sessions have calls: say which one to interrupt.")
        if not session_id:
            return sum(gate.stop(self.store, gate_of(top), words) for top in running)
        return gate.stop(self.store, session_keys(user_id, session_id).gate, words)

    def shut_down(self) -> None:
        """End all calls of this instance as interrupted by shutdown, for a program with its own SIGTERM handler."""
        for loop, pool in list(self._pools.items()):
            loop.call_soon_threadsafe(pool.stops.end)

    async def close(self) -> None:
        """Close the connections of this event loop. Sessions need no closing."""
        if pool := self._pools.pop(asyncio.get_running_loop(), None):
            await pool.close()

    def close_sync(self) -> None:
        """The same after `call_sync`, whose threads end."""
        with self._turn:
            loop, self._own_loop = self._own_loop, None
        if loop is not None:
            for ending in (self.close(), loop.shutdown_asyncgens(), loop.shutdown_default_executor()):
                asyncio.run_coroutine_threadsafe(ending, loop).result()
            loop.call_soon_threadsafe(loop.stop)
            self._own_thread.join()
            loop.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_sync()

    def _loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of `call_sync`, in a thread of its own."""
        with self._turn:
            if self._own_loop is None:
                self._own_loop = asyncio.new_event_loop()
                self._own_thread = threading.Thread(target=self._own_loop.run_forever, name="harness", daemon=True)
                self._own_thread.start()
            return self._own_loop

    def _keys(self, options: CallOptions, known: Collection[str] = CallOptions.__annotations__) -> SessionKeys:
        """The keys of a call's session. Raises TypeError for an option that is not `known`, UsageFault where a place is shared
        and the call does not say whose it is."""
        for name in options.keys() - known:
            near = difflib.get_close_matches(name, known, 1) or sorted(known)
            raise TypeError(f"unknown option {name}: did you mean {' or '.join(near)}?")
        needed = IDS if self.config.scope == OF_SESSION else ("user_id",)
        if self.place.is_shared and any(name not in options for name in needed):
            raise UsageFault(_placement.NEEDS_IDS.format(kind=self.place.kind))
        keys = session_keys(options.get("user_id", USER), options.get("session_id", SESSION))
        return scoped(keys, self.config.scope, self.name)

    def _here(self) -> SessionPool:
        """The shared state of the calls of this event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            for gone in [one for one in self._pools if one.is_closed()]:
                del self._pools[gone]
            self._pools[loop] = SessionPool(
                self.name,
                self.store,
                self.source,
                self.environment,
                self.sandboxes,
                self.config,
                self.client(),
                self.tools,
            )
        return self._pools[loop]

    def client(self) -> Model:
        """Its model. Raises Unavailable without the extra or without a key."""
        if not isinstance(self.model, str):
            return self.model
        if not builtin.installed():
            raise Unavailable(builtin.NO_EXTRA.format(python="python", extra=builtin.EXTRA))
        from harness.builtin.loop.model_client import ModelClient  # a second: only where a model is asked

        config = self.config
        key_names = builtin.keys_of(self.model, {"api_key_env": config.api_key_env})
        given = {name: getattr(config, name) for name in ("base_url", "temperature", "max_output_tokens")}
        known = {key: value for key, value in given.items() if value not in (None, "")}
        parameters = builtin.bounded({"model": self.model, **known})
        key = config.api_key or next((value for name in key_names if (value := os.environ.get(name, "").strip())), "")
        try:
            return ModelClient(parameters, key, config.request_seconds, () if config.api_key else key_names)
        except ModelFault as fault:
            raise Unavailable(fault.reason) from None


def _tools(functions: Iterable[Callable[..., Any] | Tool]) -> list[Tool]:
    """The tools of a program; a function's schema needs the packages of the extra."""
    given = list(functions)
    if all(isinstance(one, Tool) for one in given):
        return [one for one in given if isinstance(one, Tool)]
    from harness.builtin.tools.functions import tools_of  # of the extra

    return tools_of(given)


def _output_format(options: CallOptions) -> OutputFormat | None:
    if options.get("output") is None:
        return None
    from harness.builtin.sessions._output import OutputFormat  # of the extra

    return OutputFormat(options["output"])


def _reply(keys: SessionKeys, result: CallRecord, wanted: OutputFormat | None) -> Reply:
    same = {name: getattr(result, name) for name in ("outcome", "reason", "call", "turns", "seconds", "usage")}
    output = wanted.value(result.reply) if wanted and result.outcome == "ok" else None
    return Reply(text=result.reply, user=keys.user, session=keys.session, output=output, **same)
