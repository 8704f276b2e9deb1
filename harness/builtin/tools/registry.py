"""The one registry: which tools there are, which a session offers, and how a call is carried out and bounded."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import Any

from harness.base.encoding import compact, digest
from harness.base.errors import HarnessError
from harness.builtin.tools import (
    _arguments,
    _execute,
    _find_tools,
    _memory_save,
    _memory_tools,
    _mission_tools,
    _nested,
    _plan_mode,
    _search_files,
    _skill_tool,
    _subagent_tools,
    _todo,
    _write_files,
    permissions,
    read_files,
)
from harness.builtin.tools.tool import (
    FILES,
    MEMORY,
    NOTES,
    RUN,
    SHELL,
    SKILLS,
    SUBAGENTS,
    TALK,
    Tool,
    ToolResult,
    ToolSession,
)
from harness.builtin.tools.tool_results import failed
from harness.filesystem.protocol import FileFault, Shell

TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        read_files.TOOL,
        _write_files.WRITE_TOOL,
        _write_files.EDIT_TOOL,
        _search_files.LIST_TOOL,
        _search_files.GLOB_TOOL,
        _search_files.GREP_TOOL,
        _execute.TOOL,
        _todo.TOOL,
        *_plan_mode.TOOLS,
        _skill_tool.TOOL,
        _memory_tools.SEARCH_TOOL,
        _memory_tools.GET_TOOL,
        _memory_save.TOOL,
        *_mission_tools.TOOLS,
        *_subagent_tools.TOOLS,
        _find_tools.TOOL,
    )
}
LONGEST_RESULT = 80_000  # characters; a longer one goes to a file
NO_IMAGE = "\n[left out: what no model takes as an image]"
DENY = ' (to do without it, write into tools.json: "deny": {names})'
HEAD, TAIL = 4000, 4000  # characters of it that are shown
HAS: dict[str, Callable[[ToolSession], bool]] = {
    FILES: lambda session: True,
    SHELL: lambda session: isinstance(session.files, Shell),
    MEMORY: lambda session: bool(session.memory or session.layout is not None),
    RUN: lambda session: session.layout is not None and session.run_id != "",
    SKILLS: lambda session: session.workspace is not None and bool(session.workspace.skills),
    NOTES: lambda session: session.memory is not None,
    TALK: lambda session: not session.in_run,
    SUBAGENTS: lambda session: session.subagents is not None,
    _find_tools.SERVERS: lambda session: any(tool.server for tool in session.extra_tools),
}


def offered(session: ToolSession) -> list[Tool]:
    """The tools for this session that its rules let through, always in the same order; last those from outside."""
    able = [tool for tool in (*TOOLS.values(), *session.extra_tools) if HAS[tool.needs](session)]
    first = {tool.name: tool for tool in reversed(able)}  # of two with one name
    found = [tool for tool in able if first[tool.name] is tool and permissions.offers(session, tool)]
    return _find_tools.offered(session, found) if session.extra_tools else found


def described(session: ToolSession) -> list[dict[str, Any]]:
    """The same as requests have them."""
    return [{name: getattr(one, name) for name in ("name", "description", "parameters")} for one in offered(session)]


def remedy(session: ToolSession, words: str) -> str:
    """What to do where a vendor refuses a request with words about tools of servers, by their names or by the place of one."""
    at, said = re.findall(r"(?:tools|function_declarations)[.\[](\d+)", words)[-1:], re.findall(r"[\w-]+", words)
    there = enumerate(offered(session))
    named = [tool.name for number, tool in there if tool.server and (tool.name in said or [str(number)] == at)]
    return DENY.format(names=compact(named)) if named else ""


def call(session: ToolSession, name: str, given: Any) -> ToolResult:
    """Call a tool by its name. `given`: the arguments, an object or its JSON. A fault that the model can correct is a failed
    result."""
    found = _carried_out(session, name, given)
    images = [(kind, data) for _, data in found.images if (kind := read_files.media_type(data))]
    text = found.text + NO_IMAGE * (len(images) < len(found.images))
    return found.replace(text=_bounded(session, _plain(text)), images=images)


def _carried_out(session: ToolSession, name: str, given: Any) -> ToolResult:
    there = {tool.name: tool for tool in offered(session)}
    if name not in there and name in TOOLS and not permissions.offers(session, TOOLS[name]):
        return failed(permissions.DENIED.format(tool=name, rule="of tools.json"))
    if name not in there and name in _find_tools.served(session):
        return failed(_find_tools.NOT_LOADED.format(name=name))
    if name not in there:
        near = _arguments.nearest(name, there)
        meant = f" Did you mean {near}?" if near else ""
        return failed(f"There is no tool '{name[:60]}'.{meant} There are: {', '.join(there) or 'none'}.")
    try:
        tool = there[name]
        taken = _taken(tool, given)
        refused = permissions.refusal(session, tool, taken)
        if refused:
            return failed(refused)
        return _nested.added(session, name, taken, session.around_hook(name, taken, lambda: tool.run(session, taken)))
    except _arguments.Unfit as unfit:
        return failed(f"{unfit} Call {name} again.")
    except HarnessError as fault:
        return failed(str(fault))
    except OSError as fault:
        return failed(f"The machine refused it: {fault.strerror or fault}. Try again later, or another way.")


def takes(session: ToolSession, name: str, given: Any) -> bool:
    """Whether a tool of this name is offered, and takes these arguments."""
    try:
        return any(tool.name == name and _taken(tool, given) is not None for tool in offered(session))
    except _arguments.Unfit:
        return False


def _taken(tool: Tool, given: Any) -> dict[str, Any]:
    """The arguments as the tool gets them; raises Unfit."""
    return _arguments.whole(given) if tool.foreign else _arguments.fitted(tool.parameters, given)


def _plain(text: str) -> str:
    """Text that every wire takes: valid Unicode without NUL."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


def _bounded(session: ToolSession, text: str) -> str:
    """The text, or its head and tail with the file that has all of it."""
    if len(text) <= LONGEST_RESULT:
        return text
    where = _kept(session, text.encode())
    on = f"All of it is in {where}; read on with read_file." if where else "The rest could not be kept."
    return (
        f"{text[:HEAD]}\n\n[… {len(text) - HEAD - TAIL:,} of {len(text):,} characters left out. {on}]\n\n{text[-TAIL:]}"
    )


def _kept(session: ToolSession, data: bytes) -> str:
    """The path of the file with a result, named by its digest; "" where it cannot be kept."""
    if not session.results:
        return ""
    path = posixpath.join(session.results, f"{digest(data)[:16]}.txt")
    made = session.files.write(path, data, create=True)
    return "" if isinstance(made, FileFault) and made.kind != "exists" else path
