"""Promises of harness/process/spawn.py: a program gets exactly what the caller passes, and a fault names it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.base import errors
from harness.process import spawn, tree


def python(script: str) -> list[str]:
    """The command line of a small Python program."""
    return [sys.executable, "-I", "-S", "-c", script]


def test_five_megabytes_in_and_out_do_not_deadlock() -> None:
    """A program that answers while it still reads."""
    words = os.urandom(5_000_000)
    assert spawn.capture(["cat"], cwd="/", stdin=words) == (0, words, b"")


def test_a_program_that_does_not_read_its_input_is_no_error() -> None:
    """It closes the pipe early, and we stop writing."""
    assert spawn.capture(["sh", "-c", "exec <&-; echo done"], cwd="/", stdin=bytes(5_000_000)) == (0, b"done\n", b"")


def test_exit_codes_signals_and_both_streams_are_distinguished() -> None:
    """A signal is negative."""
    assert spawn.capture(["sh", "-c", "echo out; echo err >&2; exit 7"], cwd="/") == (7, b"out\n", b"err\n")
    assert spawn.capture(["sh", "-c", "kill -9 $$"], cwd="/")[0] == -signal.SIGKILL


def test_the_program_runs_in_its_folder_with_its_environment(tmp_path: Path) -> None:
    """The given PATH decides; our own folder does not change."""
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n/bin/pwd\necho $WORD\ncat\n")
    tool.chmod(0o755)
    here = os.getcwd()
    code, out, _ = spawn.capture(["tool"], cwd=str(tmp_path), env={"PATH": f"/nowhere:{tmp_path}:/bin", "WORD": "yes"})
    assert (code, out) == (0, f"{tmp_path}\nyes\n".encode())
    assert os.getcwd() == here


def test_a_missing_program_or_folder_is_named_and_nothing_leaks(tmp_path: Path) -> None:
    """Unavailable, exit 69."""
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(errors.Unavailable, match="no-such-program cannot be started"):
        spawn.capture(["no-such-program"], cwd="/", stdin=b"words")
    with pytest.raises(errors.Unavailable, match="in the folder"):
        spawn.capture(["true"], cwd=str(tmp_path / "gone"))
    with pytest.raises(errors.Unavailable, match="null byte"):
        spawn.capture(["echo", "a\0b"], cwd="/")
    with pytest.raises(errors.Unavailable, match="Permission denied"):
        spawn.capture([str(tmp_path)], cwd="/")
    assert set(os.listdir("/proc/self/fd")) == before


def test_a_program_can_hold_a_few_bytes_that_it_reads_to_their_end() -> None:
    """In a descriptor above the standard streams, without a file."""
    held = spawn.filled_pipe(b"4096")
    code, out, _ = spawn.capture(["sh", "-c", f"cat /dev/fd/{spawn.HELD_FROM}"], cwd="/", keep=[held])
    os.close(held)
    assert (code, out) == (0, b"4096")


def test_what_a_program_holds_may_have_any_numbers_here() -> None:
    """Also those that it has there, in another order, as in a process with many files open."""
    first, second = (spawn.filled_pipe(text) for text in (b"first ", b"second"))
    taken = {spawn.HELD_FROM + 1: first, spawn.HELD_FROM: second}
    for number, fd in taken.items():
        os.dup2(fd, number, inheritable=False)
    words = [f"cat /dev/fd/{spawn.HELD_FROM} /dev/fd/{spawn.HELD_FROM + 1}"]
    code, out, _ = spawn.capture(["sh", "-c", *words], cwd="/", keep=[*taken])
    spawn.close((first, second, *taken))
    assert (code, out) == (0, b"first second")


def test_a_fault_names_the_program_that_a_launcher_was_to_start(tmp_path: Path) -> None:
    """Nobody looks for a launcher that he did not ask for."""
    missing = str(tmp_path / "input")
    with pytest.raises(errors.Unavailable, match=f"^agent cannot be started with the input {missing}: "):
        spawn.start(["true"], cwd="/", env=os.environ, stdin=missing, stdout=1, stderr=2, called="agent")


def test_a_daemon_that_keeps_the_streams_open_does_not_block_us() -> None:
    """Git leaves such daemons; the exit of the program ends the call."""
    code, out, _ = spawn.capture(["sh", "-c", "setsid sleep 600 & echo $!"], cwd="/")
    os.kill(int(out), signal.SIGKILL)
    assert code == 0


def test_what_a_program_leaves_in_its_group_is_ended() -> None:
    """A filter's helper in the background does not outlive the call."""
    code, out, _ = spawn.capture(["sh", "-c", "sleep 30 & echo $!"], cwd="/")
    assert code == 0
    assert gone(int(out))


