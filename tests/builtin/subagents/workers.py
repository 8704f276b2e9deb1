"""A crew whose workers answer without any model, and the loop that it works on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.builtin.loop.loop import End
from harness.builtin.subagents._delegation import Delegation
from harness.builtin.subagents._pool import Job, SubagentPool
from harness.builtin.tools.tool import ToolSession
from harness.filesystem.local import Local
from harness.stores.disk import DiskStore
from harness.stores.store import StoreKey
from harness.workspace.subagents import Subagent

SCOUT = Subagent(id="scout", description="Finds.", prompt="Find.", mode="shared")


class Answering:
    """Each message is answered by `says`, after `seconds`."""

    def __init__(self, says: Callable[[str], str] = str.upper, seconds: float = 0.0) -> None:
        self.says, self.seconds = says, seconds
        self.closed: list[str] = []

    async def work(self, job: Job, message: str) -> End:
        """See Worker."""
        await asyncio.sleep(self.seconds)
        return End(outcome="ok", reply=self.says(message))

    def stop(self, job: Job) -> None:
        """Nothing runs in a thread."""

    async def leave(self, job: Job) -> None:
        """Keep that it was closed."""
        self.closed.append(job.task.id)

    def log_of(self, job: Job) -> str:
        """It has no turns."""
        return ""

    def seen(self, job: Job) -> str:
        """It has no files."""
        return ""


@contextmanager
def crewed(folder: Path, worker: Answering | None = None) -> Iterator[Delegation]:
    """The squad of a run; the crew is closed at the end."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    crew = SubagentPool(StoreKey(DiskStore(str(folder / "tasks")), ()), worker or Answering(), loop)
    try:
        yield Delegation(crew, ToolSession(Local(str(folder))), [SCOUT])
    finally:
        asyncio.run_coroutine_threadsafe(crew.close(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()
