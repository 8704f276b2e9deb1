"""Which agents cost money, and whose cost is unknown."""

from __future__ import annotations

from pathlib import Path

from harness.agents import spenders
from harness.state import names
from tests.missions import House

MINE = ("[agents.mine]", 'command = ["true"]')
PRICE = ("[prices.m-1]", "input = 1", "output = 1")


def test_an_agent_of_ours_costs_nothing_and_one_without_a_count_is_named(house: House) -> None:
    """A price for its name is a count."""
    assert spenders.configured(house.layout) == ([], [])
    house.config('agent = ["scripted", "mine"]', *MINE)
    assert spenders.configured(house.layout) == (["mine"], ["mine"])
    house.config('agent = "mine"', *MINE, "[prices.mine]", *PRICE[1:])
    assert spenders.configured(house.layout) == (["mine"], [])


def test_the_model_that_an_agent_said_in_its_newest_run_has_a_price(house: House) -> None:
    """Where config.toml names none: `[prices.MODEL]` is accepted from its first run on."""
    house.work({"usage": {"input": 5, "model": "m-1"}})
    log = Path(house.layout.path(names.RUN_LOG))
    log.write_text(log.read_text().replace('"agent":"scripted"', '"agent":"mine"'))
    house.config('agent = "mine"', *MINE, *PRICE)
    assert spenders.configured(house.layout) == (["mine"], [])
