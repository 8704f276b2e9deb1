"""`make demo-machines` shows what it says it shows, and ends by itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness.process import confine
from tests.missions import CHECKOUT

DEMO = [sys.executable, str(CHECKOUT / "examples/demo_machines.py")]


def test_a_mission_on_three_workers_is_done_although_one_is_killed() -> None:
    """Every row of the table holds, within two minutes; one row is a run that is lost, and one that is done again."""
    pytest.importorskip("distributed", reason="Dask is not installed: make setup")
    if confine.available() != confine.BUBBLEWRAP:
        pytest.skip("bubblewrap is not installed, or may not be used here")
    done = subprocess.run(DEMO, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = done.stdout.splitlines()
    assert sum(row.endswith(" yes") for row in rows) == 7
    assert (
        sorted(row.split()[-1] for row in rows if row.endswith((" built", " built again"))) == ["again"] + ["built"] * 7
    )
    assert sum("lost with worker-2" in row for row in rows) == 1


def test_where_something_is_missing_it_says_what_to_install() -> None:
    """One line, and the exit code of something that is not there."""
    done = subprocess.run(DEMO, env={"PATH": "/nowhere"}, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (69, "")
    assert "apt install bubblewrap" in done.stderr and done.stderr.count("\n") == 1
