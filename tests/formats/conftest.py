"""Golden missions have one place on a machine."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def place() -> Iterator[None]:
    """One test at a time on this machine: the folder has a fixed name."""
    with open("/tmp/golden.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
