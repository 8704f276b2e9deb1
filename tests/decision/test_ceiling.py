"""What a mission can cost at most, in one sentence that is true."""

from __future__ import annotations

from harness.decision import ceiling
from harness.decision.rules import Caps

ENDS = "after 200 runs or 48 hours it stops with exit 5"


def limits(cost: float | None = None, tokens: int | None = None) -> Caps:
    """The usual limits, with these caps."""
    return Caps(max_runs=200, max_hours=48, stall_after=3, max_cost_usd=cost, max_tokens=tokens)


def test_a_cap_is_what_it_costs_at_most() -> None:
    """With the exit code that it stops with."""
    said = ceiling.words(limits(5), ["claude"], [])
    assert said == f"cost: at most 5.00 USD, then it stops with exit 6; {ENDS}"


def test_without_a_cap_it_has_no_bound() -> None:
    """And the setting that gives it one."""
    said = ceiling.words(limits(), ["claude", "codex"], ["codex"])
    assert said.startswith("cost: no cap set: claude, codex may cost without bound (max_cost_usd in [limits])")
    assert said.endswith(ENDS)


def test_a_cap_on_tokens_is_one_too() -> None:
    """It is no number of USD."""
    assert "at 1000 tokens it stops with exit 6" in ceiling.words(limits(None, 1000), ["codex"], [])


def test_a_cap_that_cannot_see_the_cost_says_what_it_lacks() -> None:
    """codex and gemini report no USD: without a price the cap never comes."""
    said = ceiling.words(limits(5), ["codex"], ["codex"])
    assert "at most 5.00 USD, then it stops with exit 6, once config.toml has [prices.codex]" in said


def test_embedded_agents_cost_nothing() -> None:
    """Whatever the caps are."""
    assert ceiling.words(limits(), [], []) == f"cost: nothing, its agents are free; {ENDS}"
