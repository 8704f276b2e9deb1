"""Promises of harness/filesystem/shell.py: the contract of files and of commands, and what an environment holds."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from harness.base.errors import Unavailable
from harness.filesystem.protocol import CommandResult
from harness.filesystem.shell import LocalShell
from harness.process import confine
from harness.process.confine import Confinement, Glass
from tests.filesystem.contract import Contract, ShellContract, content, written
from tests.filesystem.delegating import DelegatingShell


class TestLocalShell(ShellContract):
    """A folder of this machine, with its shell."""

    def made(self, tmp_path: Path) -> LocalShell:
        """Not confined."""
        return LocalShell(str(tmp_path), grace_seconds=0.2)


class TestDelegatingShell(ShellContract):
    """The same behind a class of a user's own."""

    def made(self, tmp_path: Path) -> DelegatingShell:
        """Not confined."""
        return DelegatingShell(LocalShell(str(tmp_path), grace_seconds=0.2))


def output(files: LocalShell, command: str) -> str:
    """What a command says."""
    answer = files.execute(command)
    assert isinstance(answer, CommandResult), answer
    return answer.output.decode()


def test_it_is_a_local_filesystem_too() -> None:
    """The contract of files holds by inheritance; none of its verbs is another's."""
    verbs = [name for name in vars(Contract) if name in vars(LocalShell) and name[0] != "_"]
    assert verbs == []


def test_a_command_gets_no_key_of_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what passes to programs of a run, and what is set for a command that nobody watches."""
    for name in ("OPENAI_API_KEY", "MY_TOKEN", "SECRET", "ANYTHING", "LD_PRELOAD", "BASH_ENV", "SSH_AUTH_SOCK"):
        monkeypatch.setenv(name, "leaked")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    said = output(LocalShell(str(tmp_path)), "env")
    assert "leaked" not in said
    names = {line.partition("=")[0] for line in said.splitlines()}
    assert {"PATH", "LC_ALL", "PAGER", "PWD"} <= names
    assert (
        output(LocalShell(str(tmp_path), environment={"PATH": os.environ["PATH"], "ONLY": "this"}), "echo $ONLY$HOME")
        == "this\n"
    )


def test_a_machine_without_a_shell_is_no_fault_of_the_model(tmp_path: Path) -> None:
    """It is raised, for a person."""
    with pytest.raises(Unavailable, match="bash"):
        LocalShell(str(tmp_path), environment={"PATH": str(tmp_path)}).execute("true")


@pytest.mark.skipif(confine.available() != confine.BUBBLEWRAP, reason="needs bubblewrap")
def test_a_confined_command_writes_in_the_root_and_nowhere_else(tmp_path: Path) -> None:
    """Where the glass lets it; the path by which it sees the root means the root."""
    (tmp_path / "root").mkdir()
    (tmp_path / "other").mkdir()
    glass = Glass(writable=[str(tmp_path / "root")], readable=[str(tmp_path / "other")])
    files = LocalShell(str(tmp_path / "root"), confine=Confinement(glass=glass, tier=confine.BUBBLEWRAP))
    said = output(files, f"echo in > f; pwd; echo out > {tmp_path}/other/f")
    assert said.startswith(f"{tmp_path}/root\n")
    assert "Read-only" in said
    assert os.listdir(tmp_path / "other") == []
    assert content(files.read(f"{tmp_path}/root/f")).data == b"in\n"


def test_a_folder_that_is_a_link_is_entered_where_it_leads(tmp_path: Path) -> None:
    """Beneath the root."""
    files = LocalShell(str(tmp_path))
    written(files.write("d/e/f", b"x"))
    (tmp_path / "l").symlink_to("d/e")
    answer = files.execute("ls; pwd -P; echo $PWD", folder="l")
    assert isinstance(answer, CommandResult)
    assert answer.output.decode() == f"f\n{tmp_path}/d/e\n{tmp_path}/d/e\n"


def test_a_job_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    """Also if that process is killed: no other one can ask for it."""
    from tests import crash

    def start_and_die() -> None:
        LocalShell(str(tmp_path)).start("echo $$ > pid; sleep 7165.5 & wait")
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            time.sleep(0.01)
        os.kill(os.getpid(), 9)

    assert crash.in_child(start_and_die) == -9
    pid, until = int((tmp_path / "pid").read_text()), time.monotonic() + 60
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < until:
        time.sleep(0.02)
    assert not os.path.exists(f"/proc/{pid}")
