"""Promises of harness/base/frames.py: values with bytes arrive as they were, in pieces of any size; sizes have a limit."""

from __future__ import annotations

import pytest

from harness.base import frames


def test_values_arrive_as_they_were() -> None:
    """Bytes of any length, names that are not UTF-8, and pings between them."""
    values = [{"a\udcff": bytes(range(256)) * 300, "b": [b"", 2.5, None]}, None, "\u6f22"]
    sent, buffer, found = b"".join(map(frames.pack, values[::2])), bytearray(), list[object]()
    sent = sent[: len(frames.pack(values[0]))] + frames.PING + sent[len(frames.pack(values[0])) :]
    for at in range(0, len(sent), 1009):
        buffer += sent[at : at + 1009]
        found += map(frames.unpack, frames.take_frames(buffer))
    assert (found, bytes(buffer)) == (values, b"")


@pytest.mark.parametrize("value", [{frames.BYTES: 5}, {frames.BYTES: ["a", "b"]}, {frames.BYTES: [1]}])
def test_a_forged_place_of_bytes_is_an_invalid_frame(value: object) -> None:
    """As any other text that is no value of ours."""
    with pytest.raises(ValueError):
        frames.unpack(frames.pack(value))


def test_a_frame_above_the_limit_is_refused_by_its_head() -> None:
    """Before its bytes are there."""
    with pytest.raises(ValueError, match="the limit is 1,000"):
        frames.take_frames(bytearray(frames.HEAD.pack(20, 2000)), 1000)