def gone(pid: int) -> bool:
    """Whether the process ends soon: SIGKILL was sent, the kernel takes a moment."""
    until = time.monotonic() + 60
    while (tree.stat(pid) or [b"Z"])[0] != b"Z" and time.monotonic() < until:
        time.sleep(0.01)
    return (tree.stat(pid) or [b"Z"])[0] == b"Z"


def test_a_program_that_hangs_is_ended_with_what_it_started() -> None:
    """The limit is the caller's; one that ignores TERM is killed."""
    before = set(tree.descendants(os.getpid()))
    with pytest.raises(TimeoutError):
        spawn.capture(["sh", "-c", "trap '' TERM; sleep 600 & sleep 600"], cwd="/", wall_seconds=0.2)
    assert all(gone(pid) for pid in set(tree.descendants(os.getpid())) - before)
    assert spawn.capture(["sh", "-c", "sleep 0.1; echo out"], cwd="/", wall_seconds=20.0)[1] == b"out\n"


def test_an_interrupt_ends_the_program_and_waits_for_it() -> None:
    """An interrupted git removes its lock files first."""

    def handler(signum: int, _: object) -> None:
        raise errors.Interruption(signum)

    before, family = signal.signal(signal.SIGALRM, handler), set(tree.descendants(os.getpid()))
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(errors.Interruption):
            spawn.capture(["sleep", "60"], cwd="/")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert all(gone(pid) for pid in set(tree.descendants(os.getpid())) - family)


def test_the_program_gets_default_signals_and_no_foreign_descriptor() -> None:
    """No ignored SIGPIPE, as Python sets it, and no descriptor that a shell opened for us."""
    lock = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(lock, True)
    out = spawn.capture(["grep", "-E", "SigIgn|SigBlk", "/proc/self/status"], cwd="/")[1]
    standard = (1 << 31) - 1  # without 32 and 33, which belong to the C library
    assert [int(line.split()[1], 16) & standard for line in out.split(b"\n") if line] == [0, 0]
    listing = spawn.capture(python("import os; print(os.listdir('/proc/self/fd'))"), cwd="/")[1]
    os.close(lock)
    assert listing == b"['0', '1', '2', '3']\n", "3 is the listing itself"


def test_it_works_while_our_own_standard_streams_are_closed() -> None:
    """Some cron daemons and scripts start us that way."""
    root = str(Path(__file__).resolve().parents[2])
    script = (
        f"import os, sys; sys.path.insert(0, {root!r}); from harness.process import supervise\n"
        "ok = supervise.capture(['cat'], cwd='/', stdin=b'hi') == (0, b'hi', b'')\n"
        "got = []\n"
        "supervise.run(['cat', '/dev/stdin'], cwd='/', env=dict(os.environ), wall_seconds=60, sink=lambda *c: got.append(c))\n"
        "ended = supervise.run(['sh', '-c', 'echo a; echo b >&2'], cwd='/', env=dict(os.environ), wall_seconds=60,\n"
        "                    merge=False, sink=lambda *c: got.append(c))\n"
        "sys.exit(40 + ok + (sorted(got) == [('stderr', b'b\\n'), ('stdout', b'a\\n')]))\n"
    )
    argv = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", script]
    assert subprocess.run(argv, check=False).returncode == 42


def test_neither_programs_nor_libraries_come_from_relative_folders() -> None:
    """An empty part of such a variable is the folder in which a program starts."""
    assert spawn.outside(":.:bin:/usr/bin:/a/tree/bin:/a/trees:", ["/a/tree"]) == "/usr/bin:/a/trees"
