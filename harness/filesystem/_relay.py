"""The program between a connection and its command: it forwards frames, and sends an empty frame after two seconds of silence.
It runs from its source text, so it imports no module of the harness.

A frame on its input is a length of 8 bytes, then as many bytes; only the bytes are forwarded. When its input ends, it closes the
input of the command, which then has a second to end.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

TICK_SECONDS, BEAT_SECONDS, END_SECONDS = 0.25, 2.0, 1.0
BEAT = bytes(8)  # an empty frame, as the other side expects it
FIRST = 2  # frames before the other side understands BEAT


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    reading, writing = os.pipe()
    try:
        pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, reading, 0)])
    except OSError as fault:
        os.write(2, f"{argv[0]}: {fault.strerror}\n".encode())
        return 127
    os.close(reading)
    try:
        status = _forward(pid, writing)
    except BrokenPipeError:
        status = None
    os.close(writing)
    until = time.monotonic() + END_SECONDS
    while status is None and not (status := _ended(pid)) and time.monotonic() < until:
        time.sleep(0.01)
    if status is None:
        os.kill(pid, signal.SIGKILL)
    return status or 0


def _forward(pid: int, writing: int) -> int | None:
    """Forward frames until the input or the command ends; returns the exit code of the command, None if it still runs."""
    poller, head, left, frames, last = select.poll(), b"", 0, 0, time.monotonic()
    poller.register(0, select.POLLIN)
    while True:
        if poller.poll(TICK_SECONDS * 1000):
            data = os.read(0, min(left, 1 << 20) if left else 8 - len(head))
            if not data:
                return None
            if left:
                _write(writing, data)
                left, last = left - len(data), time.monotonic()
                frames += not left
            elif len(head := head + data) == len(BEAT):
                left, head = int.from_bytes(head), b""
        elif (status := _ended(pid)) is not None:
            return status
        elif not left and not head and frames >= FIRST and time.monotonic() - last >= BEAT_SECONDS:
            _write(writing, BEAT)
            last = time.monotonic()


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _ended(pid: int) -> int | None:
    """The exit code of the command, or -signal; None if it still runs."""
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
