"""Plots: every value has its place in the picture and in the table below it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from harness.report import _plots


@pytest.mark.parametrize(
    ("most", "end"), [(0, 1), (0.3, 0.5), (1, 1), (1.2, 2), (4.9, 5), (7, 10), (1234, 2000), (0.004, 0.005)]
)
def test_an_axis_ends_at_a_round_number_above_the_highest_value(most: float, end: float) -> None:
    """1, 2 or 5 times a power of ten."""
    assert _plots.ceiling(most) == pytest.approx(end)


def test_columns_stack_their_series() -> None:
    """Heights are shares of the axis; nothing is drawn for nothing; the numbers are in a table, too."""
    found = _plots.columns("Cost", ["04-24", "04-25"], {"a": [1.0, 0.0], "b": [3.0, 5.0]}, "{:.0f}".format)
    heights = [
        float(value) for value in re.findall(r'<rect x="[^"]*" width="[^"]*" y="[^"]*" height="([\d.]+)"', found)
    ]
    assert heights == [_plots.HIGH / 5, _plots.HIGH * 3 / 5, _plots.HIGH]
    assert "<title>04-25, b: 5</title>" in found
    assert '<th scope="row">04-25</th><td>0</td><td>5</td>' in found


def test_many_columns_are_named_now_and_then() -> None:
    """The labels do not run into each other."""
    days = [f"{day:02}" for day in range(60)]
    found = _plots.columns("Cost", days, {"a": [1.0] * 60}, "{:.0f}".format).partition("</svg></figure>")[0]
    assert len(re.findall('text-anchor="middle"', found)) <= _plots.MAX_LABELS


def test_bars_lie_in_their_lane_and_lead_to_their_run() -> None:
    """The first begins at the left edge, the last ends at the right one; a bad one has a mark."""
    values: dict[str, Any] = {"series": 0, "title": "a", "link": "#run-1"}
    bars = [
        _plots.Bar(lane=0, start=100.0, end=150.0, **values),
        _plots.Bar(lane=1, start=150.0, end=200.0, bad=True, **values),
    ]
    found = _plots.timeline("Runs", ["tree-1", "tree-2"], bars, ["x"])
    assert 'x="0%" width="50%"' in found
    assert len(re.findall('x="50%" width="50%"', found)) == 2
    assert found.count('href="#run-1"') == 2
    assert "tree-2</text>" in found


def test_a_single_moment_is_drawn() -> None:
    """Without a division by zero; a bar can be seen."""
    bar = _plots.Bar(lane=0, start=5.0, end=5.0, series=99, title="a", link="#b")
    assert f'width="{_plots.NARROWEST}%"' in _plots.timeline("Runs", ["tree-1"], [bar], ["x"])
    assert "nan" not in _plots.steps("Memory", [5.0], {"notes": [0.0]})


def test_steps_hold_a_value_until_the_next_one() -> None:
    """From left to right, the highest on top."""
    found = _plots.steps("Memory", [0.0, 10.0], {"notes": [0.0, 5.0]})
    assert 'points="0.00,100.00 0.00,100.00 100.00,100.00 100.00,0.00 100,0.00"' in found


def test_tries_differ_by_more_than_colour() -> None:
    """What is not good has a dash, and each says in words what it was."""
    found = _plots.tries([("good", "ok", "#a"), ("bad", "red", "#b")])
    assert found.count('class="dash"') == 1
    assert '<span class="unseen">red</span>' in found
    assert _plots.tries([]) == ""
