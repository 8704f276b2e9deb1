"""load_skill: a way of working that a conversation was given, or another file of it, as `harness skill` shows it."""

from __future__ import annotations

from typing import Any

from harness.builtin.tools.tool import READS, SKILLS, Tool, ToolResult, ToolSession
from harness.workspace import snapshot


def _load_skill(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    assert session.workspace is not None and session.home is not None, "it is offered where there are skills only"
    name, file = arguments["name"], arguments.get("file", "")
    if file:
        return ToolResult(text=snapshot.resource(session.home, session.workspace, name, file))
    return ToolResult(text=snapshot.body(session.home, session.workspace, name))


TOOL = Tool(
    name="load_skill",
    description="Read a skill of the list in your instructions before the work that it describes, or another file of it.",
    parameters={
        "type": "object",
        "properties": {"name": {"type": "string"}, "file": {"type": "string"}},
        "required": ["name"],
    },
    effects=READS,
    run=_load_skill,
    needs=SKILLS,
    about="name",
)
