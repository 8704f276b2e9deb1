"""find_tools: where servers have too many tools to offer them all, it lists those that match, and loads those that are named."""

from __future__ import annotations

from typing import Any

from harness.base import ranking
from harness.builtin.tools import permissions
from harness.builtin.tools.tool import READS, Tool, ToolResult, ToolSession
from harness.builtin.tools.tool_results import counted, failed, left_out

SERVERS = "servers"  # what it needs of its session: tools of servers
KEY = "loaded_tools"  # in the state: names, the one that was loaded last at the end
MOST_OFFERED = 64  # tools of servers in a request
MOST_LISTED = 30
LONGEST_LINE = 160  # characters of a description
NOT_LOADED = "{name} is not loaded. Load it with find_tools, load: [{name}], then call it."
UNKNOWN = "There is no tool {names}, so nothing was loaded. Find tools with a query."
NO_MATCH = "None of {number} tools matches. Try other words, or no query."


def offered(session: ToolSession, tools: list[Tool]) -> list[Tool]:
    """The tools of a request: of more than MOST_OFFERED of servers those that are loaded, and find_tools."""
    there = {tool.name: tool for tool in tools if tool.server}
    if len(there) <= MOST_OFFERED:
        return [tool for tool in tools if tool is not TOOL]
    loaded = [there[name] for name in session.state.get(KEY, []) if name in there]
    return [*(tool for tool in tools if not tool.server), *loaded]


def served(session: ToolSession) -> dict[str, Tool]:
    """{name: tool} of the servers, as far as the rules permit."""
    return {tool.name: tool for tool in session.extra_tools if tool.server and permissions.offers(session, tool)}


def _find_tools(session: ToolSession, arguments: dict[str, Any]) -> ToolResult:
    there, wanted = served(session), dict.fromkeys(arguments.get("load", []))
    if not wanted:
        return ToolResult(text=_listed(session, there, arguments.get("query", "")))
    if unknown := [name for name in wanted if name not in there]:
        return failed(UNKNOWN.format(names=", ".join(unknown)[:LONGEST_LINE]))
    kept = [name for name in session.state.get(KEY, []) if name in there and name not in wanted]
    session.state[KEY] = [*kept, *wanted][-MOST_OFFERED:]
    return ToolResult(text=f"Loaded now, to be called like any tool: {', '.join(session.state[KEY])}.")


def _listed(session: ToolSession, there: dict[str, Tool], query: str) -> str:
    """A line for each that matches, best first; without a query the first ones."""
    lines = [(f"{one.name} {one.description}", one) for one in there.values()]
    found = ranking.best(lambda: lines, query, len(lines)) if query.strip() else list(there.values())
    rows = [f"- {one.name}: {one.description[:LONGEST_LINE]}" for one in found[:MOST_LISTED]]
    rest = left_out(len(found) - len(rows), "tools", "A query with other words finds them.")
    head = f"{counted(len(found), 'tool')} of {len(there)}:\n"
    return head + "\n".join(rows) + rest if found else NO_MATCH.format(number=len(there))


TOOL = Tool(
    name=permissions.FINDS,
    description="List the tools of MCP servers that match a query, or load some by name: you can call them from then on.",
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string"}, "load": {"type": "array", "items": {"type": "string"}}},
    },
    effects=READS,
    run=_find_tools,
    needs=SERVERS,
)
