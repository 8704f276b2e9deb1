"""One client for many conversations: small pools, each request in the first that has room."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.agents.modelserver import Reply, serving
from tests.builtin import talking

httpx2 = pytest.importorskip("httpx2", reason="the built-in agent's packages are not installed: make setup")


def test_requests_at_once_share_pools_and_one_after_another_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many pools as are needed; those that end, also by a cancel, make room."""
    from harness.builtin import connections

    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    assert talking.MODELS
    go = threading.Event()
    with serving(lambda _: Reply(str(go.wait(20)))) as server:

        async def asked() -> None:
            transport = connections.transport()
            assert isinstance(transport, connections._Pools)
            body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
            async with httpx2.AsyncClient(transport=transport, timeout=20) as client:

                async def one() -> None:
                    await client.post(f"{server.url}/v1/chat/completions", json=body)

                work = [asyncio.ensure_future(one()) for _ in range(2 * connections.ROOM + 1)]
                await asyncio.sleep(0.3)
                assert [pool.busy for pool in transport.pools] == [connections.ROOM, connections.ROOM, 1]
                work[0].cancel()
                await asyncio.wait([work[0]])
                assert transport.pools[0].busy == connections.ROOM - 1
                go.set()
                await asyncio.wait(work)
                assert [pool.busy for pool in transport.pools] == [0, 0, 0]
                await one()
                assert len(transport.pools) == 3

        asyncio.run(asked())
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    assert connections.transport() is None
