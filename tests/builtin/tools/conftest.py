"""The workbench of the tests of tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builtin.tools.benches import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A workbench over an empty folder where commands can be run; what runs in the background ends with the test."""
    made = Bench(tmp_path)
    yield made
    made.own.close()
