"""One normal form for vendor usage: nothing counts twice, and unknown is not zero."""

from __future__ import annotations

import json

import pytest

from harness.mission.usage import Usage, cache_ratio, parse, plus, price_of, priced, reported, total

PRICES = {"m-5": {"input": 1.0, "output": 10.0, "cache_read": 0.1, "cache_write": 2.0}}


def test_what_nobody_told_is_not_nothing() -> None:
    """None stays None until a number is reported."""
    assert Usage().tokens is None
    assert Usage(input=0).tokens == 0
    assert plus(None, None) is None
    assert (plus(None, 2), plus(2, None), plus(2, 3)) == (2, 2, 5)


def test_reasoning_is_a_part_of_the_output_and_counted_once() -> None:
    """All tokens are input, cache and output together."""
    assert Usage(input=1, cache_read=10, cache_write=100, output=1000, reasoning=900).tokens == 1111


# sums


def test_several_answers_are_one_sum_with_all_names_and_blocks() -> None:
    """Different names are joined, equal names appear once; all vendor blocks are there."""
    made = total([reported("a", model="m", input=1, cost_usd=0.5), reported("b", model="m", output=2, cost_usd=0.25)])
    assert made is not None
    assert (made.agent, made.model, made.input, made.output, made.cache_read) == ("a, b", "m", 1, 2, None)
    assert (made.cost_usd, made.cost_source, made.tokens) == (0.75, "reported", 3)
    assert [block["agent"] for block in made.raw] == ["a", "b"]
    assert total([]) is None


@pytest.mark.parametrize(
    ("parts", "cost", "source"),
    [
        ([Usage(input=5)], None, "unknown"),
        ([Usage(input=5), reported("b", input=1, cost_usd=0.5)], 0.5, "unknown"),
        ([Usage(), reported("b", input=1, cost_usd=0.5)], 0.5, "reported"),
        ([Usage(input=0), reported("b", cost_usd=0.5)], 0.5, "reported"),
        ([Usage(input=1, cost_usd=1.0, cost_source="table"), reported("b", cost_usd=0.5)], 1.5, "table"),
        ([Usage(input=1, cost_usd=1.0), reported("b", cost_usd=0.5)], 1.5, "unknown"),
        ([Usage()], None, "unknown"),
    ],
)
def test_a_sum_of_costs_says_whether_it_is_whole(parts: list[Usage], cost: float | None, source: str) -> None:
    """An answer that used tokens and has no cost makes the sum a lower bound; one that used none does not."""
    made = total(parts)
    assert made is not None
    assert (made.cost_usd, made.cost_source) == (cost, source)


# prices


def test_a_cost_is_computed_where_none_was_reported() -> None:
    """Each class of tokens has its price, per million; a reported cost is kept."""
    used = Usage(model="m-5", input=1_000_000, output=100_000, reasoning=90_000, cache_read=2_000_000, cache_write=500)
    made = priced(used, PRICES)
    assert made.cost_usd == pytest.approx(2.201)
    assert made.cost_source == "table"
    own = reported("a", model="m-5", input=5, output=5, cost_usd=0.0)
    assert priced(own, PRICES) == own


def test_without_its_price_or_its_counts_a_cost_stays_unknown() -> None:
    """For an unknown model, or an answer whose output was not counted."""
    for used in (Usage(model="other", input=1, output=1), Usage(model="m-5", input=1), Usage(input=1, output=1)):
        assert priced(used, PRICES).cost_usd is None


def test_a_cache_without_a_price_costs_what_input_costs() -> None:
    """Overestimating is better than underestimating."""
    used = Usage(model="m", input=0, output=0, cache_read=1_000_000)
    assert priced(used, {"m": {"input": 2.0, "output": 5.0}}).cost_usd == 2.0


def test_where_no_model_is_told_the_agents_name_is_looked_up() -> None:
    """Some vendors never report the model; a model without a price does not keep the agent's from counting."""
    for model in ("", "other"):
        assert priced(Usage(agent="m-5", model=model, input=1_000_000, output=0), PRICES).cost_usd == 1.0


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("m-5", "m-5"),
        ("vendor/m-5", "m-5"),
        ("a/b/m-5", "m-5"),
        ("m-5-20250929", "m-5"),
        ("vendor/m-5@20250929", "m-5"),
        ("m-5-mini-2025-01-01", "m-5-mini"),
        ("special/m-5", "special/m-5"),
        ("m-50", ""),
        ("m", ""),
        ("", ""),
    ],
)
def test_the_price_is_that_of_the_closest_name(model: str, key: str) -> None:
    """An exact match first, then the longest prefix; never half a word."""
    table = {name: {"input": float(number)} for number, name in enumerate(("m-5", "m-5-mini", "special/m-5", "x"))}
    assert price_of(model, table) == table.get(key)


def test_the_cache_ratio_is_of_all_that_was_read() -> None:
    """It is unknown if input or reads are unknown; if nothing was read there is no ratio."""
    assert cache_ratio(Usage(input=10, cache_write=10, cache_read=80)) == 0.8
    assert cache_ratio(Usage(input=20, cache_read=80)) == 0.8
    assert cache_ratio(Usage(input=20, cache_read=0)) == 0
    assert [cache_ratio(one) for one in (Usage(input=1), Usage(cache_read=1), Usage(input=0, cache_read=0))] == [
        None
    ] * 3


def test_a_usage_survives_being_written() -> None:
    """The text of the row reads back as the usage."""
    made = reported("a", model="m", input=1, cost_usd=0.5)
    assert parse(json.dumps(made.asdict())) == made
