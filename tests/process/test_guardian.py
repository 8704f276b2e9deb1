"""The guardian alone, when its supervisor fails; test_supervise.py tests them together."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from harness.process import _guardian, spawn, tree

ADVERSARY = [sys.executable, "-I", "-S", str(Path(__file__).parents[1] / "adversary.py")]
ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C"}


def test_the_tree_ends_though_the_supervisor_died_before_it_received_the_start(tmp_path: Path) -> None:
    """The guardian cannot report, and ends the tree all the same (found by random kill -9)."""
    tag, folder = f"test-{os.getpid()}-{tmp_path.name}", str(tmp_path)
    plan = _guardian.GuardianPlan(
        name=ADVERSARY[0],
        argv=[*ADVERSARY, "spawn", folder, "stay"],
        cwd="/",
        env=ENV | {tree.TAG: tag},
        stdin=os.devnull,
        merge=True,
        keep=(),
        grace_seconds=0.0,
    )
    (control, order), (supervisor_end, report), (out, out_end) = spawn.pipe(), spawn.pipe(), spawn.pipe()
    os.close(supervisor_end)
    with spawn.SignalsBlocked():
        pid = spawn.fork(lambda: _guardian.Guardian(plan, control, report).guard(out_end, out_end))
    spawn.close((control, order, report, out, out_end))
    os.waitpid(pid, 0)
    assert tree.sweep(tag) == []
