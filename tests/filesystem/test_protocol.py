"""Promises of harness/filesystem/protocol.py: our backends are what the interface says."""

from __future__ import annotations

from pathlib import Path

from harness.filesystem.local import Local
from harness.filesystem.protocol import FAULTS, FileFault, Filesystem, LocalFolder, Shell
from harness.filesystem.shell import LocalShell


def test_only_what_runs_commands_is_a_shell(tmp_path: Path) -> None:
    """So a tool can ask by isinstance whether there may be an `execute`."""
    plain, shell = Local(str(tmp_path)), LocalShell(str(tmp_path))
    assert isinstance(plain, Filesystem)
    assert isinstance(plain, LocalFolder)
    assert not isinstance(plain, Shell)
    assert isinstance(shell, Filesystem)
    assert isinstance(shell, Shell)


def test_every_fault_is_of_a_kind_that_the_interface_explains(tmp_path: Path) -> None:
    """And it names the path as it was asked for."""
    answer = Local(str(tmp_path)).read("./no//such")
    assert isinstance(answer, FileFault)
    assert answer.kind in FAULTS
    assert (answer.path, "./no//such" in answer.text) == ("./no//such", True)


def test_a_shell_need_not_have_files() -> None:
    """They are two capabilities: whoever needs both asks for both."""
    assert {name for name in dir(Shell) if name[0] != "_"} == {"id", "folder", "confined", "execute", "start"}
    assert not {name for name in dir(Shell) if name[0] != "_"} & {name for name in dir(Filesystem) if name[0] != "_"}
