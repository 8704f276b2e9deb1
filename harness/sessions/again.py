"""A request of a session: what it was made of, and whether it can be made again byte for byte."""

from __future__ import annotations

import asyncio
from typing import Any

from harness.base.errors import UsageFault
from harness.builtin import past
from harness.builtin.exchange import ModelFault, Request
from harness.builtin.past import Again, Seen
from harness.sessions import log
from harness.sessions.store import Keys, Store

UNUSED = "unused"  # a key for a request that is only rebuilt
SECONDS = 60.0


def turn(store: Store, of: Keys, number: int) -> tuple[Seen, Again | None]:
    """A request, and the same made again; None without the packages for that. Raises UsageFault where there is no such turn."""
    if not store.length(of.log):
        raise UsageFault(f"There is no session {of.session} of {of.user}.")
    turns = log.whole(store, of).turns
    seen = past.seen_in(turns, number, f"The session {of.session}", of.session)
    if not past.comparable():
        return seen, None
    try:
        body = asyncio.run(_made(turns.request(number)))
    except ModelFault as fault:
        return seen, Again(equal=False, digest="", bytes=0, by="", fault=[fault.outcome, fault.reason])
    return seen, Again(equal=body["digest"] == seen.digest, **body)


async def _made(request: Request) -> dict[str, Any]:
    from harness.builtin.wire import Wire  # a second: only where a request is made

    wire = Wire(request.parameters, UNUSED, SECONDS)
    try:
        sent, _ = await wire.body(request)
    finally:
        await wire.close()
    return {name: getattr(sent, name) for name in ("digest", "bytes", "by")}
