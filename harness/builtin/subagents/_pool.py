"""All subagents of a conversation, and of those: started, followed, sent more to, and ended with it.

Calls come from threads; the work is done by coroutines on the loop of the conversation.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from harness.base import clock
from harness.base.errors import UsageFault
from harness.mission import tasks as record
from harness.mission.tasks import CANCELLED, ENDED, RUNNING, Task
from harness.mission.usage import Usage
from harness.state import names
from harness.stores.store import ANY, StoreKey

TYPE_CHECKING = False
if TYPE_CHECKING:  # its type alone: a job is begun with one from outside
    from harness.workspace.subagents import Subagent

MOST_RUNNING = 8
MOST_TASKS = 100  # of one conversation
DEEPEST = 3
POLL_SECONDS = 0.01
STOP_SECONDS = 0.1  # between two looks whether nobody waits any more
BROKEN = "agent_error"


class TaskAnswer(Protocol):
    """How a part of the work ended; loop.End is one."""

    outcome: str
    reply: str
    reason: str


class Job:
    """One subagent: its declaration, its record, and the conversation that its worker keeps."""

    def __init__(self, agent: Subagent, task: Task) -> None:
        self.agent, self.task = agent, task
        self.used = Usage()
        self.waiting: list[str] = []
        self.doing: asyncio.Future[Any] | None = None
        self.done = threading.Event()
        self.begun = time.monotonic()
        self.cancelled = ""

    @property
    def runs(self) -> bool:
        """Whether it is at work."""
        return self.task.status == RUNNING


class TaskRunner(Protocol):
    """Does the work of subagents."""

    async def work(self, job: Job, message: str) -> TaskAnswer:
        """Say this to it, and let it work until it answers; the first message begins its conversation. Keeps `task.turns` and
        `used` of the job."""

    def stop(self, job: Job) -> None:
        """End it now, including the running call."""

    async def leave(self, job: Job) -> None:
        """No more is said to it."""

    def seen(self, job: Job) -> str:
        """The path at which the starting conversation sees the subagent's folder; "" for none."""

    def log_of(self, job: Job) -> str:
        """The digest of its turns."""


class SubagentPool:
    """See above. `at`: below which the records are; `loop`: where the work is done."""

    def __init__(self, at: StoreKey, worker: TaskRunner, loop: asyncio.AbstractEventLoop) -> None:
        self.at, self.worker, self.loop = at, worker, loop
        self.jobs: dict[str, Job] = {}
        self._lock = threading.Lock()

    def begin(self, agent: Subagent, text: str, *, parent: str, depth: int, known: list[str]) -> Job:
        """Start one; raises UsageFault where there are too many. `known`: ids that are taken."""
        with self._lock:
            busy = [name for name, job in self.jobs.items() if job.runs]
            if len(busy) >= MOST_RUNNING:
                raise UsageFault(f"{MOST_RUNNING} subagents are at work: {', '.join(busy)}. Wait for one, or end one.")
            if len(self.jobs) >= MOST_TASKS:
                raise UsageFault(
                    f"{MOST_TASKS} subagents were started here, and more are not. Use those with agent_send."
                )
            mine = [name for name in (*self.jobs, *known) if name.rpartition("-")[0] == agent.id]
            number = 1 + max(map(record.number_of, mine), default=0)
            task = Task(
                id=f"{agent.id}-{number}",
                agent=agent.id,
                parent=parent,
                depth=depth,
                mode=agent.mode,
                folder="",
                model=agent.model,
                asked=[text],
                at=clock.stamp(clock.now()),
            )
            job = self.jobs[task.id] = Job(agent, task)
        self._keep(task)
        self._start(job, text)
        return job

    def send(self, job: Job, text: str) -> None:
        """Say more to one: now where it has answered, else once it does."""
        with self._lock:
            job.task.asked = [*job.task.asked, text]
            if job.runs:
                job.waiting.append(text)
                return
            job.task.status, job.cancelled = RUNNING, ""
        self._keep(job.task)
        self._start(job, text)

    def _start(self, job: Job, text: str) -> None:
        job.begun = time.monotonic()
        job.done.clear()
        asyncio.run_coroutine_threadsafe(self._worked(job, text), self.loop)

    async def _worked(self, job: Job, text: str) -> None:
        """Work on one message after the other, and record how it ended."""
        goes_on = True
        while goes_on:
            doing = job.doing = asyncio.ensure_future(self.worker.work(job, text))
            if job.cancelled:
                doing.cancel()
            await asyncio.wait({doing})
            status, reply, reason = _end_of(job, doing)
            with self._lock:
                goes_on = status == record.OK and bool(job.waiting)
                if goes_on:
                    text = job.waiting.pop(0)
                else:
                    self._note_end(job, status, reply, reason)
        self._keep(job.task)
        job.done.set()

    def _note_end(self, job: Job, status: str, reply: str, reason: str) -> None:
        task = job.task
        task.reply, task.reason, task.status = reply[: record.MAX_TEXT_CHARS], reason, status
        task.ended = clock.stamp(clock.now())
        task.seconds = round(task.seconds + time.monotonic() - job.begun, 3)
        task.usage = {name: value for name, value in job.used.asdict().items() if value}
        task.log = self.worker.log_of(job)

    def _keep(self, task: Task) -> None:
        """Write the record, durably."""
        self.at.store.put(self.at.below(task.id, names.TASK).key, record.dumped(task), ANY)

    def wait(self, job: Job, seconds: float, stop: Callable[[], bool] = lambda: False) -> bool:
        """Whether it has ended, at most so many seconds from now, or until `stop` says so. Not on the loop of the work."""
        until = time.monotonic() + seconds
        while not stop() and (left := until - time.monotonic()) > 0 and not job.done.wait(min(left, STOP_SECONDS)):
            pass
        return job.done.is_set()

    def cancel(self, job: Job, status: str = CANCELLED) -> None:
        """End one, and those that it started."""
        for other in list(self.jobs.values()):
            if other.task.parent == job.task.id:
                self.cancel(other, ENDED)
        if job.runs:
            job.cancelled = status
            self.worker.stop(job)
            self.loop.call_soon_threadsafe(_stop, job)

    async def close(self) -> None:
        """End all that still run, record it, and close every conversation. On the loop of the work."""
        for job in list(self.jobs.values()):
            if not job.task.parent:
                self.cancel(job, ENDED)
        while any(job.runs for job in self.jobs.values()):
            await asyncio.sleep(POLL_SECONDS)
        for job in self.jobs.values():
            await self.worker.leave(job)


def _end_of(job: Job, doing: asyncio.Future[Any]) -> tuple[str, str, str]:
    """(status, answer, reason) of work that is done."""
    if job.cancelled or doing.cancelled():
        return job.cancelled or ENDED, "", "it was ended before it answered"
    if (fault := doing.exception()) is not None:
        return BROKEN, "", f"{type(fault).__name__}: {fault}"
    end: TaskAnswer = doing.result()
    return end.outcome, end.reply, end.reason


def _stop(job: Job) -> None:
    if job.doing is not None:
        job.doing.cancel()
