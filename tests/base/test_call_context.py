"""The context of a call reaches all code that works for it, and no other call's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from harness import CallContext, MemoryStore, SimulatedCall
from harness.filesystem.local import Local
from harness.stores.store import Key, Value
from tests.builtin.simulating import Program


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


def test_stores_and_filesystems_see_whose_call_it_is_and_nothing_of_it_is_stored(tmp_path: Path) -> None:
    """Every write of the call, and every read of a tool."""
    seen: set[Any] = set()

    class Store(MemoryStore):
        """Notes for whom it writes."""

        def put(self, key: Key, data: bytes, expect: str) -> str:
            """See MemoryStore."""
            seen.add(("put", CallContext.current().attributes["tenant"]))
            return super().put(key, data, expect)

    class Files(Local):
        """Notes for whom it lists."""

        def ls(self, path: str = ".", *more: Any, **named: Any) -> Any:
            """See Local."""
            seen.add(("ls", CallContext.current().user))
            return super().ls(path, *more, **named)

    store = Store()
    with Program(
        tmp_path, SimulatedCall(name="list_files"), "ok", store=store, filesystem=lambda *_: Files(str(tmp_path))
    ) as program:
        program.call_sync("hi", user_id="ann", attributes={"tenant": "secret-7"})
    assert seen == {("put", "secret-7"), ("ls", "ann")}
    assert not [key for key in store.list(()) if b"secret-7" in (store.get(key) or Value(b"", "")).data]


async def _current() -> CallContext:
    return CallContext.current()
