"""One run of the built-in agent: opens its conversation, and lets the loop work."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.base.errors import HarnessError, RequestRefused
from harness.base.record import Json
from harness.builtin import _one_thread
from harness.builtin._order import ChildOrder
from harness.builtin.conversation import Conversation, ConversationSpec
from harness.builtin.loop import message_text, turns
from harness.builtin.loop.exchange import ModelFault
from harness.builtin.loop.loop import Budget, End, Limits
from harness.builtin.loop.message_history import MessageHistory
from harness.builtin.loop.turns import Log
from harness.builtin.subagents.runner import SubagentRunner
from harness.builtin.tool_environment import ToolEnvironment
from harness.commands import agent_requests
from harness.mission import replies, runs
from harness.state import names, objects
from harness.state.layout import Layout
from harness.state.state import State
from harness.stores.disk import DiskStore
from harness.stores.store import StoreKey
from harness.workspace import places, snapshot
from harness.workspace.snapshot import WorkspaceSnapshot

if TYPE_CHECKING:  # of the extra: only their types are meant
    from harness.builtin.loop.model_client import ModelClient

CORRECTIONS = 3  # refusals of a reply that a model hears of
Report = Callable[[dict[str, Json]], None]

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "system.md")
WHY = {
    "limit": "your model's vendor refused further requests",
    "killed": "the run was ended",
    "wall": "the run ran out of time",
    "idle": "the run was ended because nothing happened",
    "startup_hang": "the run was ended at its start",
}


def run(order: ChildOrder, prompt: bytes, report: Report) -> int:
    """Work on the prompt; the last line reported is the end. Returns the exit code."""
    end = asyncio.run(_worked(order, prompt, report))
    report({"type": "end", **end.asdict()})
    return 0


async def _worked(order: ChildOrder, prompt: bytes, report: Report) -> End:
    from harness.builtin.loop.model_client import ModelClient  # a second: only where a model is asked

    try:
        model = ModelClient(order.parameters, key_of(order), order.request_seconds, order.key_env)
    except ModelFault as fault:
        return End(outcome=fault.outcome, reason=fault.reason)
    try:
        return await _looped(order, model, prompt, report) if order.run else End(outcome="ok")
    finally:
        await model.close()


async def _looped(order: ChildOrder, model: ModelClient, prompt: bytes, report: Report) -> End:
    """The loop over a new conversation, or over that of the run before this one, where it was cut off."""
    layout = Layout(order.project, order.state)
    spec = _spec(order, layout, model, prompt[: order.stable_bytes].decode(), report)
    if not (spec.workspace and spec.workspace.subagents):
        _one_thread.keep()
    talk = await Conversation.open(spec)
    try:
        for fault in talk.faults:
            report({"type": "lacks", "text": fault})
        text = "\n\n".join(filter(None, [prompt[order.stable_bytes :].decode(), talk.note()]))
        _begin(talk, before(layout, order), layout, text)
        return await talk.loop(check=LastAnswer(talk, layout, order.run), checks=0).run()
    finally:
        await talk.close(last=True)


class LastAnswer:
    """The check of the last answers of a run: its inbox takes each, and what it says against one is for the model: CORRECTIONS
    refusals, and once that nothing was done. At a cap an answer is the last one."""

    def __init__(self, talk: Conversation, layout: Layout, run_id: str) -> None:
        self.talk, self.layout, self.run_id = talk, layout, run_id
        self.begin, self.heard, self.refused, self.told = len(talk.history.messages), 0, 0, False

    def __call__(self, text: str) -> str:
        history, budget = self.talk.history, self.talk.budget
        if self.refused == CORRECTIONS or budget.exhausted() or history.turn >= budget.limits.max_steps:
            return ""
        said = [message_text.said(one) for one in history.messages[self.begin :] if one["role"] == "assistant"]
        newer = said[self.heard :]
        newer = newer if any("json" in one or replies.alone(one) for one in newer) else said
        try:
            found = agent_requests.answer(self.layout, self.run_id, newer, told=self.told)
            self.told = self.told or found != ""
        except HarnessError as fault:
            found = str(fault) if fault.code == RequestRefused.code else ""
            self.refused += found != ""
        self.heard = len(said) if found else self.heard
        return found


def _spec(order: ChildOrder, layout: Layout, model: ModelClient, stable: str, report: Report) -> ConversationSpec:
    """The specification with which the conversation of the run is opened; the `stable` part of the prompt is in the system
    text."""
    run, page, given = layout.run(order.run), _page(), snapshot.kept(layout, order.run)
    limits = Limits(max_steps=order.max_steps, cost_usd=order.cost_left, tokens=order.tokens_left, prices=order.prices)
    environment = ToolEnvironment(folder=order.directory, layout=layout, run=order.run, results=run.results,
                                  variables=_variables(order), confinement=order.glass())  # fmt: skip
    return ConversationSpec(
        name=f"run {order.run}",
        environment=environment,
        history=MessageHistory(turns.TurnWriter(run.turns)),
        model=model,
        parameters=order.parameters,
        system=page + stable,
        budget=Budget(limits),
        report=report,
        workspace=given,
        tasks=StoreKey(DiskStore(run.tasks), ()),
        head=page,
        instructions=_instructions(layout, order.run, given),
        supervisor=SubagentRunner,
    )


def _instructions(layout: Layout, run_id: str, given: WorkspaceSnapshot | None) -> str:
    """The project's instructions, as the prompt of the run has them."""
    imported = snapshot.imported(layout, given.commit) if given and given.subagents else ()
    rows = State(layout).json(names.of_run(run_id, names.MANIFEST)) or []
    found = [row["object"] for row in rows if row.get("source") in (places.INSTRUCTIONS, *imported)]
    return "\n".join(objects.get(layout, name).decode("utf-8", "replace") for name in found)


def _begin(talk: Conversation, cut: tuple[str, str, Log] | None, layout: Layout, prompt: str) -> None:
    if cut is None:
        talk.begin(prompt)
        return
    run_id, why, log = cut
    unknown = talk.go_on(log, prompt, run=run_id, why=why)
    talk.take_over(layout.run(run_id).results)
    talk.report({"type": "continues", "run": run_id, "messages": len(log.context), "unknown": unknown})


def before(layout: Layout, order: ChildOrder) -> tuple[str, str, Log] | None:
    """The conversation to continue: (run, why it was cut off, its turns) of the newest run with this role and feature, if that
    was cut off and had a conversation of the built-in agent with at least one answer."""
    last = runs.last(layout, role=order.role, feature=order.feature)
    if last is None or last.outcome not in runs.CUT:
        return None
    log = turns.read(layout.run(last.run).turns)
    return (last.run, WHY[last.outcome], log) if log and log.answered else None


def key_of(order: ChildOrder) -> str:
    """The key, from the first variable that has one."""
    return next((value for name in order.key_env if (value := os.environ.get(name, "").strip())), "")


def _variables(order: ChildOrder) -> dict[str, str]:
    """The variables of a tool: this process's, without keys."""
    gone = {*order.key_env, *order.hidden}
    return {name: value for name, value in os.environ.items() if name not in gone}


def _page() -> str:
    with open(PAGE, encoding="utf-8") as file:
        return file.read() + "\n"
