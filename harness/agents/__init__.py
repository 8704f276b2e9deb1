"""Who thinks: one Protocol with one verb, and a literal dict. The only place that knows an agent's name."""

from __future__ import annotations

import os

from harness.agents.base import Agent, Desk, Settings, installed
from harness.agents.command import Command
from harness.agents.playbook import Playbook
from harness.agents.scripted import Scripted
from harness.errors import BrokenFile, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["AGENTS", "KNOWN_CLIS", "Agent", "Desk", "Settings", "available", "choose", "costs", "embedded", "make"]

AGENTS: dict[str, Callable[[Settings], Agent]] = {
    "playbook": Playbook,
    "scripted": Scripted,
    "command": Command,
}
KNOWN_CLIS = ("claude", "codex", "gemini", "opencode")


def make(name: str, settings: Settings) -> Agent:
    """The agent, ready to think; raises Unavailable where its program or playbook is missing."""
    if "command" in settings.table:
        return Command(settings)
    if name not in AGENTS or name == "command":
        known = ", ".join(agent for agent in AGENTS if agent != "command")
        remedy = (
            f'Known here: {known}. For any program give it a table: [agents.{name}] command = ["program", "argument"]'
        )
        raise BrokenFile(settings.config_path, f"there is no agent '{name}'", remedy=remedy)
    return AGENTS[name](settings)


def available(
    names: list[str], settings: Callable[[str], Settings]
) -> tuple[list[tuple[str, Agent]], Unavailable | None]:
    """The agents of `names` that are there, made ready, in order; and what the first missing one said."""
    found: list[tuple[str, Agent]] = []
    fault: Unavailable | None = None
    for name in names:
        try:
            found.append((name, make(name, settings(name))))
        except Unavailable as missing:
            fault = fault or missing
    return found, fault


def costs(name: str, table: dict[str, Any]) -> str:
    """Whether the agent costs money: "" (ours, free), `reported` (its vendor tells) or `uncounted` (nobody tells)."""
    return "" if embedded([name]) and "command" not in table else "uncounted"


def embedded(names: list[str]) -> bool:
    """Whether all these agents are ours, so that a missing playbook means: nothing is to be said here."""
    return all(name in ("playbook", "scripted") for name in names)


def choose(configured: list[str], project: str, config_path: str) -> list[str]:
    """The names to try in turn: what is configured, else `playbook` where the project has a playbooks/ folder."""
    if configured:
        return configured
    if os.path.isdir(os.path.join(project, "playbooks")):
        return ["playbook"]
    found = [cli for cli in KNOWN_CLIS if installed(cli)]
    here = f"Found on this machine: {', '.join(found)}." if found else "None of the known agent CLIs is on the PATH."
    raise Unavailable(
        f"No agent is configured and there is no playbooks/ folder. {here} "
        f'Write into {config_path}, for any program that reads a prompt on stdin: agent = "mine" and [agents.mine] '
        f'command = ["program", "argument"]'
    )
