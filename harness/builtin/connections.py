"""One HTTP client for many conversations at once: a pool that looks through all its connections at each request costs, with a
hundred of them, more than the request itself. So it is several small pools, and a request goes to the first that has room.
"""

from __future__ import annotations

import os

import httpx2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ROOM = 1  # requests at once in one of the pools
PROXIES = ("http_proxy", "https_proxy", "all_proxy")  # where one is set, the client's own pool serves: it knows them


def transport() -> httpx2.AsyncBaseTransport | None:
    """The pools; None where the client's own must serve."""
    return None if any(name.lower() in PROXIES and value for name, value in os.environ.items()) else _Pools()


class _Pools(httpx2.AsyncBaseTransport):
    """Pools in the order in which they were made, each with how many requests are in it."""

    def __init__(self) -> None:
        self.trusted = httpx2.create_ssl_context()
        self.pools: list[_Pool] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        pool = next((one for one in self.pools if one.busy < ROOM), None)
        if pool is None:
            pool = _Pool(self.trusted)
            self.pools.append(pool)
        return await pool.carried(request)

    async def aclose(self) -> None:
        for pool in self.pools:
            await pool.transport.aclose()


class _Pool:
    """A pool of the library, and how many requests are in it: until their answers are closed."""

    def __init__(self, trusted: object) -> None:
        self.transport, self.busy = httpx2.AsyncHTTPTransport(verify=trusted), 0  # type: ignore[arg-type]  # an SSLContext

    async def carried(self, request: httpx2.Request) -> httpx2.Response:
        """The answer to a request."""
        self.busy += 1
        try:
            response = await self.transport.handle_async_request(request)
        except BaseException:
            self.busy -= 1
            raise
        assert isinstance(response.stream, httpx2.AsyncByteStream), "an asynchronous transport has such a stream"
        response.stream = _Counted(self, response.stream)
        return response


class _Counted(httpx2.AsyncByteStream):
    """The bytes of an answer; its pool has room again once it is closed."""

    def __init__(self, pool: _Pool, inner: httpx2.AsyncByteStream) -> None:
        self.pool, self.inner, self.open = pool, inner, True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self.inner:
            yield data

    async def aclose(self) -> None:
        if self.open:
            self.open = False
            self.pool.busy -= 1
        await self.inner.aclose()
