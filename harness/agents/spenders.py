"""Which of the configured agents cost money, and whether the harness sees how much."""

from __future__ import annotations

from itertools import islice

from harness.agents import registry
from harness.mission import config, roles, runs, usage
from harness.state.layout import Layout

LAST_RUNS = 20  # in which an agent may have said its model


def configured(layout: Layout) -> tuple[list[str], list[str]]:
    """The configured agents that cost money, and those of them whose cost nobody reports and no price tells."""
    settings = config.load(layout)
    newest = {one.agent: (one.usage or {}).get("model") for one in [*islice(runs.finished(layout), LAST_RUNS)][::-1]}
    of_role, of_agent = (
        {name: row.get("model") for name, row in table.items()} for table in (settings.roles, settings.agents)
    )
    named = {
        (name, str(of_role.get(role) or of_agent.get(name) or newest.get(name) or ""))
        for role in roles.known(layout)
        for name in roles.agents_of(settings, roles.load(layout, role))
    }
    kinds = {name: registry.costs(name, settings.agents.get(name, {})) for name in sorted({name for name, _ in named})}
    costly = [name for name, kind in kinds.items() if kind]
    silent = {name for name, kind in kinds.items() if kind == "uncounted"}
    without = {name for name, model in named if not any(usage.price_of(one, settings.prices) for one in (model, name))}
    return costly, sorted(silent & without)
