"""A request on its way out: whoever asked is told of the bytes that really go, before they do."""

from __future__ import annotations

import asyncio

import httpx2
import pytest

from harness.base import encoding
from harness.builtin.loop import _outgoing
from harness.builtin.loop._outgoing import OutgoingRequest, RequestRecorder
from harness.builtin.loop.exchange import Sent


def carried(going: OutgoingRequest, body: bytes) -> bytes:
    """What a server gets of a request with this body."""
    got = list[bytes]()

    def serve(request: httpx2.Request) -> httpx2.Response:
        got.append(request.read())
        assert int(request.headers["content-length"]) == len(got[0])
        return httpx2.Response(200, json={})

    async def send() -> None:
        _outgoing.current.set(going)
        hooks = {"request": [RequestRecorder("the library 1").goes]}
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(serve), event_hooks=hooks) as client:
            await client.post("http://model/v1/chat", content=body)

    asyncio.run(send())
    return got[0]


def test_what_is_told_is_what_goes() -> None:
    """And the teller is waited for."""
    told = list[Sent]()

    async def tell(sent: Sent) -> None:
        await asyncio.sleep(0)
        told.append(sent)

    whole = b"first, second"
    assert carried(OutgoingRequest(tell), whole) == whole
    assert [(one.path, one.digest, one.bytes, one.by) for one in told] == [
        ("/v1/chat", encoding.digest(whole), len(whole), "the library 1")
    ]


def test_a_body_that_is_only_kept_goes_nowhere() -> None:
    """For a request that is only made again."""
    going = OutgoingRequest(lambda _: None, only_kept=True)
    with pytest.raises(httpx2.RequestError):
        carried(going, b"a body")
    assert going.body == b"a body"
