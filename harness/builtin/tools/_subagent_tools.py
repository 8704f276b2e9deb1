"""agent_spawn, agent_send, agent_list, task_output, task_list, task_cancel: subagents, started and followed by a conversation."""

from __future__ import annotations

from typing import Any

from harness.builtin.tools.tool import READS, RUNS, SUBAGENTS, Subagents, Tool, ToolFunction, ToolResult, ToolSession

DEFAULT_SECONDS, MOST_SECONDS = 600.0, 3600.0  # that a call waits for a subagent; then it goes on in the background
OUTPUT_SECONDS = 30.0


def _agent_spawn(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    return _subagents(session).spawn(arguments["agent"], arguments["task"], **_how(arguments))


def _agent_send(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    return _subagents(session).send(arguments["id"], arguments["message"], **_how(arguments))


def _agent_list(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    return ToolResult(text=_subagents(session).agents())


def _task_output(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    return _subagents(session).output(arguments["id"], seconds=arguments.get("timeout", OUTPUT_SECONDS))


def _task_list(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    return ToolResult(text=_subagents(session).tasks())


def _task_cancel(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    return _subagents(session).cancel(arguments["id"])


def _how(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"background": arguments.get("background", False), "seconds": arguments.get("timeout", DEFAULT_SECONDS)}


def _subagents(session: ToolSession) -> Subagents:
    assert session.subagents is not None, "it is offered where there are subagents only"
    return session.subagents


TEXT = {"type": "string"}
WAITS = {"background": {"type": "boolean"}, "timeout": {"type": "number", "minimum": 0, "maximum": MOST_SECONDS}}


def _tool(
    run: ToolFunction, description: str, properties: dict[str, Any], required: list[str], effects: str = READS
) -> Tool:
    schema = {"type": "object", "properties": properties, **({"required": required} if required else {})}
    about = "agent" if "agent" in properties else "id" if "id" in properties else ""
    name = run.__name__[1:]
    return Tool(
        name=name, description=description, parameters=schema, effects=effects, run=run, needs=SUBAGENTS, about=about
    )


TOOLS = [
    _tool(
        _agent_spawn,
        "Give a task to a subagent (agent_list shows which there are), with all that it must know, and get its answer. After"
        f" `timeout` seconds (default {DEFAULT_SECONDS:g}) it goes on in the background, or at once with background=true: then"
        " task_output has its answer. None outlives you.",
        {"agent": TEXT, "task": TEXT, **WAITS},
        ["agent", "task"],
        RUNS,
    ),
    _tool(
        _agent_send,
        "Say more to a subagent that you started; it goes on with its conversation.",
        {"id": TEXT, "message": TEXT, **WAITS},
        ["id", "message"],
        RUNS,
    ),
    _tool(_agent_list, "Which subagents there are.", {}, []),
    _tool(
        _task_output,
        f"The answer of a subagent, or how it stands; waits up to `timeout` seconds (default {OUTPUT_SECONDS:g}) for its end.",
        {"id": TEXT, "timeout": WAITS["timeout"]},
        ["id"],
    ),
    _tool(_task_list, "Which subagents you started, and how they stand.", {}, []),
    _tool(_task_cancel, "End a subagent.", {"id": TEXT}, ["id"]),
]
