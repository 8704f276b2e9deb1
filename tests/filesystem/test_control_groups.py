"""Promises of harness/filesystem/_control_groups.py: a group that holds, or none; what they hold is in test_sandbox.py."""

from __future__ import annotations

import os
import subprocess

import pytest

from harness.filesystem import _control_groups


def test_a_group_has_a_process_and_goes_when_all_are_gone() -> None:
    """With the next one that is made, after its maker."""
    group = _control_groups.made("pids", 50)
    if not group:
        pytest.skip(reason="no control group can be made here")
    with subprocess.Popen(["sleep", "60"]) as child:
        _control_groups.join(group, child.pid)
        with open(f"{group}/cgroup.procs") as file:
            assert file.read().split() == [str(child.pid)]
        child.kill()
    old = f"{os.path.dirname(group)}/harness-4194305-0"  # of a process that cannot be there
    os.mkdir(old)
    os.rmdir(group)
    other = _control_groups.made("pids", 50)
    assert not os.path.exists(old)
    os.rmdir(other)


def test_where_none_can_be_made_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is left."""
    monkeypatch.setattr(_control_groups, "TOP", "/proc")
    assert _control_groups.made("memory", 10**9) == ""
