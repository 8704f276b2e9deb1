"""A golden mission at its place, in the hands of today's harness."""

from __future__ import annotations

import fcntl
import json
import shutil
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.missions import Done, House, surroundings

PLACE = Path("/tmp/golden")  # prompts and `bin/harness` contain this path


@pytest.fixture
def place() -> Iterator[None]:
    """One test at a time on this machine: the folder has a fixed name."""
    with open("/tmp/golden.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Golden(House):
    """A mission as an older harness left it."""

    def __init__(self, name: str, archives: Path) -> None:
        top = PLACE / name
        shutil.rmtree(top, ignore_errors=True)
        top.mkdir(parents=True)
        with tarfile.open(archives / f"{name}.tar.gz") as archive:
            archive.extractall(top, filter="fully_trusted")  # ours, with absolute links
        env = surroundings(top)
        env |= {"HARNESS_IDENTITY": str(top / "identity"), "HARNESS_PYTHON": sys.executable, "HARNESS_CALLED": "run.sh"}
        super().__init__(top, env, "project")
        known = json.loads((self.state / "mission.json").read_text())["id"]
        (top / "state/harness" / known).mkdir(parents=True, exist_ok=True)  # as its trees were

    def start(self) -> Done:
        """The first step of run.sh."""
        return self.program("init", "--quietly")
