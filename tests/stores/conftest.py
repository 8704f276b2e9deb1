"""The stores that the contract is played over."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.stores.store import Store
from tests.stores.places import IMPLEMENTATIONS, OUTLIVING, Place


@pytest.fixture(params=list(IMPLEMENTATIONS))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place for each implementation, empty."""
    return Place(request.param, tmp_path)


@pytest.fixture
def store(place: Place) -> Store:
    """Each store, empty."""
    return place.first


@pytest.fixture(params=OUTLIVING)
def outliving(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place for each implementation whose values outlive a process, empty."""
    folder = tmp_path / "values"
    folder.mkdir()
    return Place(request.param, folder)
