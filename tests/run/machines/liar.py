"""A machine that lies: `liar.py LIE WORD …` starts the words and passes its frames on, each after the statement LIE has changed
its value `row`, whose result of an agent is `done`."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from harness.base import frames


def feed(child: subprocess.Popen[bytes]) -> None:
    """Pass the input on."""
    assert child.stdin
    while data := os.read(0, 65536):
        child.stdin.write(data)
        child.stdin.flush()
    child.stdin.close()


def lied(row: dict[str, Any], lie: str) -> Any:
    """The row as the lie has it."""
    done = row.get("done")
    known = {"row": row, "done": done if isinstance(done, dict) and "work" in done else {}}
    exec(lie, known)
    return known["row"]


def main(lie: str, *words: str) -> None:
    """Pass the output on."""
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    threading.Thread(target=feed, args=[child], daemon=True).start()
    assert child.stdout
    buffer = bytearray()
    while data := child.stdout.read(65536):
        buffer += data
        for frame in frames.take_frames(buffer):
            row = lied(frames.unpack(frame), lie) if frame != frames.PING else frame
            os.write(1, row if isinstance(row, bytes) else frames.pack(row))


if __name__ == "__main__":
    main(*sys.argv[1:])
