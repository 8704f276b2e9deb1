"""The likely price of a mission: its features, its roles, and the medians of past runs on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from statistics import median

from harness.agents import registry
from harness.base.errors import HarnessError
from harness.commands.setup import removal
from harness.mission import config, features, mission, roles, run_lookup, runs
from harness.mission.config import Config
from harness.state.layout import Layout, state_home

PER_FEATURE, ONCE = ("commits", "judges"), ("plans", "curates")


def words(layout: Layout) -> str:
    """One sentence; "" if no agent costs money."""
    settings, known = config.load(layout), list(_past(layout))
    due = {capability: _usd(layout, settings, role, known) for capability, role in roles.due(layout).items()}
    wanted = [due[name] for name in (*PER_FEATURE, *ONCE)]
    if not any(one is None or one > 0 for one in wanted):
        return ""
    missing = [roles.due(layout)[name] for name in (*PER_FEATURE, *ONCE) if due[name] is None]
    if missing:
        return f"price: not known: no past run of {', '.join(missing)} with this agent and model is on this machine"
    each, once = (sum(due[name] or 0.0 for name in kind) for kind in (PER_FEATURE, ONCE))
    left = [one for one in features.load(layout) if one.status != "passed"] if mission.exists(layout) else []
    whole = f", so {once + each * len(left):.2f} USD for {len(left)} features" if left else ""
    return (
        f"price: about {each:.2f} USD a feature and {once:.2f} USD once{whole} (medians of past runs on this machine)"
    )


def _usd(layout: Layout, settings: Config, name: str, known: list[runs.RunResult]) -> float | None:
    """The median cost of a role's runs with its first agent and model, 0 if that is free, None without such a run."""
    agent = next(iter(roles.agents_of(settings, roles.load(layout, name))), "")
    if not agent or not registry.costs(agent, settings.agents.get(agent, {})):
        return 0.0
    model = registry.settings_of(layout, settings, agent, name).model.rpartition(":")[2]
    used = [one.usage for one in known if (one.role, one.agent) == (name, agent) and one.usage]
    costs = [row["cost_usd"] for row in used if row.get("cost_usd") is not None and model in row.get("model", "")]
    return median(costs) if costs else None


def _past(layout: Layout) -> Iterator[runs.RunResult]:
    """The finished runs of all missions with a tree on this machine, archived ones too."""
    there = os.listdir(state_home()) if os.path.isdir(state_home()) else []
    projects = [layout.folders.project, *(os.path.dirname(home) for name in there if (home := removal.home_of(name)))]
    for project in dict.fromkeys(map(os.path.realpath, projects)):
        with suppress(HarnessError):  # a mission that another version wrote, or that is damaged
            for one in run_lookup.missions(Layout(project)):
                yield from runs.finished(one)
