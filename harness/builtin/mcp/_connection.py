"""A connection with one server, held by a task of its own on the loop of the pool: its tools, and calls of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT, CallToolResult, ReadResourceResult, Tool

from harness.base.call_context import CallContext
from harness.builtin.mcp import _stdio
from harness.builtin.mcp._stdio import Program
from harness.workspace.tools import STDIO, McpServer

CONNECT_SECONDS = 30.0
META = "harness"  # the key of our metadata in a request
ANSWER_SECONDS = 5.0  # for a look whether a server still answers
MOST_PAGES = 100  # of a list that would not end


class Connection:
    """See above. `open` begins it; `fault`: why it is over, "" while it is not."""

    def __init__(self, server: McpServer, program: Program) -> None:
        self.server, self.program = server, program
        self.tools: list[Tool] = []
        self.instructions, self.has_resources = "", False
        self.fault = ""
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._over = asyncio.Event()

    async def open(self) -> None:
        """Connect, and list the tools; afterwards `fault` says whether that went well."""
        ready = asyncio.Event()
        self._task = asyncio.create_task(self._held(ready))
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait({self._task, waiting}, timeout=CONNECT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not ready.is_set():
            slow = not self._task.done()
            await self._end()
            self.fault = f"it did not answer within {CONNECT_SECONDS:g} s" if slow else self._why()

    async def _held(self, ready: asyncio.Event) -> None:
        async with self._transport() as streams, Client(streams) as client:
            self._client, self.instructions = client, client.instructions or ""
            self.tools = [one async for page in _pages(client.list_tools) for one in page.tools]
            if client.server_capabilities.resources:
                with suppress(MCPError):  # it has tools all the same
                    self.has_resources = bool(await self.resources())
            ready.set()
            await self._over.wait()

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[Any]:
        """The transport from which the library makes a connection."""
        if self.server.transport == STDIO:
            yield _stdio.connected(self.program)
            return
        timeout = httpx2.Timeout(CONNECT_SECONDS, read=max(CONNECT_SECONDS, self.server.seconds + 1.0))
        async with httpx2.AsyncClient(headers=self.server.headers, timeout=timeout) as client:
            yield streamable_http_client(self.server.url, http_client=client)

    async def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """Call a tool, with the context of the call as metadata; what the library raises shows what went wrong."""
        assert self._client is not None, "only what is connected is called"
        context = CallContext.current()
        meta: Any = {META: context.metadata} if context.user else None
        return await self._client.call_tool(tool, arguments, read_timeout_seconds=self.server.seconds, meta=meta)

    async def read(self, uri: str) -> ReadResourceResult:
        """Read a resource; as `call`."""
        assert self._client is not None, "only what is connected is read"
        async with asyncio.timeout(self.server.seconds):
            return await self._client.read_resource(uri, cache_mode="bypass")

    async def resources(self) -> list[str]:
        """URI, name and description of each resource, and of each template of such; as `call`."""
        assert self._client is not None, "as above"
        client, found = self._client, list[tuple[str, Any]]()
        async with asyncio.timeout(self.server.seconds):
            found += [(one.uri, one) async for page in _pages(client.list_resources) for one in page.resources]
            with suppress(MCPError):  # most servers know no templates
                pages = _pages(client.list_resource_templates)
                found += [(one.uri_template, one) async for page in pages for one in page.resource_templates]
        return [f"{uri}: {one.title or one.name}. {one.description or ''}" for uri, one in found]

    async def answers(self) -> bool:
        """Whether the server still answers, after a fault."""
        if not self.is_alive or self._client is None:
            return False
        asked = asyncio.create_task(self._client.list_tools(cache_mode="bypass"))
        await asyncio.wait({asked}, timeout=ANSWER_SECONDS)
        asked.cancel()
        return asked.done() and not asked.cancelled() and asked.exception() is None

    @property
    def is_alive(self) -> bool:
        """Whether it is connected, as far as anybody knows."""
        return not self.fault and self._task is not None and not self._task.done()

    async def close(self) -> None:
        """End it; a server that is a program has ended then."""
        await self._end()
        self.fault = self.fault or "it was closed"

    async def _end(self) -> None:
        if self._task is None:
            return
        self._over.set()
        await asyncio.wait({self._task}, timeout=_stdio.CLOSE_SECONDS + _stdio.GRACE_SECONDS + 1.0)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})

    def _why(self) -> str:
        task = self._task
        found = None if task is None or task.cancelled() or not task.done() else task.exception()
        return ": ".join(filter(None, [words(found) if found else "it ended", self.program.last_words]))


async def _pages(ask: Callable[..., Awaitable[Any]]) -> AsyncIterator[Any]:
    """The pages of a list."""
    cursor = None
    for _ in range(MOST_PAGES):
        yield (page := await ask(cursor=cursor, cache_mode="bypass"))
        if not (cursor := page.next_cursor):
            break


def refused(fault: BaseException) -> bool:
    """Whether the server itself answered with an error; after any other failure of a call its effect is unknown."""
    return isinstance(fault, MCPError) and fault.code not in (REQUEST_TIMEOUT, CONNECTION_CLOSED)


def words(fault: BaseException) -> str:
    """The text of a failure; of a group of failures, that of the first."""
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    return str(fault) or type(fault).__name__
