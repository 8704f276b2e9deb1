"""The MCP servers of this process: each is started once for a user, a definition and a folder, and shared by all conversations.

They live on an event loop in their own thread, so that conversations on any loop, or none, can call them."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent import futures
from concurrent.futures import Future
from typing import Any, TypeVar

from mcp_types import CallToolResult

from harness.base import encoding, schema
from harness.base.record import Record
from harness.builtin.mcp._connection import Connection, refused, words
from harness.builtin.mcp._stdio import Program
from harness.process.confine import Confinement
from harness.workspace import tools
from harness.workspace.tools import McpServer

T = TypeVar("T")

IDLE_SECONDS = 600.0  # a server that nobody has is kept for so long
SHORTEST_HIDDEN = 4  # characters of a variable's value that no message shows
STOP_SECONDS = 0.1  # between two looks whether nobody waits any more
STOPPED = "the conversation was interrupted"
NOT_SET = "{texts}, which is not set here"


class ServerPlace(Record):
    """For whom, and where, servers run: `environment` is that of programs, `variables` has the values of `${NAME}`."""

    user: str
    folder: str
    environment: Mapping[str, str]
    variables: Mapping[str, str]
    confinement: Confinement | None = None


class McpCallFailed(Exception):
    """A server, or a call of one of its tools, that failed; the text says why. `sent`: the call went out, and its effect is
    unknown; `gone`: the server does not answer any more."""

    def __init__(self, why: str, *, sent: bool = False, gone: bool = False) -> None:
        super().__init__(why)
        self.sent, self.gone = sent, gone


class Server:
    """One server of the pool. A broken connection is opened again; a call that was running then is not repeated."""

    def __init__(self, pool: ServerPool, definition: McpServer, where: ServerPlace) -> None:
        self.pool, self.where = pool, where
        self.definition, self.left_open = tools.substituted(definition, where.variables)
        self._hidden = hidden(definition, where.variables)
        self.users, self.left = 0, time.monotonic()
        self._lock = threading.Lock()
        self._link: Connection | None = None

    def call(self, tool: str, arguments: dict[str, Any], stop: Callable[[], bool] = lambda: False) -> CallToolResult:
        """Call a tool; see `answer`."""
        return self.answer(lambda link: link.call(tool, arguments), stop)

    def answer(self, ask: Callable[[Connection], Coroutine[Any, Any, T]], stop: Callable[[], bool]) -> T:
        """Ask it, and wait for the answer, or until `stop` says so; raises McpCallFailed."""
        link = self.connected()
        future: Future[T] = self.pool.begin(ask(link))
        while not futures.wait([future], STOP_SECONDS).done:
            if stop():
                future.cancel()
                raise McpCallFailed(STOPPED, sent=True)
        fault = future.exception()
        if fault is None:
            return future.result()
        gone = not self.pool.begin(link.answers()).result()
        if gone:  # the next call makes another link
            self.pool.begin(link.close()).result()
        last = link.program.last_words if gone else ""
        why = self.plain(": ".join(filter(None, [words(fault), last])))
        raise McpCallFailed(why, sent=not refused(fault), gone=gone)

    def connected(self) -> Connection:
        """The connection with it, made where there is none; raises McpCallFailed."""
        if self.left_open:
            raise McpCallFailed(NOT_SET.format(texts=", ".join(self.left_open)))
        with self._lock:
            if self._link is None or not self._link.is_alive:
                self._link = self.pool.begin(self._opened()).result()
            if self._link.fault:
                raise McpCallFailed(self.plain(self._link.fault))
            return self._link

    async def _opened(self) -> Connection:
        one, where = self.definition, self.where
        environment = {**where.environment, **one.env}
        argv, folder, confinement = [one.command, *one.args], where.folder, where.confinement
        if not one.confine:  # nor may it be started in a folder where an agent could leave a program for it
            folder, confinement = os.path.expanduser("~"), None
        link = Connection(one, Program(argv=argv, folder=folder, environment=environment, confinement=confinement))
        await link.open()
        return link

    def close(self) -> None:
        """End it."""
        with self._lock:
            if self._link is not None:
                self.pool.begin(self._link.close()).result()
                self._link = None

    def plain(self, text: str) -> str:
        """A message without the values of variables, which may be keys."""
        for name, value in self._hidden.items():
            text = text.replace(value, f"${{{name}}}")
        return text


class ServerPool:
    """The servers of a process; `shared()` is the one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers: dict[str, Server] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def take(self, definition: McpServer, where: ServerPlace) -> Server:
        """The server of this definition there; give it back with `leave`. It is connected at its first use."""
        key = _key(definition, where)
        with self._lock:
            found = self._servers.setdefault(key, Server(self, definition, where))
            found.users += 1
            before = time.monotonic() - IDLE_SECONDS
            old = [name for name, one in self._servers.items() if one.users == 0 and one.left < before]
            gone = [self._servers.pop(name) for name in old]
        for one in gone:
            one.close()
        return found

    def leave(self, server: Server) -> None:
        """Release it for one of its users."""
        with self._lock:
            server.users -= 1
            server.left = time.monotonic()

    def begin(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Do this on the loop of the servers."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="servers", daemon=True).start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """End all servers."""
        with self._lock:
            gone, self._servers = list(self._servers.values()), {}
        for one in gone:
            one.close()


def _key(definition: McpServer, where: ServerPlace) -> str:
    named = [schema.plain(definition), where.user, where.folder, dict(where.environment), dict(where.variables)]
    return encoding.digest(encoding.dump_json([*named, repr(where.confinement)]))


def hidden(definition: McpServer, variables: Mapping[str, str]) -> dict[str, str]:
    """{name: value} of the variables in the texts of a server, which no message may show."""
    names = {found[1] for found in tools.VARIABLE.finditer(encoding.compact(schema.plain(definition)))}
    return {name: variables[name] for name in names if len(variables.get(name, "")) >= SHORTEST_HIDDEN}


_shared: list[ServerPool] = []


def shared() -> ServerPool:
    """The pool of this process."""
    if not _shared:
        _shared.append(ServerPool())
    return _shared[0]
