"""The subagents that one conversation may start, as its tools see them; see tools.tool.Subagents."""

from __future__ import annotations

from harness.base.errors import UsageFault
from harness.builtin.subagents._pool import DEEPEST, Job, SubagentPool
from harness.builtin.tools.tool import ToolResult, ToolSession
from harness.builtin.tools.tool_results import failed
from harness.mission import tasks as record

TYPE_CHECKING = False
if TYPE_CHECKING:  # its type alone: a delegation is made of those from outside
    from harness.workspace.subagents import Subagent

KEY = "tasks"  # in the state of the conversation: {id: {agent, status}}
PROMOTED = (
    "{id} is still at work after {seconds:g} s, and goes on in the background. task_output has its answer once it is there;"
    " task_cancel ends it. It ends with you."
)
BEGUN = "{id} is at work in the background. task_output has its answer once it is there. It ends with you."
QUEUED = "{id} is at work; it gets the message once it has answered. task_output has what it says."
LEFT = (
    "Your answer would end your work, and {ids} would end with it, still at work in the background. If you need what comes of it,"
    " wait with task_output; else give your answer again."
)
STOPPED = "You were interrupted while {id} was at work, so it was ended."
OVER = "{id} has ended ({status}) and cannot go on. Start a new one if it is still needed."
GONE = "{id} ended when the conversation was interrupted, and cannot go on. Start a new one if it is still needed."


class Delegation:
    """`session`: what the tools of the conversation share; `agents`: which it may start; `parent` and
    `depth`: its own task, "" and 0 for a run."""

    def __init__(
        self, pool: SubagentPool, session: ToolSession, agents: list[Subagent], *, parent: str = "", depth: int = 0
    ) -> None:
        self.pool, self.session, self.parent, self.depth = pool, session, parent, depth
        self.there = {one.id: one for one in agents}
        self._said: list[str] = []

    @property
    def offered(self) -> bool:
        """Whether it may start any."""
        return bool(self.there) and self.depth < DEEPEST

    def spawn(self, agent: str, task: str, *, background: bool, seconds: float) -> ToolResult:
        if agent not in self.there:
            raise UsageFault(f"There is no subagent '{agent[:60]}'. There are: {', '.join(self.there) or 'none'}.")
        if not task.strip():
            raise UsageFault("The task is empty. Say what the subagent shall do, with all that it must know.")
        known = list(self.session.state.get(KEY, {}))
        declared = self.there[agent]
        job = self.pool.begin(declared, task, parent=self.parent, depth=self.depth + 1, known=known)
        job.task.background = background
        return self._followed(job, background, seconds)

    def send(self, name: str, message: str, *, background: bool, seconds: float) -> ToolResult:
        job = self._job(name)
        if job is None:
            return failed(GONE.format(id=name))
        busy = job.runs
        if not busy and job.task.status != record.OK:
            return failed(OVER.format(id=name, status=job.task.status))
        self.pool.send(job, message)
        return ToolResult(text=QUEUED.format(id=name)) if busy else self._followed(job, background, seconds)

    def _followed(self, job: Job, background: bool, seconds: float) -> ToolResult:
        """The answer of a task, or that it continues in the background."""
        self._note(job)
        if background:
            return ToolResult(text=BEGUN.format(id=job.task.id))
        if not self.pool.wait(job, seconds, self._stops):
            if self._stops():
                self.pool.cancel(job, record.ENDED)
                return failed(STOPPED.format(id=job.task.id))
            job.task.background = True
            return ToolResult(text=PROMOTED.format(id=job.task.id, seconds=seconds))
        return self._ended(job)

    def _ended(self, job: Job) -> ToolResult:
        self._note(job)
        task = job.task
        if task.status == record.OK:
            seen = self.pool.worker.seen(job)
            more = f"\n\n[Its files are in {seen}, until you end.]" if seen else ""
            return ToolResult(text=f"{task.id} answered:\n\n{task.reply}{more}")
        return failed(f"{task.id} ended without an answer ({task.status}): {task.reason or 'no reason is known'}.")

    def agents(self) -> str:
        rows = [f"{one.id}: {one.description} (works {_where(one)})" for one in self.there.values()]
        return "\n".join(rows) or "There is no subagent."

    def tasks(self) -> str:
        for job in self._own().values():
            self._note(job)
        rows = self.session.state.get(KEY, {})
        own = self._own()
        return "\n".join(f"{name}: {_status(row['status'], name in own)}" for name, row in rows.items()) or "None yet."

    def output(self, name: str, *, seconds: float) -> ToolResult:
        job = self._job(name)
        if job is None:
            return failed(GONE.format(id=name))
        if not self.pool.wait(job, seconds, self._stops):
            return ToolResult(text=f"{name} is still at work, after {job.task.turns} requests.")
        return self._ended(job)

    def cancel(self, name: str) -> ToolResult:
        job = self._job(name)
        if job is None:
            return failed(GONE.format(id=name))
        if not job.runs:
            return ToolResult(text=f"{name} had ended already ({job.task.status}).")
        self.pool.cancel(job)
        self.pool.wait(job, 30.0)
        self._note(job)
        return ToolResult(text=f"{name} was ended.")

    def reminder(self) -> str:
        left = [name for name, job in self._own().items() if job.runs and name not in self._said]
        self._said += left
        return LEFT.format(ids=", ".join(left)) if left else ""

    def _stops(self) -> bool:
        """Whether its conversation is being interrupted."""
        return self.session.stopping

    def _own(self) -> dict[str, Job]:
        return {name: job for name, job in self.pool.jobs.items() if job.task.parent == self.parent}

    def _job(self, name: str) -> Job | None:
        """A task of this conversation; None for one of before it was interrupted."""
        own = self._own()
        if name in own:
            return own[name]
        if name in self.session.state.get(KEY, {}):
            return None
        there = ", ".join(self.session.state.get(KEY, {})) or "none"
        raise UsageFault(f"There is no task '{name[:60]}'. There are: {there}.")

    def _note(self, job: Job) -> None:
        self.session.state.setdefault(KEY, {})[job.task.id] = {"agent": job.task.agent, "status": job.task.status}


def _where(agent: Subagent) -> str:
    return "in your folder" if agent.mode == "shared" else "in a folder of its own"


def _status(status: str, own: bool) -> str:
    return status if own or status != record.RUNNING else "ended when the conversation was interrupted"
