"""The verbs of a mission as tools of `ask`: the same functions as those of the commands; each call asks the person first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.builtin.tools.tool import WRITES, Tool, ToolResult
from harness.commands import agent_requests, steering
from harness.mission import issues, mission
from harness.run.requests import orders
from harness.state import raw
from harness.state.layout import Layout

TEXT = {"type": "string"}
ANSWER = {"name": TEXT, "note": {"type": "string", "description": "for the next plan"}}


def tools(layout: Layout) -> list[Tool]:
    """The tools; none where the folder has no mission."""
    return [_tool(layout, *one) for one in VERBS] if mission.exists(layout) else []


def _note(layout: Layout, text: str, tag: str = "-") -> str:
    raw.append(layout, "person", "", [(tag, raw.checked(tag, text, in_run=False))])
    return "Noted."


def _issue(layout: Layout, **given: str) -> str:
    return agent_requests.issue(layout, {"severity": "minor", **given})


def _steer(layout: Layout, text: str, once: bool = False) -> str:
    return steering.steer(layout, text, once=once)


def _grant(layout: Layout, name: str, note: str = "") -> str:
    return orders.place(layout, "checkpoint grant", [name, note, steering.who()])


def _deny(layout: Layout, name: str, note: str) -> str:
    return orders.place(layout, "checkpoint deny", [name, note, steering.who()])


def _retry(layout: Layout, feature: str) -> str:
    return orders.place(layout, "feature retry", [feature])


def _answer(layout: Layout, text: str) -> str:
    return orders.place(layout, "escalation answer", [text])


VERBS: list[tuple[str, str, dict[str, Any], str, Callable[..., str]]] = [  # name, description, arguments, required, what it does
    ("note", "Note one line for the runs of the mission.", {"text": TEXT, "tag": {**TEXT, "enum": [*raw.TAGS]}}, "text", _note),
    ("issue", "Report a fault to the mission.", {**dict.fromkeys(issues.IssueReport.fields, TEXT),
     "severity": {**TEXT, "enum": [*issues.SEVERITIES]}}, "title", _issue),
    ("steer", "Tell the next runs of the mission something; with once only one prompt.",
     {"text": TEXT, "once": {"type": "boolean"}}, "text", _steer),
    ("checkpoint_grant", "Let the mission continue after a checkpoint.", ANSWER, "name", _grant),
    ("checkpoint_deny", "Refuse a checkpoint: the mission plans again.", ANSWER, "name note", _deny),
    ("feature_retry", "Try a feature of the mission again, with all its attempts.", {"feature": TEXT}, "feature", _retry),
    ("escalation_answer", "Answer the open escalation of the mission.", {"text": TEXT}, "text", _answer),
]  # fmt: skip


def _tool(
    layout: Layout, name: str, about: str, arguments: dict[str, Any], required: str, does: Callable[..., str]
) -> Tool:
    def run(_: object, given: dict[str, Any]) -> ToolResult:
        mission.check_format(layout)
        return ToolResult(text=does(layout, **given))

    schema = {"type": "object", "properties": arguments, "required": required.split()}
    return Tool(name=name, description=f"{about} The person is asked.", parameters=schema, effects=WRITES, run=run)
