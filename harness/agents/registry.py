"""Makes agents by name, from literal dicts. Only this package knows the names of agents."""

from __future__ import annotations

import os

from harness.agents.base import PLAYED_BACK, Agent, ExecutionContext, Settings, installed
from harness.base.errors import BrokenFile, Unavailable
from harness.store import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harness.model.config import Config
    from harness.model.features import Feature

__all__ = [
    "EMBEDDED",
    "KNOWN_CLIS",
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
    "settings_of",
    "settings_variables",
]

PLAYBOOK, RECORDED = "playbook", "recorded"
NONE = "none"  # no agent: for roles that code alone can carry out
EMBEDDED = (PLAYBOOK, "scripted", RECORDED)
KNOWN_CLIS = ("claude", "codex", "gemini", "opencode")  # clis.py describes them; imported when one runs


class TrustMissing(Unavailable):
    """No trust is configured for an agent CLI, so none is started."""


def settings_of(
    where: layout.Layout, settings: Config, name: str, role: str, feature: Feature | None = None, *, first: bool = True
) -> Settings:
    """What the agent `name` is made from; the role's own model is meant for the `first` agent of its list."""
    table, model = settings.agents.get(name, {}), settings.roles.get(role, {}).get("model", "")
    return Settings(
        project=where.project,
        config_path=where.relative(where.config),
        role=role,
        feature=feature.id if feature else "",
        attempt=feature.attempts + 1 if feature else 1,
        table=table,
        trust=settings.trust,
        model=str((model if first else "") or table.get("model", "")),
        mcp=settings.mcp,
    )


def make(name: str, settings: Settings) -> Agent:
    """The agent, ready to think. Raises Unavailable without its program or playbook, TrustMissing, or BrokenFile."""
    if name == RECORDED or PLAYED_BACK in os.environ:
        from harness.agents.recorded import Recorded

        return Recorded(name, settings, optional=name in EMBEDDED)
    if "command" in settings.table:
        from harness.agents.command import Command

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
    from harness.agents.clis import ABOUT, CLIS
    from harness.agents.driven import ProgramAgent

    return ProgramAgent(name, CLIS[name], settings, about=ABOUT[name])


def _embedded(name: str) -> Callable[[Settings], Agent]:
    """The agent of ours with this name; imported when it runs."""
    if name == "playbook":
        from harness.agents.playbook import Playbook

        return Playbook
    from harness.agents.scripted import Scripted

    return Scripted


def available(
    names: list[str], settings: Callable[[str], Settings]
) -> tuple[list[tuple[str, Agent]], dict[str, Unavailable]]:
    """The available agents of `names`, ready and in order, and the fault of each missing one. Raises TrustMissing."""
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
    """Whether the agent costs money: "" (embedded, free), `reported` (its vendor reports USD) or `uncounted` (nobody does)."""
    if name in EMBEDDED and "command" not in table:
        return ""
    if (shape := _shape(name, table)) not in KNOWN_CLIS:
        return "uncounted"
    from harness.agents.clis import CLIS

    return "reported" if CLIS[shape].costs else "uncounted"


def settings_variables() -> list[str]:
    """Variables by which people set where the known CLIs keep their logins, and which provider they use: none is a key."""
    from harness.agents.clis import ABOUT, PLACES, SWITCHES

    named = [path.partition("/")[0] for about in ABOUT.values() for path in about.logins]
    switches = [
        *SWITCHES,
        *(name for about in ABOUT.values() for name in (*about.needs, *about.keys) if "_USE_" in name),
    ]
    return [*(name[1:] for name in named if name[0] == "$"), *dict.fromkeys(switches), *PLACES]


def needs(name: str, table: dict[str, Any]) -> tuple[str, ...]:
    """`needs` of the agent with this table, also where it cannot be made."""
    if (shape := _shape(name, table)) not in KNOWN_CLIS:
        return ()
    from harness.agents.clis import ABOUT

    return ABOUT[shape].needs_in({**os.environ, **table.get("env", {})})


def _shape(name: str, table: dict[str, Any]) -> str:
    """Whose events it prints: `format` of a user's own program, else the agent's name."""
    return str(table.get("format", "text")) if "command" in table else name


def caveats(name: str, trust: str) -> list[str]:
    """Caveats of a known CLI on this machine under a trust."""
    from harness.agents.clis import CLIS

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
    found = [cli for cli in KNOWN_CLIS if installed(cli)]
    here = f"Found on this machine: {', '.join(found)}." if found else "None of the known agent CLIs is on the PATH."
    example = found[0] if found else KNOWN_CLIS[0]
    raise Unavailable(
        f"No agent is configured and there is no playbooks/ folder. {here} Let {layout.command('init')} ask you, or write into "
        f'{config_path}: agent = "{example}" and trust = "workspace". For any other program that reads a prompt on '
        'stdin: agent = "mine" and [agents.mine] command = ["program", "argument"]'
    )
