"""Promises of harness/filesystem/sandbox.py: the contract of commands inside, and what they cannot see, change or use up."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import Unavailable
from harness.filesystem import _control_groups
from harness.filesystem._remote_shell import RemoteShell
from harness.filesystem.protocol import CommandResult
from harness.filesystem.sandbox import sandbox
from harness.process import confine
from tests.filesystem.contract import ShellContract, content, written
from tests.filesystem.places import NO_BUBBLEWRAP, in_sandbox

pytestmark = pytest.mark.skipif(confine.available() != confine.BUBBLEWRAP, reason=NO_BUBBLEWRAP)


class TestSandbox(ShellContract):
    """Commands in a sandbox."""

    def made(self, tmp_path: Path) -> RemoteShell:
        """In a folder of it."""
        return in_sandbox(tmp_path)

    def test_a_shell_can_be_given_an_environment_and_be_refused(self, files: Any) -> None:
        """No: its commands are confined already."""
        assert files.confined(None, {"A": "b"}, "no") is files


def said(shell: RemoteShell, command: str) -> str:
    """What a command prints."""
    found = shell.execute(command, seconds=30)
    assert isinstance(found, CommandResult), found
    return found.output.decode()


def test_it_sees_its_folder_and_the_programs_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file, process or variable of the host besides; only its folder and the temporary ones can be written."""
    monkeypatch.setenv("ANYTHING", "leaked")
    (tmp_path / "mine").mkdir()
    (tmp_path / "other").write_text("x")
    shell = sandbox(str(tmp_path / "mine"))
    written(shell.write("f", b"in\n"))
    assert (tmp_path / "mine/f").read_text() == "in\n"
    assert said(shell, f"cat f; pwd; ls {tmp_path}; ls /home /root /sys /work 2>&1 | grep -vc cannot").startswith(
        "in\n/workspace\n"
    )
    assert "leaked" not in said(shell, "env; cat /proc/*/environ")
    assert said(shell, f"ps -A -o pid= | grep -c {os.getpid()}") == "0\n"
    for place in ("/x", "/usr/x", "/etc/x", "/proc/sys/kernel/core_pattern"):
        assert "Read-only" in said(shell, f"echo x > {place}")
    assert said(shell, "touch /tmp/x /workspace/y && ls /tmp") == "x\n"
    shell.connection.close()
    assert said(shell, "ls /tmp; ls") == "f\ny\n"
    shell.connection.close()


@pytest.mark.parametrize("network", [True, "loopback", False])
def test_the_network_is_as_configured(tmp_path: Path, network: bool | str) -> None:
    """The host's, or a loopback of its own, on which its commands reach each other."""
    shell = sandbox(str(tmp_path), network=network)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert ("open" in said(shell, f"(: < /dev/tcp/127.0.0.1/{port}) && echo open")) == (network is True)
    job = shell.start("python3 -m http.server 8765 2>/dev/null")
    reached = said(shell, "until (: < /dev/tcp/127.0.0.1/8765) 2>/dev/null; do sleep 0.1; done; echo reached")
    assert (reached, job is not None) == ("reached\n", True)
    shell.connection.close()


BOMB = """import os, time
count = 0
try:
    while os.fork() or time.sleep(60): count += 1
except OSError: print(count)"""


@pytest.mark.parametrize("groups", [True, False])
def test_limits_hold(tmp_path: Path, groups: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By control groups, or without them: memory, what is in /tmp included; processor time; processes. The sandbox goes on."""
    if not groups:
        monkeypatch.setattr(_control_groups, "TOP", "/nowhere")
    shell = sandbox(str(tmp_path), memory_bytes=512 * 2**20)
    grouped = bool(shell.connection.groups)
    assert ("Killed" if grouped else "MemoryError") in said(shell, "python3 -c 'bytearray(2**30)'; echo")
    if grouped:
        with suppress(Unavailable):  # what fills /tmp may end the sandbox, which begins anew
            assert "whole" not in said(shell, "head -c 800000000 /dev/zero > /tmp/x && echo whole")
    written(shell.write("f", b"still here"))
    shell.connection.close()
    shell = sandbox(str(tmp_path), cpu_seconds=1, processes=400)
    found = shell.execute("while :; do :; done", seconds=60)
    assert isinstance(found, CommandResult)
    assert (found.exit, found.seconds < 30) == (-9, True)
    assert "cannot" in said(shell, "ulimit -t 100 2>&1")
    assert 300 < int(said(shell, f"python3 -c '{BOMB}'")) < 400
    assert content(shell.read("f")).data == b"still here"
    shell.connection.close()
