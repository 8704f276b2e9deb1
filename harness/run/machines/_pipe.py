"""The pipe to a machine: frames out and in. Its transport is a command such as `ssh build2`; an empty one is this machine,
and `_dask.py` leads to a worker of Dask."""

from __future__ import annotations

import os
import select
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any, Protocol

import harness
from harness.base import frames
from harness.base.errors import HarnessError, MachineGone
from harness.mission import machine_table
from harness.process import spawn, supervise
from harness.run.machines import _pump
from harness.workplace import environment

BEAT = "HARNESS_BEAT_SECONDS"  # variable: seconds between pings, unless 5
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(harness.__file__)), "__main__.py")
TO_DASK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_dask.py")
SAID_CHARS = 300
END_BEATS = 2  # until the command is ended


def beat() -> float:
    """The seconds between two pings."""
    try:
        return float(os.environ.get(BEAT, ""))
    except ValueError:
        return _pump.BEAT_SECONDS


def command_of(table: dict[str, Any]) -> list[str]:
    """The words before those of the harness there: a machine's `command`, or the program that leads to a worker of Dask."""
    if address := str(table.get("address", "")):
        return [sys.executable, "-P", TO_DASK, address.removeprefix(machine_table.DASK)]
    return list(table.get("command", []))


class Pipe(Protocol):
    """Frames to a machine and from it."""

    def send(self, frame: dict[str, Any]) -> None:
        """Send a value with bytes in it; raises MachineGone."""

    def receive(self, seconds: float) -> dict[str, Any] | None:
        """The next value; None if none comes within these seconds. Raises MachineGone once the machine is gone."""

    def close(self) -> None:
        """End the other side, and everything that it started."""


class CommandPipe:
    """The pipe through `command`, to which the words of the harness there are added. It ends with this process."""

    def __init__(self, name: str, command: Sequence[str], program: str) -> None:
        self.name, self.buffer, self.found = name, bytearray(), list[bytes]()
        here = [sys.executable, "-P", PROGRAM]
        words = [*(shlex.split(program) if command else here), "machine", "--beat", str(beat())]
        self.said = os.memfd_create("said") if hasattr(os, "memfd_create") else os.open(os.devnull, os.O_RDWR)
        down, self.writing = spawn.pipe()
        self.reading, up = spawn.pipe()
        relay = _Relay([*command, *words], (down, up), self.said)
        with spawn.SignalsBlocked():
            self.pid = supervise.fork_spared(relay.run)
        spawn.close((down, up))

    def send(self, frame: dict[str, Any]) -> None:
        """Send a value with bytes in it; raises MachineGone."""
        left = memoryview(frames.packed(frame))
        try:
            while left:
                left = left[os.write(self.writing, left) :]
        except OSError:
            raise self.gone() from None

    def receive(self, seconds: float) -> dict[str, Any] | None:
        """The next value; None if none comes within these seconds. Raises MachineGone once the machine is gone."""
        until = time.monotonic() + seconds
        while not self.found:
            if not select.select([self.reading], [], [], max(0.0, until - time.monotonic()))[0]:
                return None
            if not (data := os.read(self.reading, 1 << 20)):
                raise self.gone()
            self.buffer += data
            self.found = frames.split(self.buffer)
        try:
            return dict(frames.value(self.found.pop(0)))
        except (ValueError, TypeError, KeyError) as fault:
            raise MachineGone(f"{self.name} sent what is no frame: {fault}") from None

    def gone(self) -> MachineGone:
        """The fault that the machine is gone, with the last words of the command."""
        said = os.pread(self.said, SAID_CHARS, max(0, os.fstat(self.said).st_size - SAID_CHARS))
        words = " ".join(said.decode("utf-8", "replace").split())
        return MachineGone(f"the machine {self.name} is gone" + (f": {words}" if words else ""))

    def close(self) -> None:
        """End the other side, and everything that it started."""
        if self.pid:
            with spawn.SignalsBlocked():
                spawn.close((self.reading, self.writing))
                os.waitpid(self.pid, 0)
                supervise.unspare(self.pid)
                self.pid = 0
            os.close(self.said)


class _Relay:
    """The process between a run and the command: it pumps, and ends the command with the run."""

    def __init__(self, words: list[str], near: tuple[int, int], said: int) -> None:
        self.words, self.near, self.said = words, near, said

    def run(self) -> None:
        """Pump until a side is gone; ends the process."""
        supervise.end_with_parent(0)
        os.setsid()  # Ctrl-C is for the run, which then closes the pipe
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN if number in (signal.SIGINT, signal.SIGPIPE) else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        spawn.close_all_but({0, 1, 2, *self.near, self.said})
        there, writing = spawn.pipe()
        reading, here = spawn.pipe()
        env = environment.of_person(os.environ)
        try:
            pid = spawn.start(self.words, cwd="/", env=env, stdin=there, stdout=here, stderr=self.said, session=True)
        except (HarnessError, OSError) as fault:
            os.write(self.said, str(fault).encode())
            os._exit(1)
        spawn.close((there, here))
        _pump.Pump(self.near, (reading, writing), beat()).run()
        spawn.close((reading, writing))
        _end(pid, END_BEATS * beat())
        os._exit(0)


def _end(pid: int, seconds: float) -> None:
    """Wait for the command, whose input has ended; then end it."""
    until = time.monotonic() + seconds
    while not os.waitpid(pid, os.WNOHANG)[0]:
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            until += seconds
        time.sleep(0.01)
