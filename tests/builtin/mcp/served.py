"""An MCP server made with the library, on loopback over streamable HTTP."""

from __future__ import annotations

import asyncio
import socket
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.utilities.types import Image
from mcp_types import ToolAnnotations

from tests.builtin.mcp.program import PIXEL


def made() -> MCPServer:
    """The server with its tools."""
    server = MCPServer("tests")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def look(name: str) -> str:
        """Looks, and leaves nothing behind."""
        return name

    @server.tool()
    def long(count: int) -> str:
        """Says a lot."""
        return "\n".join(f"line {number}" for number in range(count))

    @server.tool()
    async def slow(seconds: int) -> str:
        """Takes its time."""
        await asyncio.sleep(seconds)
        return "at last"

    @server.tool(name="pixel.one")
    def pixel() -> Image:
        """Shows a picture."""
        return Image(data=b64decode(PIXEL), format="png")

    return server


@contextmanager
def over_http(token: str = "") -> Iterator[str]:
    """The URL of the server, which wants this token in a header where there is one."""
    import uvicorn

    app = made().streamable_http_app()

    async def guarded(scope: dict, receive: object, send: object) -> None:  # type: ignore[type-arg]  # as ASGI has it
        wanted = f"Bearer {token}".encode() if token else None
        if scope["type"] == "http" and wanted and dict(scope["headers"]).get(b"authorization") != wanted:
            await send({"type": "http.response.start", "status": 401, "headers": []})  # type: ignore[operator]  # a function of ASGI
            await send({"type": "http.response.body", "body": b"no"})  # type: ignore[operator]  # a function of ASGI
            return
        await app(scope, receive, send)  # type: ignore[arg-type]  # functions of ASGI

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(guarded, log_level="critical"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            server.should_exit = server.force_exit = True
            thread.join(60)
