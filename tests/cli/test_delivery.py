"""`land` and `remove` as a person calls them."""

from __future__ import annotations

import pytest

from tests.missions import House


@pytest.mark.parametrize("words", [("land", "other"), ("land",)])
def test_what_cannot_be_landed_is_refused_in_one_line(house: House, words: tuple[str, ...]) -> None:
    """An unknown mission, and one that has only begun."""
    done = house.harness(*words)
    assert (done.code, done.out, done.err.count("\n")) == (64, "", 1)
