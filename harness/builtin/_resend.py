"""The other task of the child: to rebuild one request of a past run, and to send it again if requested."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from harness.base.errors import UsageFault
from harness.base.record import Json
from harness.builtin._order import ChildOrder
from harness.builtin._run import key_of
from harness.builtin.loop import turns
from harness.builtin.loop.exchange import ModelFault, Request
from harness.state.layout import Layout

Report = Callable[[dict[str, Json]], None]

UNUSED = "unused"  # a key for a request that is only rebuilt


def send(order: ChildOrder, report: Report) -> int:
    """Report the body of the request, `body`, and where it is sent its `answer`, or why there is none, `fault`."""
    log = turns.read(Layout(order.project, order.state).turns(order.run, order.task))
    if log is None or order.turn not in log.turns:
        raise UsageFault(f"The run {order.run} has no turn {order.turn}.")
    asyncio.run(_sent(order, log.request(order.turn), report))
    return 0


async def _sent(order: ChildOrder, request: Request, report: Report) -> None:
    from harness.builtin.loop.model_client import ModelClient  # a second: only where a model is asked

    begun = time.monotonic()
    try:
        key = key_of(order) if order.send else UNUSED
        wire = ModelClient(request.parameters, key, order.request_seconds, order.key_env)
    except ModelFault as fault:
        report({"type": "fault", "outcome": fault.outcome, "reason": fault.reason})
        return
    try:
        sent, _ = await wire.body(request)
        report({"type": "body", **sent.asdict()})
        if order.send:
            answer = await wire.ask(request, lambda _: None, lambda _: report({"type": "delta", "delta": True}))
            calls = [{"name": call.name, "arguments": call.arguments or call.raw} for call in answer.calls]
            counts = {name: value for name, value in answer.usage.asdict().items() if value}
            seconds = round(time.monotonic() - begun, 3)
            report({"type": "answer", "text": answer.text, "calls": calls, "usage": counts, "seconds": seconds})
    except ModelFault as fault:
        report({"type": "fault", "outcome": fault.outcome, "reason": fault.reason})
    finally:
        await wire.close()
