"""`make demo-team` shows what it says it shows, on servers and on disk, and ends by itself."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.missions import CHECKOUT
from tests.stores.conftest import skip_without

pytest.importorskip("pydantic_ai", reason="the built-in agent's packages are not installed: make setup")

DEMO = [sys.executable, str(CHECKOUT / "examples/demo_team.py")]
ALL = ["all", "7", "1", "1", "2", "1"]  # accepted, merged, conflict, refused, quarantined


@pytest.mark.parametrize("variant", ["SQLITE", "servers"])
def test_the_demo_of_a_team_holds(variant: str) -> None:
    """Every row of the table holds, and each outcome has its number."""
    for name in ("postgres", "s3") if variant == "servers" else ():
        skip_without(name)
    env = os.environ | ({"SQLITE": "1"} if variant == "SQLITE" else {})
    done = subprocess.run(DEMO, cwd=CHECKOUT, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    rows = done.stdout.splitlines()
    assert ALL in [row.split() for row in rows]
    assert sum(row.endswith(" yes") for row in rows) == 12


def test_where_a_server_is_missing_it_says_what_to_install() -> None:
    """One line, and the exit code of something that is not there."""
    env = {"PATH": "/nowhere", "HOME": "/nowhere"}
    done = subprocess.run(DEMO, cwd=CHECKOUT, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (69, "")
    assert "apt install postgresql" in done.stderr and "SQLITE=1 make demo-team" in done.stderr
    assert done.stderr.count("\n") == 1
