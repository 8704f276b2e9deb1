"""Background commands: a keeper process drains the output into a spool, so that the command never waits for a reader.

The keeper ends the command's tree on request, at its timeout, and when the process that started it is gone.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import tempfile
import time
from collections.abc import Callable
from threading import Lock

from harness.base import errors, exits
from harness.filesystem._spool import Spool
from harness.filesystem.protocol import CommandResult, OutputPage
from harness.process import spawn, supervise
from harness.process.supervise import Child, ChildEnd

Say = Callable[[ChildEnd], CommandResult]

MAX_SHOWN_BYTES = 100_000  # bytes of output in a CommandResult
KILLED = -9
PAUSE_SECONDS = 0.002


class Background:
    """A ShellJob on this machine. `start` makes the child, in the keeper process; `say` turns its end into a
    CommandResult. `one`: the lock of the thread that reaps."""

    def __init__(self, start: Callable[[], Child], say: Say) -> None:
        with tempfile.TemporaryFile() as file:
            self.spool = Spool(os.dup(file.fileno()))
        asked, self.ask = spawn.pipe()
        self.one = Lock()
        self.id, self.ended = f"job-{os.urandom(4).hex()}", CommandResult(output=b"", exit=0)
        parent = os.getpid()
        try:
            with spawn.SignalsBlocked():
                self.pid = supervise.fork_spared(lambda: _keep(start, say, self.spool, asked, parent))
        finally:
            os.close(asked)

    def page(self, offset: int = 0, most: int = 30_000) -> OutputPage:
        begin, data, size = self.spool.read(offset, most)
        return OutputPage(data=data, offset=begin, next=begin + len(data), size=size)

    def status(self) -> CommandResult | None:
        """The result; None while it runs. Thread-safe."""
        with self.one:
            if self.pid and _reaped(self.pid):
                self._read_end()
            return None if self.pid else self.ended

    def cancel(self) -> CommandResult:
        with self.one:
            self._order()
        while (ended := self.status()) is None:
            time.sleep(PAUSE_SECONDS)
        return ended

    def _order(self) -> None:
        if self.ask >= 0:
            os.close(self.ask)
            self.ask = -1

    def _read_end(self) -> None:
        """Read the final record of the keeper, which has ended."""
        supervise.unspare(self.pid)
        self.pid = 0
        self._order()
        size, words = self.spool.look()
        begin, data, _ = self.spool.read(0, MAX_SHOWN_BYTES // 2)
        rest, tail, _ = self.spool.read(max(begin + len(data), size - MAX_SHOWN_BYTES // 2), MAX_SHOWN_BYTES // 2)
        words = words or {"exit": KILLED, "cause": "cancelled", "seconds": 0.0}
        left = rest - len(data)
        between = b"\n[... %d bytes left out ...]\n" % left if left else b""
        self.ended = CommandResult(output=data + between + tail, lost=left, **words)

    def __del__(self) -> None:
        """A job without references ends."""
        if getattr(self, "pid", 0):
            self.cancel()
        if hasattr(self, "spool"):
            os.close(self.spool.fd)


def _reaped(pid: int) -> bool:
    """Whether the process has ended; if so, it is reaped."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:  # reaped elsewhere
        return True


def _keep(start: Callable[[], Child], say: Say, spool: Spool, asked: int, parent: int) -> None:
    """Run the command, drain its output, and write the final record. Runs in the keeper process, which then exits."""
    gc.disable()  # collecting the parent's objects would close descriptors that this process now uses
    os.setsid()
    for number in exits.ENDING:
        exits.handle(number, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    spawn.close_all_but({0, 1, 2, spool.fd, asked})
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    supervise.end_with_parent(parent)
    poller = select.poll()
    poller.register(asked, select.POLLIN)
    try:
        child = start()
    except errors.HarnessError as fault:
        spool.add(str(fault).encode())
        spool.end({"exit": 127, "cause": "exit", "seconds": 0.0})
        os._exit(0)
    stopped = False
    for _, data in child.output():
        spool.add(data)
        if not stopped and poller.poll(0):
            stopped = True
            child.stop()
    if child.ended:
        words = say(child.ended)
        spool.end({"exit": words.exit, "cause": words.cause, "seconds": words.seconds})
    os._exit(0)
