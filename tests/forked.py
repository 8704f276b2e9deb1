"""A Python script in a separate process without the start of an interpreter: a fork of this one, which has imported all.

The child has the script's arguments, its environment, its folder and its own three streams; it has no other descriptor and
nothing that the package remembers. A real start (imports, `-P`, the environment in /proc) is what `House.run` is for.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import runpy
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.git import dotgit, settings

SECONDS = 600.0  # of a whole mission, on a machine with much else to do
REMEMBERED = (settings._places, settings._held, dotgit._known)  # of the folders in which this process called git


def run(script: str, words: Sequence[str], where: Path, env: Mapping[str, str]) -> tuple[int, str, str]:
    """Run the script to its end; returns exit code (of a signal: negative), standard output and standard error."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        pid = os.fork()
        if not pid:
            code = 1
            try:
                _become(where, env, out.fileno(), err.fileno())
                code = _play(script, words)
            except BaseException:  # noqa: BLE001 - whatever it is, this process must not return into pytest
                traceback.print_exc()
            finally:
                os._exit(code)
        code = _awaited(pid)
        return code, _text(out.fileno()), _text(err.fileno())


def _become(where: Path, env: Mapping[str, str], out: int, err: int) -> None:
    """Make this fork look like a new process in that folder."""
    gc.disable()
    gc.freeze()  # collecting the parent's objects would close descriptors that this process uses
    faulthandler.disable()
    for number, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), out, err)):
        os.dup2(descriptor, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    sys.stdin, sys.stdout = open(0, encoding="utf-8"), open(1, "w", encoding="utf-8")  # noqa: SIM115 - they end with it
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: SIM115 - as above
    for remembered in REMEMBERED:
        remembered.clear()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(where)


def _play(script: str, words: Sequence[str]) -> int:
    sys.argv = [script, *words]
    code: object = 0
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        code = end.code or 0
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else 1


def _awaited(pid: int) -> int:
    """The exit code of the child; one that takes too long is killed, and the test fails."""
    end = time.monotonic() + SECONDS
    while not (done := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise TimeoutError(f"process {pid} did not end within {SECONDS} s")
        time.sleep(0.002)
    return os.waitstatus_to_exitcode(done[1])


def _text(descriptor: int) -> str:
    """What was written to a temporary file."""
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode()
