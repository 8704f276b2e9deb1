"""Frames pass both ways with pings between them; a side that is gone, silent or talks nonsense ends the pump."""

from __future__ import annotations

import os
import socket
import threading
import time

import pytest

from harness.base import frames
from harness.process import spawn
from harness.run.machines import _pump
from harness.run.machines._pump import Pump


class Ends:
    """A pump in a thread, and the other ends of its pipes."""

    def __init__(self, beat: float = 0.1, door: socket.socket | None = None) -> None:
        near_in, self.near_out = spawn.pipe()
        self.near_in, near_out = spawn.pipe()
        far_in, self.far_out = spawn.pipe()
        self.far_in, far_out = spawn.pipe()
        self.ended: list[str] = []
        self.pump = Pump((near_in, near_out), (far_in, far_out), beat, door)
        self.thread = threading.Thread(target=lambda: self.ended.append(self.pump.run()))
        self.thread.start()

    def say(self, data: bytes) -> None:
        """Write this as the near side, and end."""
        os.write(self.near_out, data)
        os.close(self.near_out)

    def wait(self) -> str:
        """How the pump ended."""
        self.thread.join(60)
        assert self.ended, "the pump has not ended within 60 s"
        return self.ended[0]


def test_frames_pass_both_ways_and_pings_only_outwards() -> None:
    """Also a frame that is larger than the pipe; the near side sees no ping, and its end is passed on last."""
    ends, large = Ends(), frames.pack({"data": bytes(300_000)})
    writing = threading.Thread(target=ends.say, args=(large,))
    writing.start()
    got, found = bytearray(), list[bytes]()
    while large not in found:
        got += os.read(ends.far_in, 65536)
        found += frames.take_frames(got)
    assert set(found) == {large, frames.PING}
    writing.join()
    assert ends.wait() == _pump.NEAR

    ends = Ends()
    os.write(ends.far_out, frames.PING + frames.pack("x") + frames.PING)
    assert os.read(ends.near_in, 100) == frames.pack("x")
    os.close(ends.far_out)
    assert ends.wait() == _pump.FAR


@pytest.mark.parametrize("said", [b"", frames.PING + frames.HEAD.pack(2**31, 2**31)])
def test_silence_and_nonsense_end_it(said: bytes) -> None:
    """After six beats without a frame, or at the head of a frame that is too large."""
    started, ends = time.monotonic(), Ends()
    os.write(ends.far_out, said)
    assert ends.wait() == _pump.FAR
    assert said or time.monotonic() - started > 0.5
    assert ("a frame of" if said else "silent for ") in ends.pump.why


def test_a_request_at_the_door_gets_its_answer(tmp_path: object) -> None:
    """It goes to the far side under a number; whoever asked reads the answer, and an end without one is a fault."""
    door = socket.socket(socket.AF_UNIX)
    door.bind(b"\0" + os.urandom(8))
    door.listen()
    ends, clients = Ends(door=door), [socket.socket(socket.AF_UNIX) for _ in range(2)]
    for client in clients:
        client.connect(door.getsockname())
        client.sendall(frames.pack({"verb": "note", "arguments": []}))
    got, found = bytearray(), list[object]()
    while len(found) < 2:
        got += os.read(ends.far_in, 65536)
        found += [row for row in map(frames.unpack, frames.take_frames(got)) if row]
    assert found == [{"verb": "note", "arguments": [], "ask": number} for number in (1, 2)]
    os.write(ends.far_out, frames.PING + frames.pack({"answer": 1, "rows": []}))
    assert _pump.receive(clients[0])["rows"] == []
    os.close(ends.near_out)
    ends.wait()
    del ends
    with pytest.raises(OSError, match="gone"):
        _pump.receive(clients[1])
