"""load_skill: a way of working that a conversation was given, or another file of it, as `harness skill` shows it."""

from __future__ import annotations

from typing import Any

from harness.builtin.tools.tool import READS, SKILLS, Tool, ToolResult, ToolSession
from harness.workspace import snapshot


def _load_skill(bench: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    assert bench.given is not None and bench.home is not None, "it is offered where there are skills only"
    name, file = arguments["name"], arguments.get("file", "")
    if file:
        return ToolResult(text=snapshot.resource(bench.home, bench.given, name, file))
    return ToolResult(text=snapshot.body(bench.home, bench.given, name))


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
