"""The workbench of the tests of tools: each test runs over every kind of files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builtin.tools.benches import KINDS, Bench


@pytest.fixture(params=KINDS)
def bench(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A workbench over an empty folder; what runs in the background ends with the test."""
    made = Bench(tmp_path, kind=request.param)
    yield made
    made.own.close()
