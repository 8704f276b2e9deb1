"""Landlock alone: a process that restricts itself, and what it starts, write in the given folders only."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.base import errors
from harness.process import confine, landlock, supervise
from harness.process.confine import LANDLOCK, Confinement, Glass

HARNESS = str(Path(landlock.__file__).parents[2])
ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
RESTRICTED = """import os, sys
from harness.process import landlock
landlock.restrict(sys.argv[2:])
os.execvp("bash", ["bash", "-c", sys.argv[1]])
"""

needs_landlock = pytest.mark.skipif(not landlock.abi(), reason="this kernel has no Landlock")


def restricted(script: str, writable: Sequence[Path]) -> tuple[int, str]:
    """Exit code and output of a script that a restricted process became."""
    words = [sys.executable, "-c", RESTRICTED, script, *map(str, writable)]
    done = subprocess.run(words, cwd=HARNESS, env=ENV, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@needs_landlock
def test_it_holds_for_what_the_program_starts(tmp_path: Path) -> None:
    """Also for a daemon in a session of its own, with an empty environment."""
    mine = tmp_path / "mine"
    mine.mkdir()
    restricted(f"setsid env -i bash -c 'echo x > {mine}/in; echo x > {tmp_path}/out' & wait", [mine])
    assert ((mine / "in").exists(), (tmp_path / "out").exists()) == (True, False)


@needs_landlock
def test_devices_stay_writable(tmp_path: Path) -> None:
    """Every program expects these to take what is written."""
    assert restricted("echo x > /dev/null && echo x > /dev/zero && : > /dev/shm/.", [tmp_path])[0] != 0
    assert restricted("echo x > /dev/null && echo x > /dev/zero", [tmp_path]) == (0, "")


@needs_landlock
def test_a_writable_folder_that_is_missing_gives_no_right(tmp_path: Path) -> None:
    """Neither to make it nor to write beside it."""
    assert restricted(f"mkdir {tmp_path}/later", [tmp_path / "later"])[0] != 0
    assert not (tmp_path / "later").exists()


@needs_landlock
def test_the_supervisor_stays_free(tmp_path: Path) -> None:
    """Only the guardian and the child are restricted, not the process that asked for it."""
    mine = tmp_path / "mine"
    mine.mkdir()
    confined = Confinement(glass=Glass(writable=[str(mine)]), tier=LANDLOCK)
    argv = ["bash", "-c", f"touch {mine}/in {tmp_path}/out"]
    ended = supervise.run(argv, cwd="/", env=ENV, wall_seconds=60, sink=lambda *_: None, confine=confined)
    (tmp_path / "ours").touch()
    assert (ended.exit, (mine / "in").exists(), (tmp_path / "out").exists()) == (1, True, False)


@needs_landlock
def test_what_is_hidden_is_read_only_where_it_is_readable_or_writable(tmp_path: Path) -> None:
    """Also by a link that leads there; the deepest path decides below what is readable. Everything else can be read."""
    names = ("home/secret", "home/tool/part", "home/tool/login", "home/mine/x", "beside/x")
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("seen\n")
    (tmp_path / "beside/link").symlink_to(tmp_path / "home/secret")
    glass = Glass(
        writable=[f"{tmp_path}/home/mine"],
        readable=[f"{tmp_path}/home/tool", f"{tmp_path}/home/gone"],
        hidden=[f"{tmp_path}/home", f"{tmp_path}/home/tool/login"],
    )
    said: list[bytes] = []
    script = f"for one in {' '.join(names)} beside/link; do grep -qs seen {tmp_path}/$one && echo $one; done"
    supervise.run(
        [
            "bash",
            "-c",
            script + f"; ls / {tmp_path}/home; ls {tmp_path}/home/tool; cat /etc/passwd >/dev/null && echo read",
        ],
        cwd="/",
        env=ENV,
        wall_seconds=60,
        sink=lambda _, chunk: said.append(chunk),
        confine=Confinement(glass=glass, tier=LANDLOCK),
    )
    lines = [line for line in b"".join(said).decode().splitlines() if not line.startswith("ls: ")]
    assert lines == ["home/tool/part", "home/mine/x", "beside/x", "login", "part", "read"]


def test_a_kernel_that_refuses_is_named(tmp_path: Path) -> None:
    """A descriptor that is no ruleset stands for a kernel without Landlock: the fault says what was refused."""
    with pytest.raises(errors.Unavailable, match=f"Landlock refuses {tmp_path}: "):
        landlock._allow(-1, str(tmp_path), landlock.WRITE_FILE)
    assert confine.LANDLOCK in confine.TIERS
