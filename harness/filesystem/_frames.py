"""What the two sides of a remote shell say to each other: frames with records of the interface in them, by name."""

from __future__ import annotations

from typing import Any

from harness.base import frames
from harness.base.record import Record
from harness.filesystem import protocol

HEAD = frames.HEAD
SILENT_SECONDS = 8.0  # after which the other side is taken to be gone
RECORD = "\0record"  # no name of a file has a NUL
RECORDS = {one.__name__: one for one in vars(protocol).values() if isinstance(one, type) and issubclass(one, Record)}


def packed(value: object) -> bytes:
    """A value as a frame."""
    return frames.packed(value, _named)


def taken(buffer: bytearray) -> list[Any]:
    """Remove the whole frames from the beginning of a buffer and return their values; of an empty one None. Raises ValueError
    for what is no frame."""
    return [frames.value(one, _record) for one in frames.split(buffer)]


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
