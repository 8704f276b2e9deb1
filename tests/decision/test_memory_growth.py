"""The growth of a mission's memory, as its archive has it."""

from __future__ import annotations

import json
from pathlib import Path

from harness.decision import memory_growth
from harness.state import names
from tests.missions import House
from tests.report import many


def test_the_memory_grows_with_each_curation(house: House) -> None:
    """Notes add up; lessons and what went to identities are counted as the archive says."""
    many.mission(house.layout, 12)
    ends = {row["run"]: 1.0 for row in house.ran()}
    found, fault = memory_growth.measure(house.layout, ends)
    assert ([one.notes for one in found], fault) == ([5, 10, 15], "")
    rows = [json.loads(line) for line in Path(house.layout.path(names.ARCHIVE)).read_text().split("\n")[:-1]]
    assert found[-1].lessons == sum(row["disposition"] in memory_growth.STAYS for row in rows)


def test_a_line_that_cannot_be_read_ends_the_count(house: House) -> None:
    """The curations before it are returned, with the reason."""
    many.mission(house.layout, 12)
    with Path(house.layout.path(names.ARCHIVE)).open("ab") as stream:
        stream.write(b"{}\n")
    found, fault = memory_growth.measure(house.layout, {row["run"]: 1.0 for row in house.ran()})
    assert [one.notes for one in found] == [5, 10, 15]
    assert "archive.jsonl" in fault
