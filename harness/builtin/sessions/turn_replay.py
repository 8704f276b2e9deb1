"""A request of a session: what it was made of, and whether it can be made again byte for byte."""

from __future__ import annotations

import asyncio
from typing import Any

from harness.builtin import turn_replay
from harness.builtin.loop.exchange import ModelFault, Request
from harness.builtin.sessions import log
from harness.builtin.sessions.keys import SessionKeys
from harness.builtin.turn_replay import RebuiltRequest, RecordedTurn
from harness.stores.store import Store

UNUSED = "unused"  # a key for a request that is only rebuilt
SECONDS = 60.0


def turn(store: Store, keys: SessionKeys, number: int) -> tuple[RecordedTurn, RebuiltRequest | None]:
    """A request, and the same request rebuilt; None without the packages for that. Raises UsageFault if there is no such
    turn."""
    turns = log.whole(store, keys).turns
    seen = turn_replay.seen_in(turns, number, f"The session {keys.session}", keys.session)
    if not turn_replay.comparable():
        return seen, None
    try:
        body = asyncio.run(_made(turns.request(number)))
    except ModelFault as fault:
        return seen, RebuiltRequest(equal=False, digest="", bytes=0, by="", fault=[fault.outcome, fault.reason])
    return seen, RebuiltRequest(equal=body["digest"] == seen.digest, **body)


async def _made(request: Request) -> dict[str, Any]:
    from harness.builtin.loop.model_client import ModelClient  # a second: only where a request is made

    wire = ModelClient(request.parameters, UNUSED, SECONDS)
    try:
        sent, _ = await wire.body(request)
    finally:
        await wire.close()
    return {name: getattr(sent, name) for name in ("digest", "bytes", "by")}
