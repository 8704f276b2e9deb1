"""`harness machine`: the other side of a lane. It passes frames, and ends the worker behind it with its input."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from harness.base.errors import DONE
from harness.base.exits import guarded
from harness.process import spawn, supervise, temporary
from harness.run.machines import _pump
from harness.run.machines._worker import Worker
from harness.state import files
from harness.workplace import inbox

END_SECONDS = 10.0  # for the worker to end what it started, before guardians do


def serve(beat: float) -> int:
    """Serve the run behind standard input until that ends, or is silent for six beats."""
    folder = temporary.create("machine")
    down, writing = spawn.pipe()
    reading, up = spawn.pipe()
    door = inbox.in_folder(folder, "bind")
    door.listen(inbox.WAITING_CLIENTS)
    parent, pid = os.getpid(), 0
    try:
        with spawn.SignalsBlocked():
            pid = supervise.fork_spared(lambda: _work(parent, down, up, folder))
        spawn.close((down, up))
        _pump.Pump((reading, writing), (0, 1), beat, door).run()
    finally:
        spawn.close((reading, writing))
        _end(pid)
        files.remove(os.path.join(folder, inbox.SOCKET))
        temporary.remove(folder)
    return DONE


def _end(pid: int) -> None:
    """End the worker with everything that it started."""
    until = time.monotonic() + END_SECONDS
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    while not os.waitpid(pid, os.WNOHANG)[0]:
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            until += END_SECONDS
        time.sleep(0.005)


def _work(parent: int, reading: int, writing: int, door: str) -> None:
    """The worker's process."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.dup2(2, 1)  # what a library prints is no frame
    spawn.close_all_but({0, 1, 2, reading, writing})
    supervise.end_with_parent(parent)
    os._exit(guarded(Worker(reading, writing, door).serve))
