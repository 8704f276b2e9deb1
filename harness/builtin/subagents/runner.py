"""Carries out the work of subagents: each has a conversation of its own, and all share one budget."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harness.base import encoding
from harness.base.errors import UsageFault
from harness.builtin.conversation import SCRATCH, Conversation, ConversationSpec
from harness.builtin.loop import turns
from harness.builtin.loop.loop import End, Report
from harness.builtin.loop.message_history import MessageHistory
from harness.builtin.subagents._delegation import Delegation
from harness.builtin.subagents._pool import MOST_RUNNING, Job, SubagentPool
from harness.builtin.tool_environment import ToolEnvironment
from harness.filesystem.local import Mount
from harness.state import files, names
from harness.stores import log as logs
from harness.stores.disk import folder_of
from harness.workspace import skills
from harness.workspace.snapshot import WorkspaceSnapshot
from harness.workspace.subagents import Subagent

PROJECT = "project"  # how an isolated subagent sees the folder of whoever started it
ISOLATED = "isolated"
WORDS = """# Your task

Another agent started you, as its subagent {id}: {description}
What it says is your task. It sees nothing of your work but your last answer, so put into that all that it needs: what you found
or did, where it is, and what is left. {where}
"""
WHERES = {
    "shared": "You work in its folder, at the same time as it does.",
    ISOLATED: "You work in a folder of your own, and may read that of whoever started you.",
}
LOOK = (
    "{message}\n\n[The folder of whoever started you is `project` for your tools, and {path} for commands; both are to be read"
    " only.]"
)


class SubagentRunner:
    """See _pool.TaskRunner and conversation.Supervisor. `top`: the conversation that they belong to; they share its budget. Tool
    calls have threads of their own: the event loop has few, and a call that waits for a subagent keeps its thread."""

    def __init__(self, top: Conversation) -> None:
        self.top = top
        self.conversations = {"": top}
        self.threads = ThreadPoolExecutor(2 * MOST_RUNNING, "subagents")  # one each; the rest for calls of ended ones
        assert top.spec.tasks is not None, "else the conversation starts none"
        self.pool = SubagentPool(top.spec.tasks, self, asyncio.get_running_loop())

    async def close(self) -> None:
        await self.pool.close()
        self.threads.shutdown(wait=False)

    def enlist(self, one: Conversation) -> None:
        depth = self.pool.jobs[one.spec.task].task.depth if one.spec.task else 0
        given = one.spec.workspace
        delegation = Delegation(
            self.pool, one.session, given.subagents if given else [], parent=one.spec.task, depth=depth
        )
        if delegation.offered:
            one.session.subagents = delegation

    async def work(self, job: Job, message: str) -> End:
        one = self.conversations.get(job.task.id)
        if one is None:
            one = self.conversations[job.task.id] = await Conversation.open(self._spec(job))
            one.begin(self._first(job, message))
        else:
            one.history.say(message)
        loop = one.loop(steps=job.agent.steps)
        loop.used = job.used
        try:
            return await loop.run()
        finally:
            job.used, job.task.turns = loop.used, one.history.turn

    def _spec(self, job: Job) -> ConversationSpec:
        """The specification of its conversation: the skills, files and tools of the parent that it may use."""
        parent, agent, task = self.conversations[job.task.parent], job.agent, job.task
        given, environment = _given(parent.spec.workspace, agent), self._environment(parent.environment, job)
        task.folder, task.model = environment.folder, self._model(agent)
        return parent.spec.replace(
            name=f"subagent {task.id} of {self.top.spec.name}",
            environment=environment,
            history=MessageHistory(turns.StoredTurnWriter(self.pool.at.below(task.id, names.TURNS))),
            parameters={**self.top.spec.parameters, "model": task.model},
            system="\n".join(filter(None, [self.top.spec.head, *self._words(job, given)])),
            budget=self.top.budget,
            report=self._reporter(job),
            workspace=given,
            threads=self.threads,
            parent=parent,
            task=task.id,
            only=agent.tools,
        )

    def _first(self, job: Job, message: str) -> str:
        """The first message: the task, and where the folder of its parent is, if it works in another."""
        if job.agent.mode != ISOLATED:
            return message
        above = self.conversations[job.task.parent].environment
        return LOOK.format(message=message, path=above.seen(above.folder))

    def _model(self, agent: Subagent) -> str:
        """Its model; a name without a vendor means the vendor of the parent."""
        ours = str(self.top.spec.parameters["model"])
        vendor = ours.partition(":")[0]
        return ours if not agent.model else agent.model if ":" in agent.model else f"{vendor}:{agent.model}"

    def _words(self, job: Job, given: WorkspaceSnapshot | None) -> list[str]:
        """The parts of its system text behind the head: what is the same for every task of it."""
        agent = job.agent
        index = skills.index(given.skills) if given else ""
        about = WORDS.format(id=agent.id, description=agent.description, where=WHERES[agent.mode])
        told = f"# Skills\n\nEach is a way of working. Load one with load_skill before the work that it describes.\n\n{index}"
        return [self.top.spec.instructions, told if index else "", about, agent.prompt]

    def _environment(self, above: ToolEnvironment, job: Job) -> ToolEnvironment:
        """Where it works: in its parent's folder; or in one of its own, with its parent's to be read. The run has the verbs."""
        results = folder_of(self.pool.at.below(job.task.id, names.RESULTS))
        made = above.replace(run="", home=above.home or above.layout, results=results, memory=None, filesystem=None)
        if job.agent.mode != ISOLATED:
            return made
        folder = self._own_folder(above.folder, job)
        files.make_folder(folder)
        confinement = above.confinement
        if confinement and not job.agent.folder:
            confinement = confinement.reading(above.folder).opened(folder)
        also = {PROJECT: Mount(path=above.folder)}
        return made.replace(folder=folder, confinement=confinement, also=also)

    def _own_folder(self, above: str, job: Job) -> str:
        if not job.agent.folder:
            own = folder_of(self.pool.at.below(job.task.id, "files"))
            if not (made := os.path.join(self.top.scratch, job.task.id) if self.top.scratch else own):
                raise UsageFault(f"The subagent {job.agent.id} works in a folder of its own: set TMPDIR.")
            return os.path.realpath(made)
        folder = os.path.realpath(os.path.join(above, job.agent.folder))
        if not folder.startswith(os.path.realpath(above) + "/"):
            raise UsageFault(f"The folder of the subagent {job.agent.id} leads out of the project: {job.agent.folder}.")
        return folder

    def _reporter(self, job: Job) -> Report:
        """Report its events to the listener of the whole conversation: signs of life and costs unchanged, the rest as events of
        a task."""

        def report(row: dict[str, Any]) -> None:
            if row["type"] in ("delta", "usage"):
                self.top.report({name: value for name, value in row.items() if name != "model"})
            else:
                self.top.report({**row, "type": "task", "what": row["type"], "task": job.task.id})

        return report

    def stop(self, job: Job) -> None:
        if (one := self.conversations.get(job.task.id)) is not None:
            one.session.stopping = True

    async def leave(self, job: Job) -> None:
        if (one := self.conversations.pop(job.task.id, None)) is not None:
            await one.close()

    def log_of(self, job: Job) -> str:
        data = logs.read(*self.pool.at.below(job.task.id, names.TURNS)).data
        return encoding.digest(data) if data else ""

    def seen(self, job: Job) -> str:
        """How its parent sees the files that it left in a folder of its own; "" for none."""
        own = job.agent.mode == ISOLATED and not job.agent.folder and bool(self.top.scratch)
        if not own or not files.names(job.task.folder):
            return ""
        return f"{SCRATCH}/{job.task.id} (for commands: {self.top.environment.seen(job.task.folder)})"


def _given(given: WorkspaceSnapshot | None, agent: Subagent) -> WorkspaceSnapshot | None:
    """The workspace snapshot of the parent, with only the skills that the subagent may use."""
    if given is None or agent.skills is None:
        return given
    return given.replace(skills=[one for one in given.skills if one.name in agent.skills])
