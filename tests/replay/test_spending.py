"""Spending of a mission, read from the run log in one pass: by role, feature, day and model, and in total."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import BrokenFile
from harness.mission.usage import reported
from harness.replay import spending
from harness.state import files, names
from tests.helpers import growth
from tests.missions import House


@pytest.fixture
def line(house: House) -> dict[str, Any]:
    """A line of the run log, as a run wrote it."""
    house.work({"say": "nothing"})
    return house.ran()[0]


def books(house: House, *lines: dict[str, Any]) -> None:
    """Write a run log with exactly these lines."""
    Path(house.layout.path(names.RUN_LOG)).write_bytes(b"".join(files.dump_json(line) for line in lines))


def used(line: dict[str, Any], uncounted: int = 0, **values: Any) -> dict[str, Any]:
    """The line with a usage, and the running count of runs that are not counted."""
    usage = reported("mine", **values).asdict()
    return {**line, "agent": "mine", "usage": usage, "totals": {**line["totals"], "uncounted": uncounted}}


def test_before_the_first_run_nothing_was_spent(house: House) -> None:
    """No names, and unknown is null."""
    found = spending.spending(house.layout)
    assert (found["role"], found["feature"], found["day"], found["model"]) == ({}, {}, {}, {})
    assert (found["total"]["runs"], found["total"]["cost_usd"], found["total"]["cache_ratio"]) == (0, None, None)


def test_what_each_spent_stands_under_its_names(house: House, line: dict[str, Any]) -> None:
    """By role, feature, day in UTC, agent and model; each group adds up to the total."""
    one = used(line, model="m", input=10, cache_write=10, cache_read=80, output=5, cost_usd=0.5)
    two = used(line, model="n", input=100, output=7, reasoning=3, cost_usd=0.25)
    two |= {"role": "planner", "feature": "", "at": "2026-04-24T23:59:59Z"}
    books(house, one, two)
    found = spending.spending(house.layout)
    assert {name: row["cost_usd"] for name, row in found["role"].items()} == {"planner": 0.25, "worker": 0.5}
    assert {name: row["input"] for name, row in found["feature"].items()} == {"": 100, "F-001": 10}
    assert list(found["day"]) == ["2026-04-24", line["at"][:10]]
    assert {name: row["runs"] for name, row in found["model"].items()} == {"mine m": 1, "mine n": 1}
    total = found["total"]
    assert (total["input"], total["cache_read"], total["output"], total["reasoning"]) == (110, 80, 12, 3)
    assert (total["cost_usd"], total["cost_source"], total["tokens"], total["cache_ratio"]) == (
        *(0.75, "reported", 212, 0.4),
    )
    assert found["model"]["mine m"]["cache_ratio"] == 0.8
    assert found["model"]["mine n"]["cache_ratio"] is None
    assert total["seconds"] == pytest.approx(2 * line["seconds"], abs=0.001)


def test_what_is_not_counted_is_said_where_it_belongs(house: House, line: dict[str, Any]) -> None:
    """The known sum stays; a cost source is unknown if any part is missing."""
    first = used(line, model="m", cost_usd=0.5)
    second = used(line, 1, model="n", input=5)
    third = {**used(line, 2, model="m"), "usage": None}
    books(house, line, first, second, third)
    found = spending.spending(house.layout)
    assert (found["total"]["cost_usd"], found["total"]["uncounted"], found["total"]["runs"]) == (0.5, 2, 4)
    assert found["total"]["cost_source"] == "unknown"
    rows = {name: (row["cost_usd"], row["uncounted"], row["cost_source"]) for name, row in found["model"].items()}
    assert rows == {
        "mine": (None, 1, "unknown"),
        "mine m": (0.5, 0, "reported"),
        "mine n": (None, 1, "unknown"),
        "scripted": (None, 0, "unknown"),
    }


def test_the_first_runs_of_an_older_version_are_read(house: House, line: dict[str, Any]) -> None:
    """Their lines lack the agent and the count of what was not counted."""
    old = {name: value for name, value in line.items() if name not in ("until", "agents")}
    old["totals"] = {name: value for name, value in line["totals"].items() if name != "uncounted"}
    books(house, old, used(line, 1, input=5))
    assert spending.spending(house.layout)["total"]["uncounted"] == 1


def test_a_broken_line_ends_it_with_65(house: House, line: dict[str, Any]) -> None:
    """Half of a run log gives no sum."""
    Path(house.layout.path(names.RUN_LOG)).write_bytes(b"broken\n" + files.dump_json(line))
    with pytest.raises(BrokenFile, match=r"runs\.jsonl, line 1"):
        spending.spending(house.layout)
    assert house.harness("usage").code == house.harness("usage", "--json").code == 65


def test_four_times_the_runs_take_four_times_the_steps_to_sum(house: House, line: dict[str, Any]) -> None:
    """Not sixteen times."""
    one = used(line, model="m", input=10, cache_write=10, cache_read=80, output=5, cost_usd=0.5)

    def made(count: int) -> Callable[[], object]:
        def summed() -> None:
            assert spending.spending(house.layout)["total"]["runs"] == count

        books(house, *([one] * count))
        return summed

    assert growth(made) < 6


def test_the_json_is_what_the_module_gives(house: House, line: dict[str, Any]) -> None:
    """One object for scripts."""
    books(house, used(line, model="m", input=10, cost_usd=0.5))
    assert json.loads(house.harness("usage", "--json").out) == spending.spending(house.layout)


@pytest.mark.parametrize(
    "odd",
    [
        {"cost_usd": "0.5"},
        {"cost_usd": float("nan")},
        {"cost_usd": -1},
        {"input": [1]},
        {"output": 10**400},
        {"cost_source": []},
        {"model": 7},
    ],
    ids=str,
)
def test_a_usage_that_cannot_be_counted_is_named_with_its_line(
    house: House, line: dict[str, Any], odd: dict[str, Any]
) -> None:
    """Exit code 65 from every command that reads it, and no partial sum."""
    spoilt = used({**line, "run": "2-worker"}, cost_usd=0.5)
    books(house, used(line, cost_usd=0.5), {**spoilt, "usage": {**spoilt["usage"], **odd}})
    done = house.harness("usage")
    assert (done.code, f"runs.jsonl, line 2: 'usage: {next(iter(odd))}' is not" in done.err) == (65, True)


@pytest.mark.parametrize("odd", [{"usage": []}, {"usage": "x"}, {"totals": []}, {"at": 5}], ids=str)
def test_a_line_of_wrong_kinds_is_no_fault_of_ours(house: House, line: dict[str, Any], odd: dict[str, Any]) -> None:
    """`usage`, `next` and `status` name the file and the line."""
    books(house, {**line, **odd})
    for word in ("usage", "next", "status"):
        done = house.harness(word)
        assert (done.code, "runs.jsonl, line 1: " in done.err) == (65, True)
