"""The price of a mission before it starts, from what earlier missions on this machine cost."""

from __future__ import annotations

import json
from pathlib import Path

from harness.commands.setup import price
from harness.run import starting
from harness.state import names
from harness.state.layout import Layout
from tests.missions import House

COSTS = {"planner": [0.4], "worker": [0.5, 9.0, 0.6], "validator": [0.25, 0.2, 0.3], "curator": [0.1]}


def past(house: House) -> None:
    """Runs of a model `large` with these costs, and cheap ones of another model, in the books of this mission."""
    row = house.work({"usage": {"cost_usd": 1.0, "input": 10}}, {"say": "nothing"})
    kinds = [(role, usd, "large") for role, costs in COSTS.items() for usd in costs] + [("worker", 0.01, "small")]
    rows = [
        {**row, "role": role, "usage": {**row["usage"], "cost_usd": usd, "model": model}} for role, usd, model in kinds
    ]
    Path(house.layout.path(names.RUN_LOG)).write_text("".join(json.dumps(one) + "\n" for one in rows))


def test_features_times_roles_times_medians(house: House) -> None:
    """Of the same agent and model; an agent without past runs has no known price, and a free one none."""
    assert price.words(house.layout) == ""
    past(house)
    table = ("[agents.scripted]", 'command = ["true"]', 'model = "large"')
    path = Path(house.layout.path(names.CONFIG))
    path.write_text("\n".join(['agent = "scripted"', *table]))
    wanted = (
        "price: about 0.85 USD a feature and 0.50 USD once, so 2.20 USD for 2 features (medians of past runs on this"
    )
    assert price.words(house.layout).startswith(wanted)
    path.write_text(path.read_text().replace("large", "huge"))
    assert price.words(house.layout).startswith("price: not known: no past run of worker, validator, planner, curator")


def test_another_project_of_this_machine_counts(house: House) -> None:
    """Found by the trees of its mission; here there is no plan yet, so the price is for a feature, of any model."""
    past(house)
    other = House(house.folder, house.env, name="other")
    other.repository()
    starting.start(other.layout)
    text = 'agent = "scripted"\n[agents.scripted]\ncommand = ["true"]\n'
    Path(other.layout.path(names.CONFIG)).write_text(text)
    Path(house.layout.path(names.CONFIG)).write_text("")
    assert "about 0.80 USD a feature and 0.50 USD once (" in price.words(Layout(str(other.project)))
