"""Promises of harness/filesystem/_lines.py: a part is what the whole has there, at any offset, limit and size of a block."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base import encoding
from harness.filesystem import _lines
from harness.filesystem.protocol import FileContent

DATA = st.lists(st.sampled_from([b"", b"a", b"bb\r", b"\0\xff", b"x" * 100]), max_size=30).flatmap(
    lambda rows: st.booleans().map(lambda ends: b"\n".join(rows) + (b"\n" if ends else b""))
)


def split(data: bytes) -> list[bytes]:
    """The lines, each with its newline."""
    return [line for line in (data.replace(b"\n", b"\n|")).split(b"|") if line]


def part(data: bytes, offset: int, limit: int, most: int = 10**9) -> FileContent:
    """A part of a file with this content; that of a content in memory is the same."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        found = _lines.part(file.fileno(), offset, limit, most)
    assert _lines.part_of(data, offset, limit, most) == found.replace(version="")
    return found


@given(data=DATA, offset=st.integers(0, 35), limit=st.integers(0, 35))
def test_a_part_is_what_the_whole_has_there(data: bytes, offset: int, limit: int) -> None:
    """Its lines, their number, and whether the file ends there."""
    rows = split(data)
    wanted = rows[offset : offset + limit] if limit else rows[offset:]
    found = part(data, offset, limit)
    assert found.data == b"".join(wanted)
    assert (found.lines, found.first, found.size, found.cut) == (len(wanted), offset + 1, len(data), False)
    assert found.ends == (offset + len(wanted) >= len(rows))
    assert found.total_lines == (len(rows) if found.ends else -1)
    assert found.digest in ("", encoding.digest(data))
    assert bool(found.digest) == (found.ends and offset == 0)


@given(data=DATA, offset=st.integers(0, 35), most=st.integers(1, 300))
def test_a_part_that_is_too_large_is_whole_lines_where_one_fits(data: bytes, offset: int, most: int) -> None:
    """Else the beginning of one, which says that it is cut."""
    whole, found = part(data, offset, 0), part(data, offset, 0, most)
    assert len(found.data) <= most
    assert whole.data.startswith(found.data)
    assert found.ends == (found.data == whole.data)
    if not found.ends:
        rows = split(data)[offset:]
        assert found.cut == (len(rows[0]) > most)
        assert found.cut or found.data.endswith(b"\n")


def test_a_version_changes_with_the_file(tmp_path: Path) -> None:
    """Of one that settled; what was written a moment ago has none, since it may be again, without a trace."""
    path = tmp_path / "f"
    path.write_bytes(b"a\nb\n")

    def version() -> str:
        with open(path, "rb") as file:
            return _lines.part(file.fileno(), 1, 1, 99).version

    assert version() == ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_lines, "SETTLED_SECONDS", -60.0)
        found = [version(), version()]
        time.sleep(0.02)
        path.write_bytes(b"a\nB\n")
        os.utime(path, ns=(0, 0))
        found.append(version())
        os.rename(path, tmp_path / "g")
        path.write_bytes(b"a\nB\n")
        os.utime(path, ns=(0, 0))
        found.append(version())
    assert found[0] == found[1] and len({"", *found}) == 4


@pytest.mark.parametrize("width", [1, 30, 60, 300, 70_000])
def test_lines_of_any_length_are_counted(width: int) -> None:
    """Short and long ones, also where they change from one to the other."""
    rows = [b"x" * width + b"\n"] * (400_000 // width) + [b"\n"] * 70_000 + [b"y" * 99 + b"\n"] * 2000
    data = b"".join(rows)
    for offset in (len(rows) // 2, len(rows) - 2001, len(rows) - 1):
        assert part(data, offset, 1).data == rows[offset]


def test_lines_that_are_longer_than_a_block_are_found() -> None:
    """Blocks are no lines."""
    rows = [bytes([65 + number]) * (number * _lines.BLOCK // 3) + b"\n" for number in range(9)]
    for offset in range(9):
        assert part(b"".join(rows), offset, 1).data == rows[offset]
        assert part(b"".join(rows), offset, 2).data == b"".join(rows[offset : offset + 2])


def test_a_whole_file_has_a_limit() -> None:
    """None says that it is larger."""
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * 1000)
        file.flush()
        assert _lines.whole(file.fileno(), 1000) == b"x" * 1000
        assert _lines.whole(file.fileno(), 999) is None
        os.ftruncate(file.fileno(), 0)
        assert _lines.whole(file.fileno(), 10) == b""
