"""The pool of the tests of servers: ended with each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("mcp", reason="the built-in agent's packages are not installed: make setup")

from harness.builtin.mcp import server_pool


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No server lives on."""
    yield
    server_pool.shared().close()
