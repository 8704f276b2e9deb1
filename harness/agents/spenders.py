"""Finds the configured agents that cost money, and whether their cost is known."""

from __future__ import annotations

from itertools import islice

from harness.agents import registry
from harness.mission import config, roles, runs, usage
from harness.state.layout import Layout

LAST_RUNS = 20  # runs searched for the model of an agent


def configured(layout: Layout) -> tuple[list[str], list[str]]:
    """(configured agents that cost money, those of them without a reported cost or a price)."""
    settings = config.load(layout)
    newest = {one.agent: (one.usage or {}).get("model") for one in [*islice(runs.finished(layout), LAST_RUNS)][::-1]}
    of_role, of_agent = (
        {name: row.get("model") for name, row in table.items()} for table in (settings.roles, settings.agents)
    )
    named = {
        (name, str(model or of_agent.get(name) or newest.get(name) or ""))
        for role in roles.known(layout)
        for name in roles.agents_of(settings, roles.load(layout, role))
        for model in config.agent_names(of_role.get(role)) or [""]
    }
    kinds = {name: registry.costs(name, settings.agents.get(name, {})) for name in sorted({name for name, _ in named})}
    costly = [name for name, kind in kinds.items() if kind]
    silent = {name for name, kind in kinds.items() if kind == "uncounted"}
    without = {name for name, model in named if not any(usage.price_of(one, settings.prices) for one in (model, name))}
    return costly, sorted(silent & without)
