"""What an agent's vendor counted: one normal form for every vendor's way of counting, with the vendor's own block kept.

Vendors differ in what "input" means (with or without what came from the prompt cache) and whether "output" holds the
reasoning. Here nothing is counted twice, and what nobody told is None, never 0.
"""

from __future__ import annotations

from harness.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COUNTS = ("input", "cache_read", "cache_write", "output", "reasoning")
REPORTED, TABLE, UNKNOWN = "reported", "table", "unknown"


class Usage(Record):
    """What one or several answers used. Tokens: `input` without what the cache gave or took, `output` with the reasoning,
    `reasoning` the part of it. `cost_source`: reported by the vendor, computed from the price table, or unknown. `raw`: the
    vendors' own blocks, {"agent", "block"} each."""

    agent: str = ""
    model: str = ""
    session: str = ""
    turns: int | None = None
    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cost_usd: float | None = None
    cost_source: str = UNKNOWN
    raw: list[dict[str, Any]] = []

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
