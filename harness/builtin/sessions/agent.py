"""HarnessAgent: the public Python interface. One instance serves any number of users and sessions at once."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from harness.agents import builtin
from harness.base.errors import Unavailable, UsageFault
from harness.base.record import Record
from harness.builtin.loop.exchange import AUTH, ModelFault
from harness.builtin.loop.loop import Limits
from harness.builtin.sessions import _calls, _places
from harness.builtin.sessions._calls import AgentConfig as AgentConfig
from harness.builtin.sessions._calls import Ask, SessionCall, SessionPool
from harness.builtin.sessions._system_text import SystemTextSource
from harness.builtin.sessions.keys import SessionKeys, keys
from harness.builtin.sessions.log import CallRecord
from harness.builtin.tool_environment import ToolEnvironment
from harness.filesystem.protocol import Filesystem
from harness.state.layout import Layout
from harness.stores import gate
from harness.stores.disk import DiskStore
from harness.stores.store import Store

Elsewhere = Callable[[str, str], Filesystem | ToolEnvironment]

USER = "default"  # who talks, where nobody says it


class Reply(Record):
    """What came of a call. `outcome`: `ok`, `interrupted`, or why it failed, as runs have it, with a `reason`; `text`: the
    answer,
    or as much of it as there was; `usage`: tokens and cost; `call`: its number in the session, `turns`: its first and last
    request."""

    text: str
    outcome: str
    reason: str
    user: str
    session: str
    call: int
    turns: list[int]
    seconds: float
    usage: dict[str, Any]

    def __str__(self) -> str:
        return self.text


class HarnessAgent:
    """An agent that any number of users talk with, each in any number of sessions; nothing of one is seen by another.

    `name`: of the role whose words it has (`roles/NAME.md`, else ours), and of the sessions that are its own; `model`: its
    vendor, a colon, its name. `workspace`: the folder with AGENTS.md, knowledge and skills, and, in `.harness/sessions`, the
    sessions; `store`: where sessions are kept instead. `filesystem`: given (user, session), the files that tools work with, or
    the ToolEnvironment of them; by default each user has a folder, without a shell. `instructions`: a text in place of the
    role's. `ask`: asks a person about a call, from a thread, until the second argument says that it is over; without it such
    calls are denied. `config`: the rest."""

    def __init__(
        self,
        name: str,
        model: str,
        *,
        workspace: str = ".",
        store: Store | None = None,
        filesystem: Elsewhere | None = None,
        instructions: str = "",
        ask: Ask | None = None,
        config: AgentConfig = AgentConfig(),  # noqa: B008 - it is frozen
    ) -> None:
        if not builtin.is_model(model):
            raise UsageFault(builtin.unknown(model))
        layout = Layout(workspace)
        self.name, self.ask, self.config = name, ask, config
        self.key_names = builtin.keys_of(model, {"api_key_env": config.api_key_env})
        self.store: Store = store or DiskStore(_places.root(layout))
        given = {"model": model, "base_url": config.base_url, "temperature": config.temperature}
        self.parameters = {key: value for key, value in given.items() if value not in (None, "")}
        self.source = SystemTextSource(layout, name, self.store, instructions)

        def environment(of: SessionKeys) -> ToolEnvironment:
            if filesystem is None:
                return _places.of_user(self.store, layout, of)
            return _places.of_program(self.store, of, filesystem(of.user, of.session))

        self.environment = environment
        self._pools: dict[asyncio.AbstractEventLoop, SessionPool] = {}
        self._own_loop: asyncio.AbstractEventLoop | None = None
        self._turn = threading.Lock()

    async def call(
        self,
        message: str,
        *,
        session_id: str,
        user_id: str = USER,
        report: Callable[[dict[str, Any]], None] = lambda row: None,
        limits: Limits | None = None,
    ) -> Reply:
        """Say something in a session, and wait for the answer. Calls of one session are carried out one after another, in the
        order in which they came, also where they come from several processes. `report` gets its steps as they happen. Where the
        caller is cancelled, what there is is kept. Raises a HarnessError where the session cannot be read or written."""
        of = keys(user_id, session_id)
        if not message.strip():
            raise UsageFault("The message is empty.")
        asked = SessionCall(message=message, report=report, ask=self.ask, limits=limits)
        return _reply(of, await _calls.carried_out(self._here(), of, asked))

    async def stream(
        self, message: str, *, session_id: str, user_id: str = USER, limits: Limits | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """The same, step by step: rows with a `type`: `text` (a piece of the answer), `call`, `result`, `usage`, `waits`,
        `summary`, `lacks`; the last one is `end`, with the `reply`. Whoever stops early cancels the call."""
        rows: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        call = self.call(message, session_id=session_id, user_id=user_id, report=rows.put_nowait, limits=limits)
        work = asyncio.ensure_future(call)
        work.add_done_callback(lambda _: rows.put_nowait({}))
        try:
            while row := await rows.get():
                yield row
            yield {"type": "end", "reply": await work}
        finally:
            if not work.done():
                work.cancel()
                await asyncio.wait([work])

    def call_sync(self, message: str, *, session_id: str, user_id: str = USER, limits: Limits | None = None) -> Reply:
        """`call` for programs without an event loop; from any number of threads."""
        made = self.call(message, session_id=session_id, user_id=user_id, limits=limits)
        return asyncio.run_coroutine_threadsafe(made, self._loop()).result()

    def interrupt(self, session_id: str, user_id: str = USER, words: str = "") -> int:
        """End all calls of a session that run or wait, in any process, with these words for the agent; how many there are."""
        return gate.stop(self.store, keys(user_id, session_id).gate, words)

    async def close(self) -> None:
        """Close the connections of this event loop. Sessions need no closing."""
        if parts := self._pools.pop(asyncio.get_running_loop(), None):
            await parts.close()

    def close_sync(self) -> None:
        """The same after `call_sync`."""
        with self._turn:
            loop, self._own_loop = self._own_loop, None
        if loop is not None:
            asyncio.run_coroutine_threadsafe(self.close(), loop).result()
            loop.call_soon_threadsafe(loop.stop)

    async def __aenter__(self) -> HarnessAgent:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __enter__(self) -> HarnessAgent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_sync()

    def _loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of `call_sync`, in a thread of its own."""
        with self._turn:
            if self._own_loop is None:
                self._own_loop = asyncio.new_event_loop()
                threading.Thread(target=self._own_loop.run_forever, name="harness", daemon=True).start()
            return self._own_loop

    def _here(self) -> SessionPool:
        """What the calls of this event loop share."""
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            for gone in [one for one in self._pools if one.is_closed()]:
                del self._pools[gone]
            self._pools[loop] = SessionPool(
                self.name, self.store, self.source, self.environment, self.config, self._model()
            )
        return self._pools[loop]

    def _model(self) -> Any:
        if not builtin.installed():
            raise Unavailable(builtin.NO_EXTRA.format(python="python", extra=builtin.EXTRA))
        from harness.builtin.loop.model_client import ModelClient  # a second: only where a model is asked

        key = self.config.api_key or next((value for name in self.key_names if (value := os.environ.get(name))), "")
        try:
            return ModelClient(self.parameters, key, self.config.request_seconds)
        except ModelFault as fault:
            words_ = f"{fault.reason}: {' or '.join(self.key_names)}" if fault.outcome == AUTH else fault.reason
            raise Unavailable(words_) from None


def _reply(of: SessionKeys, result: CallRecord) -> Reply:
    same = {name: getattr(result, name) for name in ("outcome", "reason", "call", "turns", "seconds", "usage")}
    return Reply(text=result.reply, user=of.user, session=of.session, **same)
