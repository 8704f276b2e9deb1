"""Golden missions have one place on a machine."""

from __future__ import annotations

import pytest

from tests.formats.golden import place

__all__ = ["place"]


@pytest.fixture(autouse=True)
def one_at_a_time(place: None) -> None:
    """Every test here unpacks a golden mission."""
