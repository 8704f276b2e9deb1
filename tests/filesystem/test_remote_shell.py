"""Promises of harness/filesystem/_remote_shell.py: both contracts behind a command, and what happens when the line is cut."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import Unavailable
from harness.filesystem import _remote_server
from harness.filesystem._remote_shell import RemoteConnection, RemoteShell
from harness.filesystem.protocol import CommandResult, FileFault, Filesystem, Shell
from harness.filesystem.transfer import upload
from tests.filesystem.contract import Contract, ShellContract, change, content, lasting, names, runs, waited, written
from tests.filesystem.places import behind, ssh
from tests.missions import CHECKOUT


class TestRemoteFiles(Contract):
    """The files of another process."""

    def made(self, tmp_path: Path) -> Filesystem:
        """In a folder of this machine."""
        return RemoteShell(behind("env"), str(tmp_path))


class TestRemoteShell(ShellContract):
    """Its commands."""

    def made(self, tmp_path: Path) -> RemoteShell:
        """In a folder of this machine."""
        return RemoteShell(behind("env"), str(tmp_path))

    def test_a_shell_can_be_given_an_environment_and_be_refused(self, files: Any) -> None:
        """No: its commands run elsewhere."""
        assert files.confined(None, {"A": "b"}, "no") is files


class TestOverSsh(TestRemoteShell):
    """The same behind a login."""

    def made(self, tmp_path: Path) -> RemoteShell:
        """In a folder of this machine."""
        return RemoteShell(behind(*ssh()), str(tmp_path))


class Counting(RemoteConnection):
    """A connection that counts its calls."""

    calls = 0

    def call(self, *given: Any, **more: Any) -> Any:
        """As any connection."""
        self.calls += 1
        return super().call(*given, **more)


def test_each_verb_is_one_round_trip_and_brings_what_was_asked_for(tmp_path: Path) -> None:
    """However large the folder or file is."""
    connection = Counting(["env"])
    files = RemoteShell(connection, str(tmp_path))
    assert (isinstance(files, Filesystem), isinstance(files, Shell), files.folder()) == (True, True, "")
    upload(files, {"d/a": b"x\n", "big": b"".join(b"line %d\n" % number for number in range(500_000))})
    verbs: list[Any] = [
        lambda: files.ls("d"),
        lambda: files.read("big", 400_000, 100),
        lambda: files.write("n/e/w", b""),
    ]
    verbs += [lambda: files.edit("d/a", [change("x", "y")]), lambda: files.grep("line 7$"), lambda: files.glob("**")]
    verbs += [
        lambda: files.stat("d"),
        lambda: files.mkdir("m"),
        lambda: files.move("d/a", "d/b"),
        lambda: files.delete("d"),
    ]
    for verb in [*verbs, lambda: files.resolve("x/../y"), lambda: files.execute(":")]:
        before = connection.calls
        assert not isinstance(verb(), FileFault)
        assert connection.calls == before + 1
    assert len(content(files.read("big", 400_000, 100)).data) == 1200
    connection.close()


def test_a_long_command_keeps_nobody_waiting(tmp_path: Path) -> None:
    """Several threads use one connection; each gets its own answer."""
    files, ended = RemoteShell(behind("env"), str(tmp_path)), threading.Event()
    results = list[Any]()
    thread = threading.Thread(target=lambda: results.append(files.execute("sleep 60", stop=ended.is_set)))
    thread.start()
    upload(files, {f"f{number}": b"%d" % number for number in range(20)})
    assert [content(files.read(f"f{number}")).data for number in range(20)] == [b"%d" % number for number in range(20)]
    ended.set()
    thread.join(60)
    assert results[0].cause == "cancelled"


@pytest.mark.parametrize(
    ("prefix", "python", "words"),
    [
        (["/no/such/program"], "python3", "No such file"),
        (["env"], "no-python", "no-python"),
        (["sh", "-c", "echo refused >&2; exit 255"], "python3", "refused"),
    ],
)
def test_what_cannot_be_reached_is_said_by_its_own_words(prefix: list[str], python: str, words: str) -> None:
    """The program is missing, the other side lacks Python, the login is refused."""
    with pytest.raises(Unavailable, match=words):
        RemoteShell(RemoteConnection(prefix, python=python), "/tmp").ls()


def test_what_a_login_prints_is_no_answer(tmp_path: Path) -> None:
    """A greeting before the shell, of any length."""
    connection = RemoteConnection(["sh", "-c", 'seq 20000; printf "\\0\\0"; exec "$@"', "sh"])
    written(RemoteShell(connection, str(tmp_path)).write("f", b"x"))
    connection.close()


def test_no_key_of_this_process_gets_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where the command runs on this machine."""
    monkeypatch.setenv("OPENAI_API_KEY", "leaked")
    connection = RemoteConnection(["env"])
    found = RemoteShell(connection, str(tmp_path)).execute("env")
    assert isinstance(found, CommandResult)
    assert b"leaked" not in found.output
    connection.close()


CLIENT = """import sys, time
from harness.filesystem._remote_shell import RemoteConnection, RemoteShell
shell = RemoteShell(RemoteConnection(sys.argv[1:-2]), sys.argv[-2])
shell.start(sys.argv[-1])
print(shell.execute("echo $PPID").output.decode(), flush=True)
shell.execute("touch on; " + sys.argv[-1])
"""


@pytest.mark.parametrize("over_ssh", [False, True])
def test_a_killed_client_leaves_nothing_there(tmp_path: Path, over_ssh: bool) -> None:
    """Its commands, in the background too, end within seconds."""
    left = lasting()
    words = [sys.executable, "-c", CLIENT, *(ssh() if over_ssh else ("env",)), str(tmp_path), left]
    client = subprocess.Popen(words, cwd=CHECKOUT, stdout=subprocess.PIPE)
    assert waited((tmp_path / "on").exists)
    assert runs(left)
    client.kill()
    client.communicate()
    assert waited(lambda: not runs(left))


def test_a_line_that_is_cut_ends_the_other_side_and_the_next_call_begins_anew(tmp_path: Path) -> None:
    """Nothing arrives for 8 s: both sides take the other to be gone, and what was under way is said to be unknown."""
    connection, left = RemoteConnection(["env"]), lasting()
    files = RemoteShell(connection, str(tmp_path))
    job = files.start(left)
    assert not isinstance(job, FileFault)
    assert waited(lambda: runs(left))
    link: Any = connection._link
    os.kill(link.child.pid, signal.SIGSTOP)
    begun = time.monotonic()
    with pytest.raises(Unavailable, match="may have been carried out"):
        files.execute("sleep 60")
    assert waited(lambda: not runs(left))
    assert 7 < time.monotonic() - begun < 55
    assert job.cancel().cause == "cancelled"
    assert names(files.ls()) == []
    connection.close()


def test_the_server_carries_out_verbs_of_its_list_alone(tmp_path: Path) -> None:
    """Whatever name is sent."""
    with pytest.raises(Unavailable, match="no verb child"):
        behind("env").call(str(tmp_path), "child", "true")
    assert set(_remote_server.FILES) <= set(dir(Filesystem))
