"""The worker of a machine carries out one request at a time, and answers each with a result or one line."""

from __future__ import annotations

import os
from pathlib import Path

import harness
from harness.base import frames
from harness.process import spawn
from harness.run.machines._pump import Channel
from harness.run.machines._worker import Worker


def test_each_request_has_its_answer_until_the_input_ends(tmp_path: Path) -> None:
    """A fault of ours is a line; a late `stop` is nothing."""
    reading, writing = spawn.pipe()
    answers, out = spawn.pipe()
    top = str(tmp_path)
    where = {"top": top, "project": top, "state": top, "tree": top, "identity": top, "lane": "m/../x"}
    hello = {"version": harness.__version__, "agents": {}, "confine": "auto"}
    for row in ({"do": "stop"}, {"do": "hello", **hello, "where": where}, {"do": "end_services"}):
        os.write(writing, frames.pack(row))
    os.close(writing)
    Worker(Channel(reading, out), str(tmp_path)).serve()
    first, second = map(frames.unpack, frames.take_frames(bytearray(os.read(answers, 65536))))
    assert ("is not the name of a lane" in first["fault"], second) == (True, {"done": None})
