"""The sums and words of the page: round axes, readable durations, and nothing unknown shown as zero."""

from __future__ import annotations

import pytest

from harness.report import _view


@pytest.mark.parametrize(
    ("most", "end"), [(0, 1), (0.3, 0.5), (1, 1), (1.2, 2), (4.9, 5), (7, 10), (1234, 2000), (0.004, 0.005)]
)
def test_an_axis_ends_at_a_round_number_above_the_highest_value(most: float, end: float) -> None:
    """1, 2 or 5 times a power of ten."""
    assert _view.ceiling(most) == pytest.approx(end)


@pytest.mark.parametrize(("seconds", "words"), [(0.04, "0.0 s"), (59.9, "59.9 s"), (61, "2 min"), (7300, "2 h 2 min")])
def test_durations_are_words(seconds: float, words: str) -> None:
    """Rounded as elsewhere."""
    assert _view.duration(seconds) == words


def test_what_is_not_known_is_not_zero() -> None:
    """A run without a cost says nothing of it."""
    assert (_view.money(None), _view.money(0.0)) == ("", "0.00 USD")
