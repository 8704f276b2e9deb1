"""Promises of harness/filesystem/_spool.py: the ends of an output are kept whole, and any part that is still kept is right."""

from __future__ import annotations

import tempfile

from hypothesis import given
from hypothesis import strategies as st

from harness.filesystem._spool import Ends, Spool
from tests import crash

CHUNKS = st.lists(st.integers(0, 40), max_size=30)


def chunks(sizes: list[int]) -> list[bytes]:
    """Bytes that show where they stood."""
    data = b"".join(b"%d," % number for number in range(sum(sizes)))
    found, at = [], 0
    for size in sizes:
        found.append(data[at : at + size])
        at += size
    return found


@given(sizes=CHUNKS, most=st.integers(0, 200))
def test_beginning_and_end_are_kept_and_the_rest_is_counted(sizes: list[int], most: int) -> None:
    """However the output comes."""
    ends, parts = Ends(most), chunks(sizes)
    for part in parts:
        ends.add(part)
    whole, text = b"".join(parts), ends.text()
    assert ends.lost == max(0, len(whole) - most)
    if not ends.lost:
        assert text == whole
        return
    head, tail = whole[: most // 2], whole[len(whole) - (most - most // 2) :]
    assert text == head + b"\n[... %d bytes left out ...]\n" % ends.lost + tail


def test_the_memory_of_a_long_output_is_bounded() -> None:
    """A command that never stops talking fills nothing."""
    ends = Ends(1000)
    for _ in range(2000):
        ends.add(b"x" * 65536)
    assert len(ends.head) + len(ends.tail) < 300_000
    assert ends.lost == 2000 * 65536 - 1000


@given(sizes=CHUNKS, ring=st.integers(1, 100), offset=st.integers(-50, 1300), most=st.integers(0, 200))
def test_a_page_is_what_was_said_there(sizes: list[int], ring: int, offset: int, most: int) -> None:
    """Or begins later, where the ring was written over."""
    parts = chunks(sizes)
    whole = b"".join(parts)
    with tempfile.TemporaryFile() as file:
        spool = Spool(file.fileno(), ring)
        assert spool.look() == (0, None)
        for part in parts:
            spool.add(part)
        begin, data, size = Spool(file.fileno(), ring).read(offset, most)
        spool.end({"exit": 3})
        assert Spool(file.fileno(), ring).look() == (len(whole), {"exit": 3})
    wanted = offset if offset >= 0 else max(0, len(whole) + offset)
    assert size == len(whole)
    assert begin == min(max(wanted, len(whole) - ring), len(whole))
    assert data == whole[begin : begin + most]


def test_a_reader_beside_the_writer_reads_no_wrong_byte() -> None:
    """Every byte is told by its place, while the ring is written over again and again."""
    with tempfile.TemporaryFile() as file:
        ring = 64 * 1024

        def write() -> None:
            spool = Spool(file.fileno(), ring)
            for number in range(6000):
                spool.add(b"".join((number * 128 + one).to_bytes(8, "big") for one in range(128)))
            spool.end({})

        pid, reader, looks = crash.start(write), Spool(file.fileno(), ring), 0
        while reader.look()[1] is None:
            begin, data, _ = reader.read(0, 800)
            begin, data = begin + -begin % 8, data[-begin % 8 :]
            for at in range(0, len(data) - 7, 8):
                assert int.from_bytes(data[at : at + 8], "big") == (begin + at) // 8
            looks += len(data) > 0
        assert crash.end(pid) == 0
        assert looks
