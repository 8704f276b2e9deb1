"""Carries out the work of subagents: each has a conversation, a loop and hands of its own, and pays into the bill of all."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from harness.base import encoding
from harness.base.errors import UsageFault
from harness.base.record import Record
from harness.builtin.equipment import SCRATCH, Equipment
from harness.builtin.loop import turns
from harness.builtin.loop.conversation import Conversation
from harness.builtin.loop.loop import Budget, End, Loop
from harness.builtin.subagents._delegation import Delegation
from harness.builtin.subagents.pool import MOST_RUNNING, Job, SubagentPool
from harness.builtin.tool_session import Place, ToolSession
from harness.builtin.tools import permissions
from harness.filesystem.local import Mount
from harness.process.confine import Confinement
from harness.state import files, names
from harness.workspace import skills
from harness.workspace.snapshot import WorkspaceSnapshot
from harness.workspace.subagents import Subagent

if TYPE_CHECKING:  # of the extra: only their types are meant
    from harness.builtin.loop.model_client import ModelClient

Report = Callable[[dict[str, Any]], None]

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
CACHE_KEY_CHARS = 32


class Means(Record):
    """What the conversations of subagents are made with. `model`: makes the model for these parameters; `head`: the first part of
    each system text, `instructions` those of the project; `folder`: where tasks are recorded."""

    model: Callable[[dict[str, Any]], ModelClient]
    parameters: dict[str, Any]
    budget: Budget
    report: Report
    folder: str
    head: str = ""
    instructions: str = ""


class At(Record):
    """A subagent at work."""

    talk: Conversation
    wire: ModelClient
    hands: ToolSession


class SubagentRunner:
    """See tasks.crew.Worker. `equipment`: of the conversation that all of them belong to."""

    def __init__(self, means: Means, equipment: Equipment) -> None:
        self.means, self.equipment = means, equipment
        self.at: dict[str, At] = {}
        self.threads = ThreadPoolExecutor(2 * MOST_RUNNING, "subagents")  # one each; the rest for calls of ended ones
        self.hands = {"": equipment.hands}
        self.crew = equipment.crew = SubagentPool(means.folder, self, asyncio.get_running_loop())
        self._enlist(equipment.hands, "", 0)

    def _enlist(self, hands: ToolSession, task: str, depth: int) -> None:
        """Let a conversation start subagents."""
        given = hands.powers.given
        squad = Delegation(self.crew, hands.bench, given.subagents if given else [], parent=task, depth=depth)
        if squad.offered:
            hands.bench.team = squad
            hands.offer()

    async def work(self, job: Job, message: str) -> End:
        """See tasks.crew.Worker."""
        at = self.at.get(job.task.id)
        if at is None:
            own = asyncio.get_running_loop()
            at = self.at[job.task.id] = await own.run_in_executor(self.threads, self._made, job)
            at.talk.begin(self._first(job, message))
        else:
            at.talk.say(message)
        report, steps = self._reporter(job), job.agent.steps
        loop = Loop(at.talk, at.wire, at.hands, self.means.budget, report, steps=steps, threads=self.threads)
        loop.used = job.used
        try:
            return await loop.run()
        finally:
            job.used, job.task.turns = loop.used, at.talk.turn

    def _made(self, job: Job) -> At:
        """Its conversation, before the first word."""
        parent, agent, task = self.hands[job.task.parent], job.agent, job.task
        given = _given(parent.powers.given, agent)
        place = self._place(parent.place, job)
        task.folder = place.folder
        rules = permissions.rules_of(parent.bench).narrowed(agent.tools)
        powers = parent.powers.replace(given=given, rules=rules)
        hands = self.hands[task.id] = ToolSession(place, powers)
        hands.bench.reads_only = lambda: permissions.planning(parent.bench) or parent.bench.reads_only()
        self._enlist(hands, task.id, task.depth)
        system = "\n".join(filter(None, [self.means.head, *self._words(job, given)]))
        parameters = {**self.means.parameters, "model": self._model(agent)}
        parameters["cache_key"] = encoding.digest(system.encode())[:CACHE_KEY_CHARS]
        task.model = parameters["model"]
        writer = turns.TurnWriter(os.path.join(self.means.folder, task.id, names.TURNS))
        talk = Conversation(writer, system, hands.tools, parameters)
        talk.state = hands.bench.state
        return At(talk=talk, wire=self.means.model(parameters), hands=hands)

    def _first(self, job: Job, message: str) -> str:
        """The first message: the task, and where the folder of its parent is, if it works in another."""
        if job.agent.mode != ISOLATED:
            return message
        above = self.hands[job.task.parent].place
        return LOOK.format(message=message, path=_as_seen(above.confinement, above.folder))

    def _model(self, agent: Subagent) -> str:
        """Its model; a name without a vendor is of the vendor of whoever started it."""
        ours = str(self.means.parameters["model"])
        vendor = ours.partition(":")[0]
        return ours if not agent.model else agent.model if ":" in agent.model else f"{vendor}:{agent.model}"

    def _words(self, job: Job, given: WorkspaceSnapshot | None) -> list[str]:
        """The parts of its system text behind the head: what is the same for every task of it."""
        agent = job.agent
        index = skills.index(given.skills) if given else ""
        about = WORDS.format(id=agent.id, description=agent.description, where=WHERES[agent.mode])
        told = f"# Skills\n\nEach is a way of working. Load one with load_skill before the work that it describes.\n\n{index}"
        return [self.means.instructions, told if index else "", about, agent.prompt]

    def _place(self, above: Place, job: Job) -> Place:
        """Where it works: in its parent's folder; or in one of its own, with its parent's to be read. The run has the verbs."""
        results = os.path.join(self.means.folder, job.task.id, names.RESULTS)
        place = above.replace(run="", home=above.home or above.layout, results=results, memory="")
        if job.agent.mode != ISOLATED:
            return place
        folder = self._own_folder(above.folder, job)
        files.make_folder(folder)
        confinement = above.confinement if job.agent.folder else _narrowed(above.confinement, above.folder, folder)
        also = {PROJECT: Mount(path=above.folder)}
        return place.replace(folder=folder, confinement=confinement, also=also)

    def _own_folder(self, above: str, job: Job) -> str:
        if not job.agent.folder:
            scratch = self.equipment.scratch
            return os.path.realpath(
                os.path.join(scratch, job.task.id) if scratch else os.path.join(self.means.folder, job.task.id, "files")
            )
        folder = os.path.realpath(os.path.join(above, job.agent.folder))
        if not folder.startswith(os.path.realpath(above) + "/"):
            raise UsageFault(f"The folder of the subagent {job.agent.id} leads out of the project: {job.agent.folder}.")
        return folder

    def _reporter(self, job: Job) -> Report:
        """What happens in it, for whoever listens to the whole: signs of life and costs as they are, the rest as a task's."""

        def report(row: dict[str, Any]) -> None:
            if row["type"] in ("delta", "usage"):
                self.means.report({name: value for name, value in row.items() if name != "model"})
            else:
                self.means.report({**row, "type": "task", "what": row["type"], "task": job.task.id})

        return report

    def stop(self, job: Job) -> None:
        """See tasks.crew.Worker."""
        if (hands := self.hands.get(job.task.id)) is not None:
            hands.bench.stopping = True

    async def close(self, job: Job) -> None:
        """See tasks.crew.Worker."""
        if (at := self.at.pop(job.task.id, None)) is not None:
            await at.wire.close()
        if (hands := self.hands.pop(job.task.id, None)) is not None:
            hands.close()

    def log_of(self, job: Job) -> str:
        """See tasks.crew.Worker."""
        data = files.read(os.path.join(self.means.folder, job.task.id, names.TURNS))
        return "" if data is None else encoding.digest(data)

    def seen(self, job: Job) -> str:
        """How its parent sees the files that it left in a folder of its own; "" for none."""
        own = job.agent.mode == ISOLATED and not job.agent.folder and bool(self.equipment.scratch)
        if not own or not files.names(job.task.folder):
            return ""
        return f"{SCRATCH}/{job.task.id} (for commands: {_as_seen(self.equipment.hands.place.confinement, job.task.folder)})"


def _given(given: WorkspaceSnapshot | None, agent: Subagent) -> WorkspaceSnapshot | None:
    """What the parent was given, with the skills that the subagent may have."""
    if given is None or agent.skills is None:
        return given
    return given.replace(skills=[one for one in given.skills if one.name in agent.skills])


def _as_seen(known: Confinement | None, path: str) -> str:
    return path if known is None else known.seen(path)


def _narrowed(known: Confinement | None, above: str, own: str) -> Confinement | None:
    return None if known is None else known.reading(above).opened(own)
