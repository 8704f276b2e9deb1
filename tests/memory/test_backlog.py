"""What waits for the curator: found at its place without reading what lies before, and counted exactly."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from harness.memory import backlog
from harness.memory.backlog import BatchLimit
from harness.memory.pages import CurationProgress
from harness.state import files, names, raw
from harness.state.layout import Layout
from harness.state.raw import RawEntry
from tests.helpers import mission, put

AT = "2026-04-24T10:05:12Z"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A mission whose folder is empty."""
    return mission(tmp_path)


def lines(count: int, first: int = 0) -> str:
    """So many entries, each unique."""
    return "".join(f"[{AT}] worker F-1 TRICK: number {number}\n" for number in range(first, first + count))


def placed(layout: Layout, folded: int, head: str) -> CurationProgress:
    """curated.json's content where these lines, from entry 0 on, are compacted and still there."""
    offset = len(head.encode())
    return CurationProgress(
        generation=1, folded=folded, offset=offset, crc=backlog.checksum(layout.path(names.RAW), offset)
    )


def test_what_waits_is_counted_without_what_the_curator_wrote(layout: Layout) -> None:
    """And only up to the requested number."""
    roles = ["worker", "curator", "worker", "validator", "curator"]
    put(layout.path(names.RAW), "".join(f"[{AT}] {role} - - said ] curator \n" for role in roles) + "torn")
    assert backlog.uncurated(layout, CurationProgress(), 99) == 3
    assert backlog.uncurated(layout, CurationProgress(), 2) == 2
    assert backlog.uncurated(layout, CurationProgress(folded=3), 99) == 1
    assert backlog.uncurated(layout, CurationProgress(first_seq=10, folded=13), 99) == 1
    assert [entry.seq for entry in backlog.entries(layout, CurationProgress(first_seq=10, folded=13))] == [13, 14]


def test_where_there_is_no_file_nothing_waits(layout: Layout) -> None:
    """A mission that has just begun, and one whose raw.md is gone."""
    assert backlog.uncurated(layout, CurationProgress(), 99) == 0
    assert backlog.uncurated(layout, CurationProgress(folded=3), 99) == 0
    assert backlog.start(layout, CurationProgress(folded=3)) is None
    assert list(backlog.entries(layout, CurationProgress(folded=3, offset=9, crc=1))) == []


def test_the_place_is_taken_from_curated_json_and_nothing_before_it_is_read(layout: Layout) -> None:
    """The file may have a gigabyte before it: here it is a hole, which a reader of its lines would not count as lines."""
    put(layout.path(names.RAW), "")
    tail = lines(200)
    with open(layout.path(names.RAW), "r+b") as file:
        file.seek(2**30)
        file.write(tail.encode())
    offset = 2**30 + len(tail.encode())
    curated = CurationProgress(
        generation=1, folded=5_000_000, offset=offset, crc=backlog.checksum(layout.path(names.RAW), offset)
    )
    with open(layout.path(names.RAW), "ab") as file:
        file.write(lines(3, 200).encode())
    assert backlog.start(layout, curated) == offset
    assert backlog.uncurated(layout, curated, 99) == 3


@pytest.mark.parametrize("place", [{}, {"offset": 0}, {"offset": 7}, {"offset": 10**9}, {"crc": 1}])
def test_without_a_place_that_holds_lines_are_counted(layout: Layout, place: dict[str, int]) -> None:
    """An older file has none; a person may have changed what lies before."""
    put(layout.path(names.RAW), lines(40))
    curated = placed(layout, 30, lines(30))
    curated = curated.replace(**place) if place else curated.replace(offset=0, crc=0)
    assert backlog.start(layout, curated) == len(lines(30))
    assert [entry.seq for entry in backlog.entries(layout, curated)] == list(range(30, 40))


def test_a_line_that_a_person_took_out_or_put_in_moves_the_place(layout: Layout) -> None:
    """Then the lines are counted as they are."""
    head = lines(30)
    put(layout.path(names.RAW), head + lines(10, 30))
    curated = placed(layout, 30, head)
    put(layout.path(names.RAW), "mine\n" + head + lines(10, 30))
    assert backlog.start(layout, curated) == len("mine\n" + lines(29))
    put(layout.path(names.RAW), head.split("\n", 1)[1] + lines(10, 30))
    assert backlog.start(layout, curated) == len(lines(31)) - len(lines(1))
    put(layout.path(names.RAW), lines(4))
    assert backlog.start(layout, curated) is None


def test_the_last_lines_before_a_place_are_found_backwards(layout: Layout) -> None:
    """Whatever their length, also over several blocks."""
    dice = random.Random(4)
    texts = ["x" * dice.choice([0, 1, 50, 65535, 65536, 200_000]) + "\n" for _ in range(30)]
    put(layout.path(names.RAW), "".join(texts))
    for end in range(31):
        for count in range(end + 1):
            found = backlog.before(layout.path(names.RAW), len("".join(texts[:end])), count)
            assert found == len("".join(texts[: end - count]))


def test_a_batch_ends_at_its_bound_and_the_next_begins_there(layout: Layout) -> None:
    """Every entry is in exactly one of them, whichever bound is reached first; one that is too large alone is taken alone."""
    long = "x" * 300_000
    put(layout.path(names.RAW), lines(25) + f"{long}\n{long}\n" + lines(5, 27) + "torn")
    for bound in (
        BatchLimit(entries=7, bytes=10**9),
        BatchLimit(entries=99, bytes=100),
        BatchLimit(entries=99, bytes=70_000),
    ):
        found: list[RawEntry] = []
        end, is_last = 0, False
        while not is_last:
            batch = backlog.batch(layout.path(names.RAW), len(found), end, bound)
            assert len(batch.entries) <= bound.entries
            assert len(batch.entries) == 1 or sum(len(one.line()) for one in batch.entries) <= bound.bytes
            assert batch.crc == backlog.checksum(layout.path(names.RAW), batch.end) >= 0
            found, end, is_last = found + batch.entries, batch.end, batch.is_last
        assert [entry.seq for entry in found] == list(range(32))
        assert found == list(raw.entries(layout.path(names.RAW), 0))
        assert end == files.length(layout.path(names.RAW)) - len("torn")


def test_a_place_in_the_middle_of_a_line_is_none(layout: Layout) -> None:
    """Also where the file is shorter, or absent."""
    put(layout.path(names.RAW), lines(2))
    assert backlog.checksum(layout.path(names.RAW), len(lines(1))) >= 0
    assert backlog.checksum(layout.path(names.RAW), len(lines(1)) - 1) == -1
    assert backlog.checksum(layout.path(names.RAW), len(lines(2)) + 1) == -1
    os.unlink(layout.path(names.RAW))
    assert backlog.checksum(layout.path(names.RAW), 5) == -1
