"""What a mission has spent, from the books: by role, feature, day and model, and in all. One pass, nothing is kept."""

from __future__ import annotations

from harness.base import schema
from harness.model import mission, runs, usage
from harness.model.usage import COUNTS, UNKNOWN, Usage
from harness.store.layout import Layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

KINDS = ("role", "feature", "day", "model")
SUMMED = ("cost_usd", *COUNTS)


def spending(layout: Layout) -> dict[str, Any]:
    """{"role": {name: row}, "feature": …, "day": … (UTC), "model": … (agent and model), "total": row}.

    A row is {runs, told (runs with a usage), uncounted (runs whose cost is not known, or not whole), seconds, cost_usd (the
    known sum), cost_source, input, cache_read, cache_write, output, reasoning, tokens, cache_ratio}; null is unknown, and so
    is `cost_source` while anything is uncounted. Raises BrokenFile on the first line that is no finished run.
    """
    mission.check_format(layout)
    met: dict[tuple[str, ...], dict[str, Any]] = {}
    for result, uncounted in _counted(layout):
        names = _names(result)
        if names not in met:
            met[names] = _blank()
        _add(met[names], result, uncounted)
    made: dict[str, Any] = {}
    for place, kind in enumerate(KINDS):
        rows: dict[str, list[dict[str, Any]]] = {}
        for names, row in met.items():
            rows.setdefault(names[place], []).append(row)
        made[kind] = {name: _finished(rows[name]) for name in sorted(rows)}
    return {**made, "total": _finished(list(met.values()))}


def _counted(layout: Layout) -> Iterator[tuple[runs.Result, int]]:
    """Runs, newest first, each with whether its cost is uncounted: by how much the running total grew with it."""
    later: runs.Result | None = None
    for start, result in runs.placed(layout):
        if odd := schema.odd(Usage, result.usage or {}):
            raise runs.misread(layout, start, f"'usage: {odd}' is not what a run writes there")
        if later is not None:
            yield later, _uncounted(later) - _uncounted(result)
        later = result
    if later is not None:
        yield later, _uncounted(later)


def _uncounted(result: runs.Result) -> int:
    count = result.totals.get("uncounted", 0)
    return count if isinstance(count, int) else 0


def _names(result: runs.Result) -> tuple[str, ...]:
    """The names under which a run stands, in the order of KINDS."""
    used = result.usage or {}
    model = f"{used.get('agent') or result.agent} {used.get('model') or ''}".strip()
    return result.role, result.feature, result.at[:10], model


def _blank() -> dict[str, Any]:
    return {"runs": 0, "told": 0, "uncounted": 0, "seconds": 0.0, "sources": set(), **dict.fromkeys(SUMMED)}


def _add(row: dict[str, Any], result: runs.Result, uncounted: int) -> None:
    row["runs"] += 1
    row["uncounted"] += uncounted
    row["seconds"] += result.seconds
    if result.usage is None:
        return
    row["told"] += 1
    for name in SUMMED:
        more = result.usage.get(name)
        if more is not None:
            row[name] = more if row[name] is None else row[name] + more
    if result.usage.get("cost_usd") is not None:
        row["sources"].add(result.usage.get("cost_source", UNKNOWN))


def _finished(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """These rows as one, with what is computed from it."""
    row = _blank()
    for one in rows:
        for name in ("runs", "told", "uncounted", "seconds"):
            row[name] += one[name]
        for name in SUMMED:
            row[name] = usage.plus(row[name], one[name])
        row["sources"] |= one["sources"]
    used = Usage(**{name: row[name] for name in COUNTS})
    sources = row.pop("sources")
    known = usage.TABLE if usage.TABLE in sources else usage.REPORTED
    row["seconds"] = round(row["seconds"], 3)
    row["cost_usd"] = None if row["cost_usd"] is None else round(row["cost_usd"], 9)
    row["cost_source"] = UNKNOWN if row["uncounted"] or not sources or UNKNOWN in sources else known
    return {**row, "tokens": used.tokens, "cache_ratio": usage.cache_ratio(used)}
