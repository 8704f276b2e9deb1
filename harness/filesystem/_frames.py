"""The messages between both sides of a remote shell: frames that contain records of the interface, by name."""

from __future__ import annotations

from typing import Any

from harness.base import frames
from harness.base.record import Record
from harness.filesystem import protocol

HEAD = frames.HEAD
SILENT_SECONDS = 8.0  # after this silence the other side counts as gone
RECORD = "\0record"  # no name of a file has a NUL
RECORDS = {one.__name__: one for one in vars(protocol).values() if isinstance(one, type) and issubclass(one, Record)}


def pack(value: object) -> bytes:
    """A value as a frame."""
    return frames.pack(value, _named)


def take_values(buffer: bytearray) -> list[Any]:
    """Remove the whole frames from the beginning of a buffer and return their values, None for an empty frame. Raises
    ValueError for an invalid frame."""
    return [frames.unpack(one, _record) for one in frames.take_frames(buffer)]


def _named(one: object) -> object:
    assert isinstance(one, Record), f"{one!r} cannot be sent"
    return {RECORD: type(one).__name__, "values": one.asdict()}


def _record(one: dict[str, Any]) -> Any:
    if RECORD not in one:
        return one
    try:
        return RECORDS[one[RECORD]](**one["values"])
    except (KeyError, TypeError) as fault:
        raise ValueError(f"unknown record: {fault}") from None
