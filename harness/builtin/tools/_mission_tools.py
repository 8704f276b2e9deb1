"""note, reply, issue, check: the verbs of a run. The inbox of the run carries them out, as for the commands of the same
names."""

from __future__ import annotations

from typing import Any

from harness.builtin.tools.tool import RUN, RUNS, WRITES, Tool, ToolFunction, ToolResult, ToolSession
from harness.builtin.tools.tool_results import failed
from harness.commands import agent_requests
from harness.mission import issues
from harness.mission.receipts import Receipt
from harness.state import raw
from harness.state.layout import Layout

LONGEST_OUTPUT = 4000  # characters of a check's output that are shown: its end


def _note(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    """Append a note of this run to raw.md."""
    agent_requests.note(_mission(session), session.run_id, arguments.get("tag", "-"), arguments["text"])
    return ToolResult(text="Noted.")


def _reply(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    return ToolResult(text=agent_requests.reply(_mission(session), arguments["text"], session.run_id))


def _issue(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    return ToolResult(text=agent_requests.issue(_mission(session), {"severity": "minor", **arguments}, session.run_id))


def _check(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    layout, name = _mission(session), arguments.get("name", "")
    receipts = list(agent_requests.check(layout, name, session.run_id))
    if not receipts:
        return failed(agent_requests.unchecked(layout, name))
    red = sum(not receipt.green for receipt in receipts)
    head = f"{len(receipts) - red} green, {red} red. Nothing counts yet: they run again when the work is judged."
    return ToolResult(text="\n".join([head, *map(_shown, receipts)]))


def _shown(receipt: Receipt) -> str:
    """A receipt; of a red one what its command printed, and its trace, too."""
    head = f"{'green' if receipt.green else 'red'}  {receipt.claim}  {receipt.command}"
    output = "" if receipt.green else receipt.output.rstrip("\n") or "(no output)"
    cut = f"…{output[-LONGEST_OUTPUT:]}" if len(output) > LONGEST_OUTPUT else output
    return "\n".join(filter(None, [head, cut, receipt.remarks.rstrip("\n")]))


def _mission(session: ToolSession) -> Layout:
    assert session.layout is not None, "a tool that needs a run is offered in a run only"
    return session.layout


def _tool(
    run: ToolFunction, description: str, properties: dict[str, Any], required: list[str], effects: str = WRITES
) -> Tool:
    schema = {"type": "object", "properties": properties, **({"required": required} if required else {})}
    name = run.__name__.lstrip("_")
    return Tool(name=name, description=description, parameters=schema, effects=effects, run=run, needs=RUN)


TEXT = {"type": "string"}
TOOLS = [
    _tool(
        _note,
        f"Keep one line (at most {raw.MAX_NOTE_CHARS} characters) for later runs: what was learned, with the command.",
        {"text": TEXT, "tag": {"type": "string", "enum": list(raw.TAGS)}},
        ["text"],
    ),
    _tool(
        _issue,
        "Report a fault that you see and do not mend in this run.",
        {
            "title": TEXT,
            "severity": {"type": "string", "enum": list(issues.SEVERITIES)},
            **{name: TEXT for name in issues.IssueReport.fields if name not in ("title", "severity")},
        },
        ["title"],
    ),
    _tool(
        _check,
        "Run the contract's checks as they will be judged: those of a feature or a claim, or all. Nothing counts yet.",
        {"name": {"type": "string", "description": "id of a feature or claim; default: all"}},
        [],
        RUNS,
    ),
    _tool(
        _reply,
        "Check the reply of this run and keep it; a later one replaces it. On a fault: correct it and call again.",
        {"text": {"type": "string", "description": "the JSON of the reply"}},
        ["text"],
    ),
]
