"""Passes frames between a process of ours and the other machine, with pings, so that neither side waits for a dead one.

At home it is a process between the run and the command that leads to the machine; there it is the process that the command
starts. So the run and its counterpart may block for as long as they like."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from contextlib import suppress
from typing import Any

from harness.base import frames
from harness.process import spawn

MAX_FRAME_BYTES = 256 * 1024 * 1024
FULL_BYTES = 8 * 1024 * 1024  # waiting for one side; the other is not read meanwhile
BEAT_SECONDS = 5.0
SILENT_BEATS = 6  # after so many without a frame the other side is gone
NEAR, FAR = "near", "far"


class Flow:
    """One direction: read from `source`, written to `target` as far as it takes it. Unless
    `greeted`, what comes before the first ping is no frame."""

    def __init__(self, source: int, target: int, greeted: bool = True) -> None:
        self.source, self.target, self.greeted = source, target, greeted
        self.begun, self.waiting = bytearray(), bytearray()
        for fd in (source, target):
            os.set_blocking(fd, False)

    def take(self) -> list[bytes] | None:
        """The whole frames that have come; None at the end. Raises ValueError for too large a frame."""
        data = spawn.read(self.source)
        if data == b"":
            return None
        self.begun += data or b""
        if not self.greeted:
            if (at := self.begun.find(frames.PING)) < 0 and len(self.begun) < FULL_BYTES:
                return []
            self.greeted = True
            del self.begun[: max(at, 0)]
        return frames.take_frames(self.begun, MAX_FRAME_BYTES)

    def give(self) -> None:
        """Write what the target takes now. Raises BrokenPipeError."""
        if self.waiting:
            try:
                del self.waiting[: os.write(self.target, self.waiting[: 1 << 20])]
            except BlockingIOError:
                return


class Pump:
    """Two flows between the `near` process of ours and the `far` side: (reading, writing) descriptors each. `beat`: seconds
    between pings. `door`: a listening socket; a request that comes there goes to the far side, its answer back."""

    def __init__(
        self, near: tuple[int, int], far: tuple[int, int], beat: float, door: socket.socket | None = None
    ) -> None:
        self.out, self.back = Flow(near[0], far[1]), Flow(far[0], near[1], greeted=False)
        self.beat, self.door = beat, door
        self.asking: dict[int, socket.socket] = {}
        self.asked, self.heard, self.pinged, self.why = 0, time.monotonic(), float("-inf"), ""

    def run(self) -> str:
        """Pass frames until a side is gone: NEAR (its end is passed on first), or FAR (its end, its silence, or an invalid
        frame: `why` says which)."""
        try:
            while True:
                if ended := self._step():
                    self._finish()
                    return ended
        except (ValueError, OSError) as fault:
            self.why = f" {fault}"
            return FAR

    def _step(self) -> str:
        now = time.monotonic()
        if now - self.pinged >= self.beat:
            self.out.waiting += frames.PING
            self.pinged = now
        ready = self._poll()
        if self.back.source in ready:
            self.heard = time.monotonic()
            if (found := self.back.take()) is None:
                self.why = "" if self.back.greeted else self.back.begun.decode("utf-8", "replace")
                return FAR
            for frame in found:
                self._receive(frame)
        if self.out.source in ready:
            if (found := self.out.take()) is None:
                return NEAR
            self.out.waiting += b"".join(found)
        if self.door and self.door.fileno() in ready:
            self._ask(self.door.accept()[0])
        self.out.give()
        self.back.give()
        if (silent := time.monotonic() - self.heard) <= SILENT_BEATS * self.beat:
            return ""
        self.why = f" silent for {silent:.0f} s"
        return FAR

    def _poll(self) -> set[int]:
        poller = select.poll()
        for flow in (self.out, self.back):
            if len(flow.waiting) < FULL_BYTES:
                poller.register(flow.source, select.POLLIN)
            elif flow is self.back:
                self.heard = time.monotonic()
            if flow.waiting:
                poller.register(flow.target, select.POLLOUT)
        if self.door:
            poller.register(self.door.fileno(), select.POLLIN)
        return {fd for fd, _ in poller.poll(1000 * self.beat / 2)}

    def _receive(self, frame: bytes) -> None:
        """Pass a frame on, but for pings and answers to requests at the door."""
        if frame == frames.PING:
            return
        row = frames.unpack(frame) if self.asking else {}
        if client := self.asking.pop(row.get("answer", 0), None):
            with suppress(OSError), client:  # whoever asked may be gone; the request stands
                client.sendall(frame)
        else:
            self.back.waiting += frame

    def _ask(self, client: socket.socket) -> None:
        """Take one request; it is small, and comes from a process of ours, whole."""
        client.settimeout(self.beat)
        try:
            found = receive(client)
        except OSError:
            return  # whoever asks is gone
        self.asked += 1
        self.asking[self.asked] = client
        self.out.waiting += frames.pack({**found, "ask": self.asked})

    def _finish(self) -> None:
        """Write what is left for the far side, while it takes it."""
        until = time.monotonic() + self.beat
        while self.out.waiting and (left := until - time.monotonic()) > 0:
            select.select([], [self.out.target], [], left)
            self.out.give()


def receive(client: socket.socket) -> dict[str, Any]:
    """One frame of a socket; raises OSError if it ends before."""
    buffer, found = bytearray(), list[bytes]()
    while not found:
        if not (data := client.recv(spawn.CHUNK_BYTES)):
            raise ConnectionError("the other side is gone")
        buffer += data
        found = frames.take_frames(buffer, MAX_FRAME_BYTES)
    return dict(frames.unpack(found[0]))


class Channel:
    """Values over two descriptors; blocking, since a pump is behind them."""

    def __init__(self, reading: int, writing: int) -> None:
        self.reading, self.writing, self.buffer, self.found = reading, writing, bytearray(), list[bytes]()

    def send(self, row: dict[str, Any]) -> None:
        """Write a value; raises OSError."""
        left = memoryview(frames.pack(row))
        while left:
            left = left[os.write(self.writing, left) :]

    def receive(self, seconds: float | None = None) -> dict[str, Any] | None:
        """The next value; {} if none comes within these seconds, None at the end. Raises ValueError for what is none."""
        while not self.found:
            if not select.select([self.reading], [], [], seconds)[0]:
                return {}
            if not (data := os.read(self.reading, 1 << 20)):
                return None
            self.buffer += data
            self.found = frames.take_frames(self.buffer, MAX_FRAME_BYTES)
        row = frames.unpack(self.found.pop(0))
        if not isinstance(row, dict):
            raise ValueError("it is no object")
        return row


def end(pid: int, seconds: float, *first: int) -> None:
    """Send a child these signals and wait for it; SIGKILL after this time."""
    for number in first:
        os.kill(pid, number)
    until = time.monotonic() + seconds
    while not os.waitpid(pid, os.WNOHANG)[0]:
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            until += seconds
        time.sleep(0.005)
