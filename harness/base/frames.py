"""Values over a pipe: a frame has the length of its JSON and of the bytes after it, 4 bytes each, then both.

An empty frame is a ping: the sender is alive.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

HEAD = struct.Struct(">II")
PING = bytes(HEAD.size)
BYTES = "\0bytes"  # no file name has a NUL

Hook = Callable[[Any], Any]


def pack(value: object, encode: Hook = lambda one: one) -> bytes:
    """A value as a frame: JSON with bytes in it; `encode` turns other types into JSON."""
    blobs = bytearray()

    def default(one: object) -> object:
        if not isinstance(one, bytes | bytearray):
            return encode(one)
        blobs.extend(one)
        return {BYTES: [len(blobs) - len(one), len(blobs)]}

    text = json.dumps(value, default=default).encode()
    return HEAD.pack(len(text), len(blobs)) + text + blobs


def take_frames(buffer: bytearray, most: int = 0) -> list[bytes]:
    """Remove the whole frames from the beginning of a buffer. Raises ValueError for one of more than `most` bytes (0: any)."""
    found = []
    while len(buffer) >= HEAD.size:
        size = HEAD.size + sum(HEAD.unpack_from(buffer))
        if most and size > most:
            raise ValueError(f"a frame of {size:,} bytes; the limit is {most:,}")
        if len(buffer) < size:
            break
        found.append(bytes(buffer[:size]))
        del buffer[:size]
    return found


def unpack(frame: bytes, revive: Hook = lambda one: one) -> Any:
    """The value of a frame, None for a ping; `revive` maps every other object in it. Raises ValueError for an invalid frame."""
    count, _ = HEAD.unpack_from(frame)
    blobs = memoryview(frame)[HEAD.size + count :]

    def hook(one: dict[str, Any]) -> Any:
        if BYTES not in one:
            return revive(one)
        try:
            begin, end = one[BYTES]
            return bytes(blobs[begin:end])
        except TypeError as fault:
            raise ValueError(f"invalid place of bytes: {fault}") from None

    return json.loads(frame[HEAD.size : HEAD.size + count], object_hook=hook) if count else None
