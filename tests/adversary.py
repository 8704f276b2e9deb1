"""A child program that tries to outlive its run, and a supervisor for tests that kill the supervisor.

    adversary.py spawn FOLDER exit|stay     leave four processes behind, each with its pid in a file FOLDER/<name>
    adversary.py supervise FOLDER LOCK GRACE_SECONDS    run the above under harness.process, holding the lock file LOCK

In every case, every process ends after a minute.
"""

from __future__ import annotations

import os
import signal
import sys
import time

NAMES = ("plain", "session", "daemon", "ignorer")


def stay(folder: str, name: str) -> None:
    """Write the pid, and stay."""
    with open(f"{folder}/{name}.new", "w", encoding="ascii") as file:
        file.write(str(os.getpid()))
    os.rename(f"{folder}/{name}.new", f"{folder}/{name}")
    until = time.monotonic() + 60
    while time.monotonic() < until:
        time.sleep(1)
    os._exit(0)


def lurk(folder: str, name: str) -> None:
    """Become one of the four."""
    if name in ("session", "daemon", "ignorer"):
        os.setsid()
    if name == "daemon" and os.fork():
        os._exit(0)
    if name == "ignorer":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    stay(folder, name)


def spawn(folder: str, then: str) -> None:
    """Start the four, report it, and exit or stay."""
    for name in NAMES:
        if os.fork() == 0:
            lurk(folder, name)
    while not all(os.path.exists(f"{folder}/{name}") for name in NAMES):
        time.sleep(0.002)
    os.write(1, b"ready\n")
    if then == "stay":
        stay(folder, "child")


def supervise(folder: str, lock: str, grace_seconds: float) -> int:
    """A harness program with a run in progress; SIGTERM raises, as in our commands. Returns the exit code."""
    import fcntl

    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from harness.base import errors
    from harness.process import supervise, tree

    def handler(signum: int, _: object) -> None:
        raise errors.Interruption(signum)

    signal.signal(signal.SIGTERM, handler)
    held = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    argv = [sys.executable, "-I", "-S", os.path.abspath(__file__), "spawn", folder, "stay"]
    try:
        with supervise.Child(
            argv, cwd="/", env=dict(os.environ), wall_seconds=60, grace_seconds=grace_seconds, keep=[held]
        ) as child:
            with open(f"{folder}/guardian", "w", encoding="ascii") as file:
                file.write(tree.stat(child.pid)[1].decode())
            for _ in child.output():
                pass
    except errors.Interruption as interrupt:
        return interrupt.code
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "spawn":
        spawn(*sys.argv[2:4])
    else:
        sys.exit(supervise(sys.argv[2], sys.argv[3], float(sys.argv[4])))
