"""Checks the configuration against this mission and machine (agents, roles, network) when a loop starts, before it costs
money; doctor checks the names too."""

from __future__ import annotations

from collections.abc import Iterator

from harness.agents import registry
from harness.base.errors import BrokenFile, suggestion
from harness.base.record import Record
from harness.mission import config, features, roles
from harness.mission.config import Config
from harness.state import documents, files, names
from harness.state.layout import Layout
from harness.state.state import State
from harness.workplace import confine


class Mention(Record):
    """A list of agents: its file, line and table, and the names in it."""

    path: str
    line: int | None
    where: str
    names: list[str]


def require(layout: Layout) -> list[str]:
    """Return a line for each unused table and for an unconfined network; raise the first fault of `unknown`, and Unavailable if
    a required confinement is missing."""
    for fault in unknown(layout):
        raise fault
    settings = config.load(layout)
    line = confine.open_network(layout, settings, confine.tier(layout, settings))
    return [*unused(layout), *filter(None, [line])]


def unknown(layout: Layout) -> list[BrokenFile]:
    """Tables of unknown roles and lists with unknown agents, each with file, line and the known names; raises BrokenFile for an
    obsolete key."""
    settings, there = config.require(layout), roles.known(layout)
    found = []
    for name in settings.roles:
        if name not in there:
            line, remedy = (
                _line(layout, f"roles.{name}"),
                f"The roles here are: {', '.join(there)}.{suggestion(name, there)}",
            )
            found.append(BrokenFile(layout.path(names.CONFIG), f"there is no role '{name}'", line=line, remedy=remedy))
    known = agents_here(settings)
    for mention in _mentions(layout, settings):
        for name in mention.names:
            if name not in known and name != registry.NONE:
                fault = f"{mention.where}there is no agent '{name}'"
                program = f'For any other program add a table: [agents.{name}] command = ["program", "argument"]'
                remedy = f"Known here: {', '.join(known)}.{suggestion(name, known)} {program}"
                found.append(BrokenFile(mention.path, fault, line=mention.line, remedy=remedy))
    return found


def agents_here(settings: Config) -> list[str]:
    """The valid names for a list of agents: embedded ones, known programs, and agents with a command."""
    own = [name for name, table in settings.agents.items() if "command" in table]
    return list(dict.fromkeys([*registry.EMBEDDED, *registry.KNOWN_CLIS, *own]))


def unused(layout: Layout) -> list[str]:
    """A line for each agent table that no list names (except of known programs), and for each checkpoint before a feature that
    is not in the plan."""
    settings = config.load(layout)
    named = {name for mention in _mentions(layout, settings) for name in mention.names}
    idle = [name for name in settings.agents if name not in {*named, *registry.EMBEDDED, *registry.KNOWN_CLIS}]
    place = layout.shown(names.CONFIG)
    gates = [one for one in settings.checkpoint if one["when"].startswith(config.FEATURE)]
    planned = {one.id for one in features.load(layout)} if gates else set()
    never = [
        f"the checkpoint '{one['name']}' has no effect: the plan has no feature {one['when'][len(config.FEATURE) :]} ({place})"
        for one in gates
        if planned and one["when"].removeprefix(config.FEATURE) not in planned
    ]
    return never + [
        f"no list of agents names '{name}', so its table has no effect ({place}, line {_line(layout, f'agents.{name}')})"
        for name in idle
    ]


def _mentions(layout: Layout, settings: Config) -> Iterator[Mention]:
    """Every list of agents: the mission's, those of role tables, and that of the front matter if no table overrides it."""
    yield Mention(path=layout.path(names.CONFIG), line=_line(layout, "", "agent"), where="", names=settings.agent)
    for name in roles.known(layout):
        if own := config.agent_names(settings.roles.get(name, {}).get("agent")):
            line = _line(layout, f"roles.{name}", "agent")
            yield Mention(path=layout.path(names.CONFIG), line=line, where=f"[roles.{name}]: ", names=own)
        else:
            role = roles.load(layout, name)
            line = roles.line_of(files.read_text(role.path) or "", "agent")
            yield Mention(path=role.path, line=line, where="", names=config.agent_names(role.agent))


def _line(layout: Layout, table: str, key: str = "") -> int | None:
    """The line of a table, or of a key in it, in config.toml."""
    return documents.line_of_key(State(layout).text(names.CONFIG) or "", table, key)
