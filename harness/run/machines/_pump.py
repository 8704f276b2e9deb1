"""Forwards frames between a local process and the other machine, with pings, so that neither side waits for a dead one.

At home it runs in a process between the run and the command; on the machine it runs in the process that the command starts. So
the run and the worker there may block as long as they like."""

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
FULL_BYTES = 8 * 1024 * 1024  # waiting for one side; the other side is not read meanwhile
BEAT_SECONDS = 5.0
SILENT_BEATS = 6  # without a frame for so long, the other side counts as gone
NEAR, FAR = "near", "far"


class Flow:
    """One direction: read from `source`, written to `target` as fast as it accepts data. Unless
    `is_greeted`, input before the first ping is skipped."""

    def __init__(self, source: int, target: int, is_greeted: bool = True) -> None:
        self.source, self.target, self.is_greeted = source, target, is_greeted
        self.incoming, self.outgoing = bytearray(), bytearray()
        for fd in (source, target):
            os.set_blocking(fd, False)

    def read_frames(self) -> list[bytes] | None:
        """The whole frames received so far; None at the end of the input. Raises ValueError for a frame that is too large."""
        data = spawn.read(self.source)
        if data == b"":
            return None
        self.incoming += data or b""
        if not self.is_greeted:
            if (at := self.incoming.find(frames.PING)) < 0 and len(self.incoming) < FULL_BYTES:
                return []
            self.is_greeted = True
            del self.incoming[: max(at, 0)]
        return frames.take_frames(self.incoming, MAX_FRAME_BYTES)

    def write_some(self) -> None:
        """Write as much as the target accepts now. Raises BrokenPipeError."""
        if self.outgoing:
            try:
                del self.outgoing[: os.write(self.target, self.outgoing[: 1 << 20])]
            except BlockingIOError:
                return


class Pump:
    """Two flows between the local process (`near`) and the other machine (`far`), each a pair of (reading, writing) descriptors.
    `beat`: seconds between pings. `door`: a listening socket whose requests go to the far side, and their answers back."""

    def __init__(
        self, near: tuple[int, int], far: tuple[int, int], beat: float, door: socket.socket | None = None
    ) -> None:
        self.out, self.back = Flow(near[0], far[1]), Flow(far[0], near[1], is_greeted=False)
        self.beat, self.door = beat, door
        self.open_requests: dict[int, socket.socket] = {}
        self.request_count, self.received_at, self.pinged, self.why = 0, time.monotonic(), float("-inf"), ""

    def run(self) -> str:
        """Forward frames until a side is gone: NEAR (pending frames are written first), or FAR (its end, its silence, or an
        invalid frame; `why` says which)."""
        try:
            while True:
                if ended := self._step():
                    self._finish()
                    return ended
        except (ValueError, OSError) as fault:
            self.why = f" {fault}" * isinstance(fault, ValueError)
            return FAR

    def _step(self) -> str:
        now = time.monotonic()
        if now - self.pinged >= self.beat:
            self.out.outgoing += frames.PING
            self.pinged = now
        ready = self._poll()
        if self.back.source in ready:
            self.received_at = time.monotonic()
            if (found := self.back.read_frames()) is None:
                return FAR
            for frame in found:
                self._receive(frame)
        if self.out.source in ready:
            if (found := self.out.read_frames()) is None:
                return NEAR
            self.out.outgoing += b"".join(found)
        if self.door and self.door.fileno() in ready:
            self._ask(self.door.accept()[0])
        self.out.write_some()
        self.back.write_some()
        if (silent := time.monotonic() - self.received_at) <= SILENT_BEATS * self.beat:
            return ""
        self.why = f" silent for {silent:.0f} s"
        return FAR

    def _poll(self) -> set[int]:
        poller = select.poll()
        for flow in (self.out, self.back):
            if len(flow.outgoing) < FULL_BYTES:
                poller.register(flow.source, select.POLLIN)
            elif flow is self.back:
                self.received_at = time.monotonic()
            if flow.outgoing:
                poller.register(flow.target, select.POLLOUT)
        if self.door:
            poller.register(self.door.fileno(), select.POLLIN)
        return {fd for fd, _ in poller.poll(1000 * self.beat / 2)}

    def _receive(self, frame: bytes) -> None:
        """Forward a frame, unless it is a ping or the answer to a request at the door."""
        if frame == frames.PING:
            return
        row = frames.unpack(frame) if self.open_requests else {}
        if client := self.open_requests.pop(row.get("answer", 0), None):
            with suppress(OSError), client:  # the client may be gone; its request stands
                client.sendall(frame)
        else:
            self.back.outgoing += frame

    def _ask(self, client: socket.socket) -> None:
        """Forward one request of a local process; it is small and arrives whole."""
        client.settimeout(self.beat)
        try:
            found = receive(client)
        except OSError:
            return  # the client is gone
        self.request_count += 1
        self.open_requests[self.request_count] = client
        self.out.outgoing += frames.pack({**found, "ask": self.request_count})

    def _finish(self) -> None:
        """Write the pending frames to the far side, as long as it accepts them."""
        until = time.monotonic() + self.beat
        while self.out.outgoing and (left := until - time.monotonic()) > 0:
            select.select([], [self.out.target], [], left)
            self.out.write_some()


def receive(client: socket.socket) -> dict[str, Any]:
    """One frame from a socket; raises OSError if the socket ends before."""
    buffer, found = bytearray(), list[bytes]()
    while not found:
        if not (data := client.recv(spawn.CHUNK_BYTES)):
            raise ConnectionError("the other side is gone")
        buffer += data
        found = frames.take_frames(buffer, MAX_FRAME_BYTES)
    return dict(frames.unpack(found[0]))


class Channel:
    """Values over two descriptors. It blocks, because a pump is at the other end."""

    def __init__(self, reading: int, writing: int) -> None:
        self.reading, self.writing, self.buffer, self.found = reading, writing, bytearray(), list[bytes]()

    def send(self, row: dict[str, Any]) -> None:
        """Write a value; raises OSError."""
        left = memoryview(frames.pack(row))
        while left:
            left = left[os.write(self.writing, left) :]

    def receive(self, seconds: float | None = None) -> dict[str, Any] | None:
        """The next value; {} if none comes within these seconds, None at the end. Raises ValueError for an invalid value."""
        while not self.found:
            if not select.select([self.reading], [], [], seconds)[0]:
                return {}
            if not (data := os.read(self.reading, 1 << 20)):
                return None
            self.buffer += data
            self.found = frames.take_frames(self.buffer, MAX_FRAME_BYTES)
        row = frames.unpack(self.found.pop(0))
        if not isinstance(row, dict):
            raise ValueError("it is not an object")
        return row


def end(pid: int, seconds: float, *first: int) -> int:
    """Send these signals to a child and wait until it ends; after this time send SIGKILL. Returns its exit code."""
    for number in first:
        os.kill(pid, number)
    until = time.monotonic() + seconds
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            until += seconds
        time.sleep(0.005)
    return os.waitstatus_to_exitcode(ended[1])
