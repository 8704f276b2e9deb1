"""Makes agents by name, from literal dicts. Only this package knows the names of agents."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from harness.agents import builtin
from harness.agents._command import Command
from harness.agents._person import PersonAgent
from harness.agents._playbook import Playbook
from harness.agents._recording import RecordedAgent
from harness.agents._script import ScriptedAgent
from harness.agents.base import LOOP, LOOP_KEYS, PLAYED_BACK, Agent, ExecutionContext, Settings
from harness.agents.base import installed as is_program
from harness.agents.builtin import Builtin
from harness.agents.clis import ABOUT, CLIS, EDITS, PLACES, SWITCHES
from harness.agents.program import ProgramAgent
from harness.base.errors import BrokenFile, Unavailable
from harness.mission import config
from harness.mission.config import Config
from harness.mission.features import Feature
from harness.state import layout, names

__all__ = [
    "EMBEDDED",
    "KNOWN_CLIS",
    "LOOP",
    "READ_BY_CLIS",
    "Agent",
    "ExecutionContext",
    "Settings",
    "available",
    "choose",
    "costs",
    "embedded",
    "installed",
    "make",
    "needs",
    "own_reading",
    "portable",
    "settings_of",
    "settings_variables",
]

PLAYBOOK, RECORDED = "playbook", "recorded"
NONE = "none"  # no agent: for roles that can run by code alone
PERSON = "person"  # a person's own program on their terminal; no configuration names it
EMBEDDED = (PLAYBOOK, "scripted", RECORDED)
OBEDIENT = ("claude", LOOP)
READ_BY_CLIS = (  # paths that some CLI reads by itself as instructions or skills, besides AGENTS.md; see clis.py
    *("CLAUDE.md", ".claude/CLAUDE.md", "GEMINI.md"),
    *(".claude/skills/", ".agents/skills/", ".gemini/skills/", ".opencode/skills/", ".opencode/skill/"),
)
KNOWN_CLIS = ("claude", "codex", "gemini", "opencode", LOOP)  # clis.py describes them


class TrustMissing(Unavailable):
    """No trust is configured for an agent CLI, so none is started."""


def settings_of(
    where: layout.Layout,
    settings: Config,
    name: str,
    role: str,
    feature: Feature | None = None,
    *,
    first: bool = True,
    held: Mapping[str, bytes | None] = MappingProxyType({}),
) -> Settings:
    """The Settings of the agent `name`; the role's own model applies to the `first` agent of its list, of several models the
    one for this attempt. `held`: see Settings."""
    table, attempts = settings.agents.get(name, {}), feature.attempts if feature else 0
    models = config.agent_names(settings.roles.get(role, {}).get("model")) if first else []
    return Settings(
        project=where.folders.project,
        config_path=where.shown(names.CONFIG),
        role=role,
        feature=feature.id if feature else "",
        attempt=feature.attempts + 1 if feature else 1,
        table=table,
        trust=settings.trust,
        model=str(models[min(attempts, len(models) - 1)] if models else table.get("model", "")),
        mcp=settings.mcp,
        prices=settings.prices,
        held=held,
    )


def make(name: str, settings: Settings) -> Agent:
    """The agent, ready to think. Raises Unavailable without its program or playbook, TrustMissing, or BrokenFile."""
    if name == RECORDED or PLAYED_BACK in os.environ:
        return RecordedAgent(name, settings, optional=name in EMBEDDED)
    if name == PERSON and "program" in settings.table:
        return PersonAgent(settings)
    if name != LOOP or "command" in settings.table:
        _refuse_own_keys(name, settings)
    _require_obedience(name, settings)
    if "command" in settings.table:
        return Command(name, settings)
    if name in EMBEDDED:
        return _embedded(name)(settings)
    if name not in KNOWN_CLIS:
        known = ", ".join((*EMBEDDED, *KNOWN_CLIS))
        remedy = (
            f'Known here: {known}. For any program give it a table: [agents.{name}] command = ["program", "argument"]'
        )
        raise BrokenFile(settings.config_path, f"there is no agent '{name}'", remedy=remedy)
    if not settings.trust:
        raise TrustMissing(
            f"{name} needs a trust level before it may start. Write into {settings.config_path}: "
            'trust = "workspace" (write in this folder, run commands, use the network) or trust = "full" '
            f"(anything this user may do). Or let it ask you: {layout.command('init')}"
        )
    if name == LOOP:
        return Builtin(settings)

    return ProgramAgent(name, CLIS[name], settings, about=ABOUT[name])


def _refuse_own_keys(name: str, settings: Settings) -> None:
    """Raise BrokenFile for keys of the built-in agent in another table, where they have no effect."""
    if not settings.table.keys().isdisjoint(LOOP_KEYS):
        raise builtin.misplaced(name, settings)


def installed(name: str) -> bool:
    """Whether a known agent, or a program, can be started here."""
    if name == LOOP:
        return builtin.installed()
    return is_program(name)


def _require_obedience(name: str, settings: Settings) -> None:
    """Raise Unavailable for an agent that cannot enforce tools.json. Embedded agents run only a person's own commands."""
    shape = _shape(name, settings.table)
    if not (settings.deny or settings.allow is not None) or (name in EMBEDDED and "command" not in settings.table):
        return
    known = shape in KNOWN_CLIS and "command" not in settings.table
    if known and ABOUT[shape].can_obey(settings.deny, settings.allow, mcp=settings.mcp):
        return
    said = (
        f"denies {', '.join(settings.deny)}"
        if settings.deny
        else f"allows {', '.join(settings.allow or ()) or 'nothing'}"
    )
    raise Unavailable(
        f"tools.json {said}, and {name} cannot be kept to that, so it is not started. Name an agent that can ("
        f"{' or '.join(OBEDIENT)}), or "
        f"write into {settings.config_path}: [workspace] tools = false"
    )


