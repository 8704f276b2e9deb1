"""Usage: one normal form for the token counts and costs of all vendors, together with the vendor's own block.

Vendors differ in whether "input" includes the prompt cache, and "output" the reasoning. Here nothing counts twice, and a
value that was not reported is None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harness.base import schema
from harness.base.record import Json, Record
from harness.state import json_lines

COUNTS = ("input", "cache_read", "cache_write", "output", "reasoning")
REPORTED, TABLE, UNKNOWN = "reported", "table", "unknown"
MILLION = 1_000_000
MAX_COUNT = 10**15  # of tokens or USD; more is not a valid count

if TYPE_CHECKING:  # a type for checkers; at run time the kind of a field
    Tokens = int
    Cost = float
    Source = str
else:
    Tokens = schema.WHOLE.part("a count", lambda value: 0 <= value <= MAX_COUNT)
    Cost = schema.NUMBER.part("a number, 0 or above", lambda value: 0 <= value <= MAX_COUNT)
    Source = schema.one_of((REPORTED, TABLE, UNKNOWN))


class Usage(Record):
    """The usage of one or several answers. Tokens: `input` without cache reads and writes, `output` with `reasoning`.
    `estimated`: the part of all tokens that is estimated because the vendor reported none. `cost_source`: reported by
    the vendor, computed from the price table, or unknown; a `cost_usd` of unknown source is a lower bound, the known
    part of several answers. `raw`: the blocks of the vendors, {"agent", "block"} each."""

    agent: str = ""
    model: str = ""
    session: str = ""
    turns: Tokens | None = None
    input: Tokens | None = None
    cache_read: Tokens | None = None
    cache_write: Tokens | None = None
    output: Tokens | None = None
    reasoning: Tokens | None = None
    estimated: Tokens | None = None
    cost_usd: Cost | None = None
    cost_source: Source = UNKNOWN
    raw: list[Json] = []

    @property
    def tokens(self) -> int | None:
        """All tokens that count towards a token limit; None if none were reported."""
        known = [count for count in (self.input, self.cache_read, self.cache_write, self.output) if count is not None]
        return sum(known) if known else None


def plus(one: int | float | None, other: int | float | None) -> Any:
    """The sum of the known values; None if neither is known."""
    if one is None or other is None:
        return other if one is None else one
    return one + other


def total(usages: Iterable[Usage]) -> Usage | None:
    """Several answers as one, None if there are none; different names are joined with `, `. The cost is the sum of the known
    costs. Its source is unknown if an answer that used tokens has no complete cost, `table` if any part is, else `reported`."""
    parts = list(usages)
    if not parts:
        return None
    made = Usage(raw=[block for part in parts for block in part.raw])
    spent = [part for part in parts if part.tokens or part.cost_usd] or parts  # a refused request has no names
    for name in ("agent", "model", "session"):
        setattr(made, name, ", ".join(dict.fromkeys(filter(None, (getattr(part, name) for part in spent)))))
    for name in ("turns", *COUNTS, "estimated", "cost_usd"):
        for part in parts:
            setattr(made, name, plus(getattr(made, name), getattr(part, name)))
    costly = [part for part in parts if part.tokens or part.cost_usd is not None]
    sources = {UNKNOWN if part.cost_usd is None else part.cost_source for part in costly} or {UNKNOWN}
    made.cost_source = next(source for source in (UNKNOWN, TABLE, REPORTED) if source in sources)
    return made


def priced(used: Usage, prices: Mapping[str, Mapping[str, float]]) -> Usage:
    """The usage with a cost from the price table, if its vendor reported none and the table has its model or its agent. Without
    input and output the cost stays unknown. A missing cache price is the price of input."""
    price = price_of(used.model, prices) or price_of(used.agent, prices)
    if used.cost_usd is not None or price is None or used.input is None or used.output is None:
        return used
    cost = used.input * price["input"] + used.output * price["output"]
    for name in ("cache_read", "cache_write"):
        cost += (getattr(used, name) or 0) * price.get(name, price["input"])
    return used.replace(cost_usd=round(cost / MILLION, 9), cost_source=TABLE)


def price_of(model: str, prices: Mapping[str, Mapping[str, float]]) -> Mapping[str, float] | None:
    """The prices under the model's own name, else under the longest key that is its prefix up to a `-`, `@`, `:` or `.`; first
    with, then without a vendor's prefix such as `openai/` or `openai:`. None if there are none."""
    for name in dict.fromkeys((model, model.rpartition("/")[2], model.partition(":")[2])):
        if name in prices:
            return prices[name]
        begun = [key for key in prices if key and name.startswith(key) and name[len(key)] in "-@:."]
        if begun:
            return prices[max(begun, key=len)]
    return None


def cache_ratio(used: Usage) -> float | None:
    """The part of the prompt that came from the cache: read / (uncached + write + read); None if unknown. A vendor that
    reports no writes includes them in its input."""
    if used.input is None or used.cache_read is None:
        return None
    whole = used.input + (used.cache_write or 0) + used.cache_read
    return used.cache_read / whole if whole else None


def reported(agent: str, **values: Any) -> Usage:
    """The usage that an agent reported, unchanged; a cost in it has the source `reported`."""
    source = UNKNOWN if values.get("cost_usd") is None else REPORTED
    return Usage(**{"agent": agent, "cost_source": source, "raw": [{"agent": agent, "block": values}], **values})


def parse(text: str) -> Usage | None:
    """A usage from its JSON; None if it is invalid, such as a negative or infinite number, or a text for a number."""
    try:
        return schema.record(Usage, json_lines.value(text.encode()), "an agent")
    except (ValueError, TypeError):
        return None
