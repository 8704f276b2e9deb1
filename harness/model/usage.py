"""What an agent's vendor counted: one normal form for every vendor's way of counting, with the vendor's own block kept.

Vendors differ in what "input" means (with or without what came from the prompt cache) and whether "output" holds the
reasoning. Here nothing is counted twice, and what nobody told is None, never 0.
"""

from __future__ import annotations

from harness.base import schema
from harness.base.record import Record
from harness.store import json_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

COUNTS = ("input", "cache_read", "cache_write", "output", "reasoning")
REPORTED, TABLE, UNKNOWN = "reported", "table", "unknown"
MILLION = 1_000_000
MOST = 10**15  # of tokens or USD; more is no count


if TYPE_CHECKING:
    Tokens = int
    Cost = float
    Source = str
else:
    Tokens = schema.WHOLE.part("a count", lambda value: 0 <= value <= MOST)
    Cost = schema.NUMBER.part("a number, 0 or above", lambda value: 0 <= value <= MOST)
    Source = schema.one_of((REPORTED, TABLE, UNKNOWN))


class Usage(Record):
    """What one or several answers used. Tokens: `input` without what the cache gave or took, `output` with the reasoning,
    `reasoning` the part of it. `cost_source`: reported by the vendor, computed from the price table, or unknown; a
    `cost_usd` whose source is unknown is what is known of several answers, so at least that. `raw`: the vendors' own
    blocks, {"agent", "block"} each."""

    agent: str = ""
    model: str = ""
    session: str = ""
    turns: Tokens | None = None
    input: Tokens | None = None
    cache_read: Tokens | None = None
    cache_write: Tokens | None = None
    output: Tokens | None = None
    reasoning: Tokens | None = None
    cost_usd: Cost | None = None
    cost_source: Source = UNKNOWN
    raw: list[Any] = []

    @property
    def tokens(self) -> int | None:
        """All tokens that a cap on tokens counts, None where nobody told any."""
        known = [count for count in (self.input, self.cache_read, self.cache_write, self.output) if count is not None]
        return sum(known) if known else None


def plus(one: int | float | None, other: int | float | None) -> Any:
    """The sum of what is known; None where neither is."""
    if one is None or other is None:
        return other if one is None else one
    return one + other


def total(usages: Iterable[Usage]) -> Usage | None:
    """Several answers as one, None where there is none; names that differ are joined with `, `.

    The cost is the sum of what is known. Its source is unknown where any answer that used tokens has no whole cost: then
    the sum is a lower bound. Otherwise it is `table` where any part is, else `reported`.
    """
    parts = list(usages)
    if not parts:
        return None
    made = Usage(raw=[block for part in parts for block in part.raw])
    spent = [
        part for part in parts if part.tokens or part.cost_usd
    ] or parts  # one that met a limit has no say in the names
    for name in ("agent", "model", "session"):
        said = (getattr(part, name) for part in spent)
        setattr(made, name, ", ".join(dict.fromkeys(one for one in said if one)))
    for name in ("turns", *COUNTS, "cost_usd"):
        for part in parts:
            setattr(made, name, plus(getattr(made, name), getattr(part, name)))
    made.cost_source = _source([part for part in parts if part.tokens or part.cost_usd is not None])
    return made


def _source(parts: list[Usage]) -> str:
    """Where a sum of costs comes from, given the parts that cost something."""
    if not parts or any(part.cost_usd is None or part.cost_source == UNKNOWN for part in parts):
        return UNKNOWN
    return TABLE if any(part.cost_source == TABLE for part in parts) else REPORTED


def priced(used: Usage, prices: Mapping[str, Mapping[str, float]]) -> Usage:
    """The usage with a cost from the price table, where its vendor reported none and the table has its model or its agent.

    Without input and output the cost stays unknown. A cache price that the table does not have is the price of input.
    """
    price = price_of(used.model, prices) or price_of(used.agent, prices)
    if used.cost_usd is not None or price is None or used.input is None or used.output is None:
        return used
    cost = used.input * price["input"] + used.output * price["output"]
    for name in ("cache_read", "cache_write"):
        cost += (getattr(used, name) or 0) * price.get(name, price["input"])
    return used.replace(cost_usd=round(cost / MILLION, 9), cost_source=TABLE)


def price_of(model: str, prices: Mapping[str, Mapping[str, float]]) -> Mapping[str, float] | None:
    """The prices of a model: its own name, else the longest key with which it begins, up to a `-`, `@`, `:` or `.`; with and
    then without a vendor's prefix such as `openai/`. None where there is none."""
    for name in dict.fromkeys((model, model.rpartition("/")[2])):
        if name in prices:
            return prices[name]
        begun = [key for key in prices if key and name.startswith(key) and name[len(key)] in "-@:."]
        if begun:
            return prices[max(begun, key=len)]
    return None


def cache_ratio(used: Usage) -> float | None:
    """The part of the prompt that came from the cache: read / (uncached + write + read); None where that is unknown.

    A vendor that tells no writes has them in its input.
    """
    if used.input is None or used.cache_read is None:
        return None
    whole = used.input + (used.cache_write or 0) + used.cache_read
    return used.cache_read / whole if whole else None


def told(agent: str, **values: Any) -> Usage:
    """What an agent told, as it stands; a cost that is told is a reported one."""
    source = UNKNOWN if values.get("cost_usd") is None else REPORTED
    return Usage(**{"agent": agent, "cost_source": source, "raw": [{"agent": agent, "block": values}], **values})


def parse(text: str) -> Usage | None:
    """A usage from its JSON; None where it is none: a negative or endless number, a text where a number belongs."""
    try:
        return schema.record(Usage, json_lines.value(text.encode()), "an agent")
    except (ValueError, TypeError):
        return None
