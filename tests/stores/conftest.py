"""The stores that the contract is played over."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.stores.disk import DiskStore
from harness.stores.memory import MemoryStore
from harness.stores.store import Store


@pytest.fixture(params=["memory", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Each store, empty."""
    return MemoryStore() if request.param == "memory" else DiskStore(str(tmp_path / "deep" / "store"))
