"""plan_enter, plan_write and plan_exit: a time of looking, and a plan, before anything is changed. Kept with the conversation,
and, where a person is talked with, as a file that they can open."""

from __future__ import annotations

import posixpath
from typing import Any

from harness.base.encoding import digest
from harness.builtin.tools import _read_digests, _write_files, permissions
from harness.builtin.tools.tool import ALWAYS, READS, TALK, YES, Question, Tool, ToolFunction, ToolResult, ToolSession
from harness.builtin.tools.tool_results import failed
from harness.filesystem import transfer
from harness.filesystem.protocol import FileFault
from harness.workspace import rules

FILE = "PLAN.md"
LONGEST = 20_000  # characters of a plan
NO_FILE = "[The plan is in no file: {why}]\n\n"
OUTSIDE = "This is not plan mode. plan_enter begins it."
KEPT = "A person was asked, and did not accept the plan. Plan mode goes on: change the plan, or ask what is missing."


def _plan_enter(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    if permissions.planning(session):
        return failed("This is plan mode already. plan_write keeps a plan, plan_exit ends it.")
    _state(session)["active"] = True
    return ToolResult(
        text="Plan mode: tools that only read, until plan_exit. Look around, and keep the plan with plan_write."
    )


def _plan_write(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    text = arguments["content"].strip()
    if not permissions.planning(session):
        return failed(OUTSIDE)
    if not text or len(text) > LONGEST:
        return failed(
            f"A plan has from 1 to {LONGEST:,} characters; this one has {len(text):,}. The plan was not changed."
        )
    _state(session)["text"] = text
    return ToolResult(text="The plan is kept. plan_exit ends plan mode.")


def _plan_exit(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    """Where a person is there, the person decides."""
    if not permissions.planning(session):
        return failed(OUTSIDE)
    plan = _state(session).get("text", "")
    if not plan:
        return failed("There is no plan yet. Keep one with plan_write first.")
    if (file := _write(session, plan)).failed:
        return file
    asked = Question(tool="plan_exit", about=file.text + plan, arguments=arguments, rule="the end of plan mode")
    if session.ask is not None and session.ask(asked) not in (YES, ALWAYS):
        return failed(KEPT)
    _state(session)["active"] = False
    return ToolResult(text=f"Plan mode is over: carry the plan out.\n\n{file.text}{plan}")


def _write(session: ToolSession, plan: str) -> ToolResult:
    """Write the file of the plan; the result has a line that names it, or says why there is none. It fails where a file has
    content that the model has not seen."""
    _state(session).pop("path", None)
    if not session.plans:
        return ToolResult(text="")
    path = posixpath.join(session.plans, FILE)
    about = permissions.subjects(session, _write_files.WRITE_TOOL, {"path": path})
    verdict, rule = permissions.rules_of(session).verdict(_write_files.WRITE_TOOL.name, *about)
    if verdict == rules.DENY or (verdict == rules.ASK and session.ask is None):
        return ToolResult(text=NO_FILE.format(why=f"the rule {rule} does not permit it"))
    before = transfer.read_whole(session.files, path)
    known = "" if isinstance(before, FileFault) else before.digest
    if known and (unseen := _read_digests.refusal(session, path, known)):
        return failed(unseen)
    data = f"{plan}\n".encode()
    made = session.files.write(path, data, create=not known, expect=known)
    if isinstance(made, FileFault):
        return ToolResult(text=NO_FILE.format(why=made.text))
    _read_digests.remember(session, path, made.digest or digest(data))
    _state(session)["path"] = path
    return ToolResult(text=f"[The plan is in {path}.]\n\n")


def _state(session: ToolSession) -> dict[str, Any]:
    """The kept state: `active`, the plan's `text`, and the `path` of its file."""
    found: dict[str, Any] = session.state.setdefault(permissions.PLAN, {})
    return found


def _tool(run: ToolFunction, description: str, properties: dict[str, Any]) -> Tool:
    schema = {"type": "object", "properties": properties, **({"required": [*properties]} if properties else {})}
    return Tool(name=run.__name__[1:], description=description, parameters=schema, effects=READS, needs=TALK, run=run)


TOOLS = [
    _tool(_plan_enter, "Begin plan mode: only tools that read, until plan_exit. For work that needs a plan first.", {}),
    _tool(_plan_write, "In plan mode: keep the plan; each call gives the whole.", {"content": {"type": "string"}}),
    _tool(_plan_exit, "End plan mode, with the plan that was kept.", {}),
]
