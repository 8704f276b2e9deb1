"""A crontab of the test's own, and a mission that it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.missions import House
from tests.unattended.crontabs import Crontab


@pytest.fixture
def crontab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, house: House) -> Crontab:
    """The crontab of a mission's user."""
    return Crontab(tmp_path, monkeypatch, house)
