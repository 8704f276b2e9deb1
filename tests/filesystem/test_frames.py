"""Promises of harness/filesystem/_frames.py: every value arrives as it was, in pieces of any size."""

from __future__ import annotations

import pytest

from harness.filesystem import _frames
from harness.filesystem.protocol import FileContent, FileEntry, Listing, Matches


def test_values_arrive_as_they_were() -> None:
    """Bytes, names that are not UTF-8, records within records, and names like our own signs."""
    entry = FileEntry(path="a\udcff/\u6f22", kind="file", size=3, changed=1.5)
    values = [
        {"result": Listing(entries=[entry], more=-1), "x": None},
        [FileContent(data=bytes(range(256)) * 300), b"", "", 2.5],
        Matches(skipped={"bytes": "denied", "record": "x", "values": "y"}),
        None,
    ]
    sent, buffer, found = (
        b"".join(map(_frames.pack, values[:3])) + bytes(_frames.HEAD.size),
        bytearray(),
        list[object](),
    )
    for at in range(0, len(sent), 1009):
        buffer += sent[at : at + 1009]
        found += _frames.take_values(buffer)
    assert (found, bytes(buffer)) == (values, b"")


@pytest.mark.parametrize("text", ["{", '{"SIGN": "Path", "values": {}}', '{"SIGN": "FileEntry", "values": {}}'])
def test_what_is_no_frame_is_a_fault(text: str) -> None:
    """Only records of the interface are made, of their own fields."""
    data = text.replace("SIGN", "\\u0000record").encode()
    with pytest.raises(ValueError, match=r"Expecting|unknown record"):
        _frames.take_values(bytearray(_frames.HEAD.pack(len(data), 0) + data))
