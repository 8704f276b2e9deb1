"""The context of a call reaches all code that works for it, and no other call's."""

from __future__ import annotations

import asyncio

from harness import CallContext


def test_each_call_has_its_own_context_also_in_threads_and_tasks() -> None:
    """Two at once; outside there is none."""

    async def seen(user: str) -> list[str]:
        with CallContext(user=user, attributes={"tenant": user}).entered():
            await asyncio.sleep(0.01)
            thread = await asyncio.to_thread(CallContext.current)
            task = await asyncio.create_task(_current())
            return [CallContext.current().user, thread.user, str(task.attributes["tenant"])]

    async def both() -> list[list[str]]:
        return list(await asyncio.gather(seen("ann"), seen("bob")))

    assert asyncio.run(both()) == [["ann"] * 3, ["bob"] * 3]
    assert CallContext.current() == CallContext()


async def _current() -> CallContext:
    return CallContext.current()
