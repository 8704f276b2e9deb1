"""One run of the built-in agent: puts prompt, tools, model and conversation together, and lets the loop work."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.base import encoding
from harness.builtin import _one_thread
from harness.builtin._order import ChildOrder
from harness.builtin.equipment import Equipment
from harness.builtin.loop import turns
from harness.builtin.loop.conversation import Conversation
from harness.builtin.loop.exchange import AUTH, Model, ModelFault
from harness.builtin.loop.loop import Budget, End, Limits, Loop
from harness.builtin.loop.turns import Log
from harness.builtin.subagents.runner import Means, SubagentRunner
from harness.builtin.tool_session import Place, Powers
from harness.mission import runs
from harness.state import names, objects
from harness.state.layout import Layout
from harness.state.state import State
from harness.workspace import places, snapshot

if TYPE_CHECKING:  # of the extra: only their types are meant
    from harness.builtin.loop.model_client import ModelClient

Report = Callable[[dict[str, Any]], None]

WORDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "system.md")
CACHE_KEY_CHARS = 32
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

    system = _words() + prompt[: order.stable_bytes].decode()
    order.parameters["cache_key"] = encoding.digest(system.encode())[:CACHE_KEY_CHARS]
    try:
        wire = ModelClient(order.parameters, key_of(order), order.request_seconds)
    except ModelFault as fault:
        return End(outcome=fault.outcome, reason=_named(fault, order))
    try:
        return await _looped(order, wire, system, prompt[order.stable_bytes :].decode(), report)
    finally:
        await wire.close()


async def _looped(order: ChildOrder, wire: ModelClient, system: str, prompt: str, report: Report) -> End:
    """The loop over a new conversation, or over that of the run before this one, where it was cut off."""
    layout = Layout(order.project, order.state)
    place = Place(
        folder=order.directory,
        layout=layout,
        run=order.run,
        environment=_environment(order),
        confinement=order.glass(),
    )
    equipment = Equipment(place, Powers(given=snapshot.kept(layout, order.run)))
    hands = equipment.hands
    try:
        limits = Limits(
            max_steps=order.max_steps, cost_usd=order.cost_left, tokens=order.tokens_left, prices=order.prices
        )
        budget = Budget(limits)
        threads = None
        if hands.powers.given and hands.powers.given.subagents:
            threads = _recruit(order, equipment, budget, report).threads
        else:
            _one_thread.keep()
        talk = Conversation(turns.TurnWriter(layout.run(order.run).turns), system, hands.tools, order.parameters)
        talk.state = hands.bench.state
        if (cut := before(layout, order)) is not None:
            hands.take_over(layout.run(cut[0]).results)
        for fault in equipment.faults:
            report({"type": "lacks", "text": fault})
        _begin(talk, cut, wire, "\n\n".join(filter(None, [prompt, equipment.told()])), report)
        return await Loop(talk, wire, hands, budget, report, threads=threads).run()
    finally:
        await equipment.close(last=True)


def _recruit(order: ChildOrder, equipment: Equipment, budget: Budget, report: Report) -> SubagentRunner:
    """Let the run start subagents, which work as it does and are paid with it."""
    from harness.builtin.loop.model_client import ModelClient  # of the extra, and a second

    layout = Layout(order.project, order.state)
    means = Means(
        model=lambda parameters: ModelClient(parameters, key_of(order), order.request_seconds),
        parameters=order.parameters,
        budget=budget,
        report=report,
        folder=layout.run(order.run).tasks,
        head=_words(),
        instructions=_instructions(layout, order.run),
    )
    return SubagentRunner(means, equipment)


def _instructions(layout: Layout, run_id: str) -> str:
    """The project's instructions, as the prompt of the run has them."""
    rows = State(layout).json(names.of_run(run_id, names.MANIFEST)) or []
    found = [row["object"] for row in rows if row.get("source") == places.INSTRUCTIONS]
    return "\n".join(objects.get(layout, name).decode("utf-8", "replace") for name in found)


def _begin(talk: Conversation, cut: tuple[str, str, Log] | None, model: Model, prompt: str, report: Report) -> None:
    if cut is None:
        talk.begin(prompt)
        return
    run_id, why, log = cut
    unknown = talk.go_on(log, model, prompt, run=run_id, why=why)
    report({"type": "continues", "run": run_id, "messages": len(log.context), "unknown": unknown})


def before(layout: Layout, order: ChildOrder) -> tuple[str, str, Log] | None:
    """The conversation to go on with: (run, why it was cut off, its turns) of the newest run with this role and feature, where
    that was cut off, and had a conversation of ours with at least one answer."""
    last = runs.last(layout, role=order.role, feature=order.feature)
    if last is None or last.outcome not in runs.CUT:
        return None
    log = turns.read(layout.run(last.run).turns)
    return (last.run, WHY[last.outcome], log) if log and log.answered else None


def key_of(order: ChildOrder) -> str:
    """The key, from the first variable that has one."""
    return next((value for name in order.key_env if (value := os.environ.get(name))), "")


def _named(fault: ModelFault, order: ChildOrder) -> str:
    return f"{fault.reason}: {' or '.join(order.key_env)}" if fault.outcome == AUTH else fault.reason


def _environment(order: ChildOrder) -> dict[str, str]:
    """The variables of a tool: this process's, without keys."""
    gone = {*order.key_env, *order.hidden}
    return {name: value for name, value in os.environ.items() if name not in gone}


def _words() -> str:
    with open(WORDS, encoding="utf-8") as file:
        return file.read() + "\n"
