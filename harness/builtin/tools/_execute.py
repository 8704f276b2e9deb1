"""execute: a command in the foreground, or in the background with a handle whose output is read by page."""

from __future__ import annotations

from typing import Any

from harness.builtin.tools import _jobs, tool_results
from harness.builtin.tools._jobs import Running
from harness.builtin.tools.tool import RUNS, SHELL, Tool, ToolResult, ToolSession
from harness.builtin.tools.tool_results import failed
from harness.filesystem.protocol import FileFault, Shell

DEFAULT_SECONDS, MOST_SECONDS = 120.0, 600.0
BACKGROUND_SECONDS = 3600.0
MOST_BYTES = 2_000_000  # of the output of one command; the middle of a longer one is left out
MOST_JOBS = 8
FIRST_LOOK_SECONDS = 0.3  # a command that fails at once is told at once
KEY = "jobs"


def _execute(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    handle, command = arguments.get("handle", ""), arguments.get("command", "")
    if bool(handle) == bool(command.strip()):
        return failed("Give either a command, or the handle of one in the background.")
    if handle:
        return _follow(session, handle, arguments)
    seconds = float(arguments.get("timeout", BACKGROUND_SECONDS if arguments.get("background") else DEFAULT_SECONDS))
    if arguments.get("background"):
        return _begin(session, command, arguments.get("working_directory", "."), seconds)
    if seconds > MOST_SECONDS:
        return failed(f"A timeout is at most {MOST_SECONDS:g} seconds in the foreground. Use background=true.")
    return _foreground(session, command, arguments.get("working_directory", "."), seconds)


def _foreground(session: ToolSession, command: str, folder: str, seconds: float) -> ToolResult:
    shell = _shell(session)
    found = shell.execute(command, seconds=seconds, folder=folder, most=MOST_BYTES, stop=lambda: session.stopping)
    if isinstance(found, FileFault):
        return tool_results.fault(session, found)
    output = found.output.decode("utf-8", "replace").rstrip("\n") or "(no output)"
    if found.cause == "timeout":
        said = (
            f"The command did not end within its timeout of {seconds:g} s, and was ended with all that it had started."
        )
        return failed(
            f"{said}\n{output}\n[Give a larger timeout (at most {MOST_SECONDS:g}), or background=true for what runs on.]"
        )
    return ToolResult(text=f"{_jobs.ended(found)}\n{output}", failed=found.cause != "exit")


def _begin(session: ToolSession, command: str, folder: str, seconds: float) -> ToolResult:
    running = [name for name, job in list(session.live.items()) if isinstance(job, Running) and not job.ended]
    if len(running) >= MOST_JOBS:
        return failed(
            f"{MOST_JOBS} commands run in the background: {', '.join(running)}. End one with stop=true first."
        )
    begun = _shell(session).start(command, seconds=seconds, folder=folder)
    if isinstance(begun, FileFault):
        return tool_results.fault(session, begun)
    handle = _handle(session, command)
    session.live[handle] = job = Running(begun)
    job.wait(FIRST_LOOK_SECONDS)
    how = f"Its output: execute with handle={handle}; stop=true ends it. It is ended after {seconds:g} s at the latest."
    return ToolResult(text=f"{handle}: {job.status()}. {how}")


def _handle(session: ToolSession, command: str) -> str:
    """A new handle, also where another call takes one at the same moment."""
    known, row = session.state.setdefault(KEY, {}), {"command": command, "read": 0}
    number = len(known) + 1
    while known.setdefault(f"job-{number}", row) is not row:
        number += 1
    return f"job-{number}"


def _follow(session: ToolSession, handle: str, arguments: dict[str, Any]) -> ToolResult:
    """The next page of a command's output."""
    known = session.state.get(KEY, {})
    if handle not in known:
        return failed(f"There is no handle {handle}. There are: {', '.join(known) or 'none'}.")
    job = session.live.get(handle)
    if not isinstance(job, Running):
        return failed(
            f"{handle} ended when the conversation was interrupted, and its output is gone. Start it again if it is still"
            f" needed: {known[handle]['command']}"
        )
    if arguments.get("stop"):
        job.close()
    start = arguments.get("offset", known[handle]["read"])
    job.wait(float(arguments.get("timeout", 1.0)), lambda: session.stopping)
    page = job.page(start)
    known[handle]["read"] = page.end
    more = f"\n[Go on with offset={page.end}.]" if page.more else ""
    lost = f"[The first {page.start:,} bytes are gone.]\n" if page.start > start else ""
    return ToolResult(text=f"{handle}: {job.status()}\n{lost}{page.text or '(no new output)'}{more}")


def _shell(session: ToolSession) -> Shell:
    assert isinstance(session.files, Shell), "execute is offered where commands can be run only"
    return session.files


TOOL = Tool(
    name="execute",
    about="command",
    description=(
        "Run a command with bash, at the root or in working_directory. It is ended after `timeout` seconds"
        f" (default {DEFAULT_SECONDS:g}, at most {MOST_SECONDS:g}), with all that it started. background=true returns a handle"
        f" at once (timeout {BACKGROUND_SECONDS:g}); execute with that handle gives its next output."
    ),
    parameters={
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "working_directory": {"type": "string"},
            "timeout": {
                "type": "number",
                "minimum": 0,
                "maximum": BACKGROUND_SECONDS,
                "description": "with handle: how long to wait for its end",
            },
            "background": {"type": "boolean"},
            "handle": {"type": "string"},
            "offset": {"type": "integer", "minimum": 0, "description": "with handle: byte to begin at"},
            "stop": {"type": "boolean", "description": "with handle: end it"},
        },
    },
    effects=RUNS,
    run=_execute,
    needs=SHELL,
    preview=lambda session, arguments: session.reach_text,
)
