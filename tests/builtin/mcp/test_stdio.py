"""A server that is a program: where and with what it runs, what it may touch, and that nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.builtin.mcp import server_pool
from harness.builtin.mcp.exposed_tools import ExposedTools
from harness.process.confine import BUBBLEWRAP, Confinement, Glass, available
from tests.builtin.mcp.serving import SERVED, called, ours, where
from tests.missions import CHECKOUT, until


def lives(pid: int) -> bool:
    """Whether this process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it ended before, or between opening and reading
        return False


def test_it_has_its_own_variables_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of its definition, with `${NAME}` put in, and those of commands; it runs in the folder."""
    monkeypatch.setenv("SECRET_OF_THE_LOOP", "x")
    offer = ExposedTools([ours(env={"MINE": "a-${GIVEN}"})], where(tmp_path, {"GIVEN": "b"}))
    assert called(offer, "own_look", name="MINE").text == f"MINE is a-b, in {tmp_path}"
    assert "not set" in called(offer, "own_look", name="SECRET_OF_THE_LOOP").text


def test_what_it_started_ends_with_it(tmp_path: Path) -> None:
    """Also a process that it left."""
    offer = ExposedTools([ours()], where(tmp_path))
    pid = int(called(offer, "own_child").text)
    assert lives(pid)
    server_pool.shared().close()
    assert not lives(pid)


def test_nothing_of_it_outlives_a_kill_of_the_process_that_uses_it(tmp_path: Path) -> None:
    """`kill -9`: its guardian sees that."""
    program = (
        "import sys, time\n"
        f"sys.path.insert(0, {str(CHECKOUT)!r})\n"
        "from pathlib import Path\n"
        "from harness.builtin.mcp.exposed_tools import ExposedTools\n"
        "from tests.builtin.mcp.serving import called, ours, where\n"
        "offer = ExposedTools([ours()], where(Path(sys.argv[1])))\n"
        "print(called(offer, 'own_child').text, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True) as user:
        assert user.stdout is not None
        pid = int(user.stdout.readline())
        assert lives(pid)
        os.kill(user.pid, signal.SIGKILL)
    until(lambda: not lives(pid))


@pytest.mark.skipif(available() != BUBBLEWRAP, reason="bubblewrap does not work here")
def test_it_is_confined_as_commands_are(tmp_path: Path) -> None:
    """It writes where the run may, and nowhere else."""
    tree, other = tmp_path / "tree", tmp_path / "other"
    for made in (tree, other):
        made.mkdir()
    glass = Glass(writable=[str(tree)], readable=[str(tmp_path), str(Path(SERVED).parents[2]), sys.prefix])
    offer = ExposedTools([ours()], where(tree, confinement=Confinement(glass=glass, tier=BUBBLEWRAP)))
    assert offer.faults == []
    assert called(offer, "own_write", path="in.txt", text="x").text == "written"
    assert called(offer, "own_write", path=str(other / "out.txt"), text="x").failed
    assert (tree / "in.txt").exists() and not (other / "out.txt").exists()
