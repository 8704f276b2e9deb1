"""`make demo-store` shows what it says it shows, and ends by itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.missions import CHECKOUT
from tests.stores.conftest import skip_without

pytest.importorskip("pydantic_ai", reason="the built-in agent's packages are not installed: make setup")

DEMO = [sys.executable, str(CHECKOUT / "examples/demo_store.py")]


def test_the_demo_of_a_shared_store_holds_over_two_servers() -> None:
    """Two users, two processes, one of them killed: every row of the table holds for both."""
    for name in ("redis", "postgres"):
        skip_without(name)
    done = subprocess.run(DEMO, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = done.stdout.splitlines()[3:-2]
    assert len(rows) == 9 and all(row.endswith("yes") or "  no" not in row for row in rows)
    assert [row for row in rows if row.count("32 attempts, 0 succeeded") == 2]


def test_where_a_server_is_missing_it_says_what_to_install() -> None:
    """One line, and the exit code of something that is not there."""
    done = subprocess.run(DEMO, env={"PATH": "/nowhere"}, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (69, "")
    assert "redis-server" in done.stderr and "apt install redis-server postgresql" in done.stderr
    assert done.stderr.count("\n") == 1
