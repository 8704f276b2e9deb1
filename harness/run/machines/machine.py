"""`harness machine`: the machine's side of a lane. It forwards frames, and ends its worker when its input ends."""

from __future__ import annotations

import os
import signal

from harness.base.errors import DONE
from harness.base.exits import guarded
from harness.process import spawn, supervise, temporary
from harness.run.machines import _pump
from harness.run.machines._worker import Worker
from harness.workplace import inbox


def serve(beat: float) -> int:
    """Serve the run at standard input until the input ends or is silent for six beats."""
    folder = temporary.create("machine")
    down, writing = spawn.pipe()
    reading, up = spawn.pipe()
    door = inbox.in_folder(folder, "bind")
    door.listen(inbox.WAITING_CLIENTS)
    with spawn.SignalsBlocked():
        front = os.getpid()
        pid = supervise.fork_spared(lambda: _work(front, down, up, folder))
    try:
        spawn.close((down, up))
        _pump.Pump((reading, writing), (0, 1), beat, door).run()
    finally:
        spawn.close((reading, writing))
        _pump.end(pid, beat, signal.SIGTERM)  # before home ends this process; guardians end what a hung worker started
        inbox.remove(folder)
    return DONE


def _work(front: int, reading: int, writing: int, door: str) -> None:
    """The worker's process."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.dup2(2, 1)  # output of a library must not mix with frames
    spawn.close_all_but({0, 1, 2, reading, writing})
    supervise.end_with_parent(front)
    os._exit(guarded(Worker(_pump.Channel(reading, writing), door).serve))
