"""Reservations of the caps by open runs, so that concurrent runs do not spend the same remainder twice.

At its start a run reserves the recent maximum cost of its role, or the whole remainder if that is unknown; while it
works, at least what it has used; the reservation ends with the run. So the sum stays below the cap, except for what an
agent spends between two reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from harness.agents import registry
from harness.base.errors import LockBusy
from harness.decision import rules, views
from harness.mission import lease, runs
from harness.mission.config import Config
from harness.mission.lease import Terms
from harness.mission.runs import Totals
from harness.mission.usage import Usage
from harness.state.layout import Layout

LOOKED_BACK = 50  # runs


def others(layout: Layout, run_id: str) -> list[Terms]:
    """The terms of the other live runs."""
    return [one for one in lease.alive(layout) if one.run != run_id]


def with_reserved(totals: Totals, live: Sequence[Terms]) -> Totals:
    """The totals as if these runs had closed with what they reserve."""
    if not live:
        return totals
    cost, tokens = sum(one.cost_usd for one in live), sum(one.tokens for one in live)
    return totals.replace(
        runs=totals.runs + len(live),
        cost_usd=(totals.cost_usd or 0.0) + cost if cost else totals.cost_usd,
        tokens=(totals.tokens or 0) + tokens if tokens else totals.tokens,
    )


def reserve(
    layout: Layout, settings: Config, live: Sequence[Terms], role: str, agents: Sequence[str]
) -> dict[str, Any]:
    """{cost_usd, tokens} that a run of the role reserves, {} without a cap. Raises LockBusy if open runs reserve the
    whole remainder of one."""
    limits, totals = views.limits_of(settings, layout), runs.totals(layout)
    taken = with_reserved(totals, live)
    full = rules.spent(limits, taken)
    if live and full and not rules.spent(limits, totals):
        names = ", ".join(one.run for one in live)
        raise LockBusy(
            f"What is left of the cap is reserved by {names}: {full[0].words}. Wait for it to end, then try again."
        )
    money = rules.caps(limits, taken.replace(cost_usd=taken.cost_usd or 0.0))
    usd = min((cap.most - cap.spent for cap in money if cap.name in rules.MONEY), default=None)
    if usd is None and limits.max_tokens is None:
        return {}
    known = list(islice(runs.finished(layout), LOOKED_BACK))
    own = [one for one in known if one.role == role and one.usage] or [one for one in known if one.usage]
    kinds = {registry.costs(name, settings.agents.get(name, {})) for name in agents}
    found: dict[str, Any] = {}
    tokens = None if limits.max_tokens is None else limits.max_tokens - (taken.tokens or 0)
    for name, rest in (("cost_usd", usd), ("tokens", tokens)):
        left = max(0, rest) if rest is not None and any(kinds) else 0
        unknown = left if "reported" in kinds else 0
        found[name] = min(left, max((getattr(Usage(**(one.usage or {})), name) or 0 for one in own), default=unknown))
    return found