def own_reading(name: str, table: dict[str, Any]) -> tuple[list[str], list[str], bool, list[str]]:
    """(files that an agent reads by itself in its working folder, its folders of skills, whether reading those files
    can be disabled, files that it reads if it has none of the first)."""
    if (shape := _shape(name, table)) not in KNOWN_CLIS:
        return [], [], True, []

    known = ABOUT[shape]
    silent = bool(known.silent or known.silenced) and "command" not in table
    return [*known.reads], [*known.skills], silent, [*known.instead]


def portable(name: str, settings: Settings) -> Settings:
    """The settings for another machine: with the text that an embedded agent follows. Raises Unavailable if there is none."""
    if name not in EMBEDDED or name == RECORDED:
        return settings
    made = _embedded(name)(settings)
    return settings.replace(held={**settings.held, os.path.relpath(made.path, settings.project): made.text.encode()})


def _embedded(name: str) -> Callable[[Settings], Playbook | ScriptedAgent]:
    """The embedded agent with this name."""
    if name == "playbook":
        return Playbook

    return ScriptedAgent


def available(
    names: list[str], settings: Callable[[str], Settings], make: Callable[[str, Settings], Agent] = make
) -> tuple[list[tuple[str, Agent]], dict[str, Unavailable]]:
    """The available agents of `names`, ready and in order, and the fault of each missing one, as `make` finds
    them. Raises TrustMissing."""
    found: list[tuple[str, Agent]] = []
    missing: dict[str, Unavailable] = {}
    for name in dict.fromkeys(names):
        try:
            found.append((name, make(name, settings(name))))
        except TrustMissing:
            raise
        except Unavailable as fault:
            missing[name] = fault
    return found, missing


def costs(name: str, table: dict[str, Any]) -> str:
    """Whether the agent costs money: "" (embedded, free), `reported` (its vendor reports USD) or `uncounted` (not
    reported)."""
    if name in (*EMBEDDED, PERSON) and "command" not in table:
        return ""
    if (shape := _shape(name, table)) not in KNOWN_CLIS or table.get("base_url"):
        return "uncounted"

    return "reported" if CLIS[shape].costs else "uncounted"


def settings_variables() -> list[str]:
    """Variables that select the login files and providers of the known CLIs; none is a key."""
    named = [path.partition("/")[0] for about in ABOUT.values() for path in about.logins]
    switches = [
        *SWITCHES,
        *(name for about in ABOUT.values() for name in (*about.needs, *about.keys) if "_USE_" in name),
    ]
    return [*(name[1:] for name in named if name[0] == "$"), *dict.fromkeys(switches), *PLACES]


def needs(name: str, table: dict[str, Any]) -> tuple[str, ...]:
    """`needs` of the agent with this table, even if it is unavailable."""
    own = table.get("env", {})
    if (shape := _shape(name, table)) not in KNOWN_CLIS:
        return (*own,)
    about = ABOUT[shape]
    if shape == LOOP:
        about = about.replace(keys=builtin.keys_of(str(table.get("model", "")), table))

    return (*about.needs_in({**os.environ, **own}), *own)


def _shape(name: str, table: dict[str, Any]) -> str:
    """The vendor of its event format: `format` of a user's own program, else the agent's name."""
    return str(table.get("format", "text")) if "command" in table else name


def has_shell(table: dict[str, Any]) -> bool:
    """Whether the agent with this table can run commands, such as `harness note`."""
    return table.get("format") != EDITS


def caveats(name: str, trust: str) -> list[str]:
    """Caveats of a known CLI on this machine under a trust."""
    return CLIS[name].caveats(trust)


def embedded(names: list[str]) -> bool:
    """Whether all these agents are embedded; then a missing playbook means that the role has no work here."""
    return all(name in EMBEDDED for name in names)


def choose(configured: list[str], project: str, config_path: str) -> list[str]:
    """The names to try in turn: the configured ones, else `playbook` if the project has a playbooks/ folder."""
    if configured:
        return configured
    if os.path.isdir(os.path.join(project, "playbooks")):
        return ["playbook"]
    found = [cli for cli in KNOWN_CLIS if is_program(cli)]
    here = f"Found on this machine: {', '.join(found)}." if found else "None of the known agent CLIs is on the PATH."
    example = found[0] if found else KNOWN_CLIS[0]
    raise Unavailable(
        f"No agent is configured and there is no playbooks/ folder. {here} Let {layout.command('init')} ask you, or write into "
        f'{config_path}: agent = "{example}" and trust = "workspace". For any other program that reads a prompt on '
        'stdin: agent = "mine" and [agents.mine] command = ["program", "argument"]'
    )
