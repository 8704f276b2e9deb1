"""The maximum cost of a mission, in words, before anything is spent. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from harness.base import errors
from harness.decision.rules import Caps


def words(limits: Caps, costly: Sequence[str], hidden: Sequence[str]) -> str:
    """One sentence. `costly`: agents that cost money; `hidden`: those without a reported cost or a price."""
    ends = f"after {limits.max_runs} runs or {limits.max_hours:g} hours it stops with exit {errors.RUN_CAP}"
    if not costly:
        return f"cost: nothing, its agents are free; {ends}"
    tokens = (
        "" if limits.max_tokens is None else f"at {limits.max_tokens} tokens it stops with exit {errors.COST_CAP}; "
    )
    ways = (limits.max_cost_usd, ""), (limits.max_cost_usd_day, " a day"), (limits.max_cost_usd_feature, " a feature")
    caps = [f"{usd:.2f} USD{way}" for usd, way in ways if usd is not None]
    if not caps:
        return (
            f"cost: no cap set: {', '.join(costly)} may cost without bound (max_cost_usd in [limits]); {tokens}{ends}"
        )
    cap = f"at most {', '.join(caps)}, then it stops with exit {errors.COST_CAP}"
    if not hidden:
        return f"cost: {cap}; {tokens}{ends}"
    tables = " and ".join(f"[prices.{name}]" for name in hidden)
    tell = "reports" if len(hidden) == 1 else "report"
    return f"cost: {cap}, once config.toml has {tables}: {', '.join(hidden)} {tell} no cost; {tokens}{ends}"
