"""The spending of a mission, from its run log: by role, feature, day and model, and the total. One pass, no cache."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from harness.base import schema
from harness.mission import mission, runs, usage
from harness.mission.usage import COUNTS, UNKNOWN, Usage
from harness.replay.resends import replays
from harness.state.layout import Layout

KINDS = ("role", "feature", "day", "model")
SUMMED = ("cost_usd", *COUNTS, "estimated")


def spending(layout: Layout) -> dict[str, Any]:
    """{"role": {name: row}, "feature": …, "day": … (UTC), "model": … (agent and model), "total": row, "replays": {agent and
    model: row} of resent prompts, which count in no other row}.
    A row is {runs, told (runs that reported a usage), uncounted (runs whose cost is unknown or incomplete), seconds,
    cost_usd (the known sum), cost_source, input, cache_read, cache_write, output, reasoning, tokens, cache_ratio}, and
    `estimated` if some tokens are; null is unknown, as is `cost_source` while a run is uncounted.
    Raises BrokenFile on the first line that is not a finished run.
    """
    mission.check_format(layout)
    sums: defaultdict[tuple[str, ...], dict[str, Any]] = defaultdict(_blank)
    for result, uncounted in _counted(layout):
        _add(sums[_names(result)], _row(result.usage, result.seconds, uncounted))
    made: dict[str, Any] = {}
    for place, kind in enumerate(KINDS):
        rows: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for names, row in sums.items():
            rows[names[place]].append(row)
        made[kind] = {name: _finished(rows[name]) for name in sorted(rows)}
    return {**made, "total": _finished(list(sums.values())), "replays": _of_replays(layout)}


def _of_replays(layout: Layout) -> dict[str, dict[str, Any]]:
    """{model: row} of resent prompts, which count nowhere else."""
    rows: dict[str, dict[str, Any]] = {}
    for one in replays.samples(layout):
        name = f"{one.agent} {(one.usage or {}).get('model') or ''}".strip()
        _add(rows.setdefault(name, _blank()), _row(one.usage, one.seconds, one.uncounted))
    return {name: _finished([rows[name]]) for name in sorted(rows)}


def _counted(layout: Layout) -> Iterator[tuple[runs.RunResult, int]]:
    """Runs, newest first, each with 1 if its cost is uncounted, which is the growth of the running total."""
    later: runs.RunResult | None = None
    for start, result in runs.placed(layout):
        if invalid := schema.invalid_field(Usage, result.usage or {}):
            raise runs.misread(layout, start, f"'usage: {invalid}' is not what a run writes there")
        if later is not None:
            yield later, _uncounted(later) - _uncounted(result)
        later = result
    if later is not None:
        yield later, _uncounted(later)


def _uncounted(result: runs.RunResult) -> int:
    count = result.totals.get("uncounted", 0)
    return count if isinstance(count, int) else 0


def _names(result: runs.RunResult) -> tuple[str, ...]:
    """The row names of a run, in the order of KINDS."""
    used = result.usage or {}
    model = f"{used.get('agent') or result.agent} {used.get('model') or ''}".strip()
    return result.role, result.feature, result.at[:10], model


def _blank() -> dict[str, Any]:
    return {"runs": 0, "told": 0, "uncounted": 0, "seconds": 0.0, "sources": set(), **dict.fromkeys(SUMMED)}


def _row(told: dict[str, Any] | None, seconds: float, uncounted: int) -> dict[str, Any]:
    used = told or {}
    sources = set() if used.get("cost_usd") is None else {used.get("cost_source", UNKNOWN)}
    row = {"runs": 1, "told": told is not None, "uncounted": uncounted, "seconds": seconds}
    return {**row, "sources": sources, **{name: used.get(name) for name in SUMMED}}


def _add(row: dict[str, Any], more: dict[str, Any]) -> None:
    for name in ("runs", "told", "uncounted", "seconds"):
        row[name] += more[name]
    for name in SUMMED:
        row[name] = usage.plus(row[name], more[name])
    row["sources"] |= more["sources"]


def _finished(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The sum of these rows, with the computed fields."""
    row = _blank()
    for one in rows:
        _add(row, one)
    used = Usage(**{name: row[name] for name in COUNTS})
    sources = row.pop("sources")
    known = usage.TABLE if usage.TABLE in sources else usage.REPORTED
    row["seconds"] = round(row["seconds"], 3)
    row["cost_usd"] = None if row["cost_usd"] is None else round(row["cost_usd"], 9)
    row["cost_source"] = UNKNOWN if row["uncounted"] or not sources or UNKNOWN in sources else known
    if row["estimated"] is None:
        del row["estimated"]
    return {**row, "tokens": used.tokens, "cache_ratio": usage.cache_ratio(used)}
