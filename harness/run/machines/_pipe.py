"""The pipe to a machine, over a command such as `ssh build2`. Without a command it leads to this machine; `_dask.py` is the
command for a worker of Dask."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Sequence
from typing import Any, Protocol

import harness
from harness.base.errors import HarnessError, MachineGone, Unavailable
from harness.mission import machine_table
from harness.process import spawn, supervise
from harness.run.machines import _pump
from harness.workplace import environment

BEAT = "HARNESS_BEAT_SECONDS"  # environment variable: seconds between pings, by default 5
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(harness.__file__)), "__main__.py")
TO_DASK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_dask.py")
SAID_CHARS = 300
END_BEATS = 2  # until the command is killed
NOT_FOUND = (126, 127)  # the exit codes of a shell without the program, which prefixes pass on
LACKED = "(no such program there)"  # after the words of the command
LEFT_OUT = "The machine {0} lacks the program {1}: install the harness there, or set program in [machines.{0}]. {2}"


def beat() -> float:
    """The seconds between two pings."""
    try:
        return float(os.environ.get(BEAT, ""))
    except ValueError:
        return _pump.BEAT_SECONDS


def command_of(table: dict[str, Any]) -> list[str]:
    """The command before `harness` on the machine: its `command`, or the program that connects to a worker of Dask."""
    if address := str(table.get("address", "")):
        return [sys.executable, "-P", TO_DASK, address.removeprefix(machine_table.DASK)]
    return list(table.get("command", []))


class Pipe(Protocol):
    """Exchanges values with a machine."""

    def send(self, frame: dict[str, Any]) -> None:
        """Send a value with bytes in it; raises MachineGone, and Unavailable for a machine without the program."""

    def receive(self, seconds: float) -> dict[str, Any]:
        """The next value; {} if none comes within these seconds. Raises MachineGone once the machine is gone."""

    def close(self) -> None:
        """End the other side and all its processes."""


class CommandPipe:
    """The pipe over `command`, which starts `program` on the machine. It ends with this process."""

    def __init__(self, name: str, command: Sequence[str], program: str) -> None:
        words = shlex.split(program) if command else [sys.executable, "-P", PROGRAM]
        self.name, self.program, self.said, self.has_answered = name, program, os.memfd_create("said"), False
        down, writing = spawn.pipe()
        reading, up = spawn.pipe()
        words = [*command, *words, "machine", "--beat", str(beat())]
        with spawn.SignalsBlocked():
            self.pid = supervise.fork_spared(lambda: _relay(words, (down, up), self.said))
        spawn.close((down, up))
        self.channel = _pump.Channel(reading, writing)

    def send(self, frame: dict[str, Any]) -> None:
        try:
            self.channel.send(frame)
        except OSError:
            raise self._gone() from None

    def receive(self, seconds: float) -> dict[str, Any]:
        try:
            row = self.channel.receive(seconds)
        except (ValueError, RecursionError) as fault:
            raise MachineGone(f"the machine {self.name} sent an invalid frame: {fault}") from None
        if row is None:
            raise self._gone()
        self.has_answered = self.has_answered or row != {}
        return row

    def _gone(self) -> HarnessError:
        """The fault that the machine is gone, or never was there, with the last error output of the command."""
        said = os.pread(self.said, SAID_CHARS, max(0, os.fstat(self.said).st_size - SAID_CHARS))
        words = " ".join(said.decode("utf-8", "replace").split())
        if words.endswith(LACKED) and not self.has_answered:
            return Unavailable(LEFT_OUT.format(self.name, self.program, words.removesuffix(LACKED).rstrip()))
        how = "is gone" if self.has_answered else "cannot be reached"
        return MachineGone(f"the machine {self.name} {how}" + (f": {words}" if words else ""))

    def close(self) -> None:
        """End the other side, and everything that it started."""
        if self.pid:
            with spawn.SignalsBlocked():
                spawn.close((self.channel.reading, self.channel.writing, self.said))
                os.waitpid(self.pid, 0)
                supervise.unspare(self.pid)
                self.pid = 0


def _relay(words: list[str], near: tuple[int, int], said: int) -> None:
    """The process between a run and the command: it forwards frames until a side is gone, then ends the command."""
    supervise.end_with_parent(0)
    os.setsid()  # Ctrl-C and a hang-up are for the run, which then closes the pipe
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN if number == signal.SIGHUP else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    spawn.close_all_but({0, 1, 2, *near, said})
    there, writing = spawn.pipe()
    reading, here = spawn.pipe()
    env = environment.of_person(os.environ)
    try:
        pid = spawn.start(words, cwd="/", env=env, stdin=there, stdout=here, stderr=said, session=True)
    except (HarnessError, OSError) as fault:
        os.write(said, str(fault).encode())
        os._exit(1)
    spawn.close((there, here))
    pump = _pump.Pump(near, (reading, writing), beat())
    pump.run()
    os.write(said, pump.back.incoming * (not pump.back.is_greeted) + pump.why.encode())
    spawn.close((reading, writing))
    os.write(said, f" {LACKED}".encode() * (_pump.end(pid, END_BEATS * beat()) in NOT_FOUND))
    os._exit(0)
