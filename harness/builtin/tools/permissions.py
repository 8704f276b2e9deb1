"""Whether a call may be carried out: the rules of its conversation, the answer of a person, and plan mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.base import encoding
from harness.builtin.tools import _command_parts
from harness.builtin.tools.tool import ALWAYS, READS, SUBAGENTS, YES, Question, Tool, ToolSession
from harness.workspace import rules
from harness.workspace.rules import DENY, PATH, TEXT, ToolRules

KEY = "permissions"  # in the state: lists `deny`, `ask` and `allow` of a session, in the form of tools.json
PLAN = "plan"
FINDS = "find_tools"  # lists what the rules permit, so it needs no place in an allow-list
LIKE = "write_file"  # a server's tool that may change something is asked about where this is
DENIED = (
    "{tool} is not permitted here, by the rule {rule}. Do it another way, or say in your answer what could not be done."
)
NOBODY = (
    "{tool} needs the permission of a person for this (the rule {rule}), and nobody is here to give it. Do it another way, or "
    "say in your answer what is left for a person."
)
REFUSED = "A person was asked, by the rule {rule}, and did not permit this call of {tool}. Do it another way."
PLANNING = (
    "{tool} may change something, and this is plan mode: only reading is possible. Write the plan with plan_write, and leave by "
    "plan_exit."
)
ABOVE = "{tool} may change something, and whoever started you is in plan mode: only reading is possible."


def rules_of(session: ToolSession) -> ToolRules:
    """The rules of a conversation: those that it was given, and those of its state."""
    more, given = session.state.get(KEY, {}), session.rules
    if not more:
        return given
    deny, ask = [*given.deny, *more.get("deny", [])], [*given.ask, *more.get("ask", [])]
    return given.replace(deny=deny, ask=ask, granted=[*given.granted, *more.get("allow", [])])


def offers(session: ToolSession, tool: Tool) -> bool:
    """Whether any call of the tool could be permitted."""
    return _rules_for(session, tool).offers(tool.name)


def _rules_for(session: ToolSession, tool: Tool) -> ToolRules:
    return rules_of(session).replace(allow=[]) if tool.name == FINDS else rules_of(session)


def planning(session: ToolSession) -> bool:
    """Whether this conversation is in plan mode."""
    return bool(session.state.get(PLAN, {}).get("active")) and not session.in_run


def refusal(session: ToolSession, tool: Tool, arguments: dict[str, Any]) -> str:
    """Why a call is not carried out, in words for the model; "" for one that is. A person may be asked."""
    if tool.effects != READS and tool.needs != SUBAGENTS and (planning(session) or session.reads_only()):
        return (PLANNING if planning(session) else ABOVE).format(tool=tool.name)
    known = _rules_for(session, tool)
    if not known.restricts:
        return ""
    about, kind = subjects(session, tool, arguments)
    like = LIKE if tool.foreign and tool.effects != READS else ""
    verdict, rule = known.verdict(tool.name, about, kind, like)
    if verdict == rules.ALLOW:
        return ""
    if verdict == DENY or session.ask is None:
        return (DENIED if verdict == DENY else NOBODY).format(tool=tool.name, rule=rule)
    preview = tool.preview(session, arguments)
    answer = session.ask(Question(tool=tool.name, about=about[0], arguments=arguments, rule=rule, preview=preview))
    if answer == ALWAYS:
        granted = session.state.setdefault(KEY, {}).setdefault("allow", [])
        granted += [rules.exact(tool.name, text, kind) for text in about]
    return "" if answer in (YES, ALWAYS) else REFUSED.format(tool=tool.name, rule=rule)


def subjects(session: ToolSession, tool: Tool, arguments: dict[str, Any]) -> tuple[Sequence[str], str]:
    """(the texts that patterns of rules are about, how patterns are read), the first as a person sees it."""
    if tool.about == PATH:
        return _paths(session, str(arguments.get(PATH, "."))), PATH
    if tool.about == "command":
        return _command_parts.parts(_command(session, arguments)), TEXT
    if tool.about:
        return [str(arguments.get(tool.about, ""))], TEXT
    return [encoding.compact(arguments)], TEXT


def _command(session: ToolSession, arguments: dict[str, Any]) -> str:
    """The command of a call; of one that follows a command in the background, that."""
    known = session.state.get("jobs", {}).get(arguments.get("handle", ""), {})
    return str(arguments.get("command") or known.get("command", ""))


def _paths(session: ToolSession, path: str) -> list[str]:
    """A path from the root as written, and also its real path if links lead elsewhere."""
    found = [session.files.resolve(path, follow=follow) for follow in (False, True)]
    return list(dict.fromkeys(one for one in found if isinstance(one, str))) or [path]
