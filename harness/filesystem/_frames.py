"""What the two sides of a remote shell say to each other: values as JSON, with bytes behind it and records by name.

A frame is the length of the JSON and of the bytes, 4 bytes each, then both. An empty frame says that the sender is there.
"""

from __future__ import annotations

import json
import struct
from typing import Any

from harness.base.record import Record
from harness.filesystem import protocol

HEAD = struct.Struct(">II")
SILENT_SECONDS = 8.0  # after which the other side is taken to be gone
BYTES, RECORD = "\0bytes", "\0record"  # no name of a file has a NUL
RECORDS = {one.__name__: one for one in vars(protocol).values() if isinstance(one, type) and issubclass(one, Record)}


def packed(value: object) -> bytes:
    """A value as a frame."""
    blobs = bytearray()

    def default(one: object) -> object:
        if isinstance(one, Record):
            return {RECORD: type(one).__name__, "values": one.asdict()}
        assert isinstance(one, bytes | bytearray), f"{one!r} cannot be sent"
        blobs.extend(one)
        return {BYTES: [len(blobs) - len(one), len(blobs)]}

    text = json.dumps(value, default=default).encode()
    return HEAD.pack(len(text), len(blobs)) + text + blobs


def taken(buffer: bytearray) -> list[Any]:
    """Remove the whole frames from the beginning of a buffer and return their values; of an empty one None. Raises ValueError
    for what is no frame."""
    found = []
    while len(buffer) >= HEAD.size:
        count, more = HEAD.unpack_from(buffer)
        begin, end = HEAD.size + count, HEAD.size + count + more
        if len(buffer) < end:
            break
        found.append(_value(bytes(buffer[HEAD.size : begin]), bytes(buffer[begin:end])) if count else None)
        del buffer[:end]
    return found


def _value(text: bytes, blobs: bytes) -> Any:
    def hook(one: dict[str, Any]) -> Any:
        if BYTES in one:
            begin, end = one[BYTES]
            return blobs[begin:end]
        if RECORD in one:
            try:
                return RECORDS[one[RECORD]](**one["values"])
            except (KeyError, TypeError) as fault:
                raise ValueError(f"unknown record: {fault}") from None
        return one

    return json.loads(text, object_hook=hook)
