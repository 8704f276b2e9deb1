"""One reader of JSON lines: a torn last line is skipped and healed, an earlier broken one is named."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import BrokenFile
from harness.base.schema import InvalidField
from harness.memory import archive, identity
from harness.mission import contract_log, issues, order_log, receipts, runs
from harness.state import json_lines
from harness.state.layout import Layout
from tests.helpers import mission, put


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A file that does not exist yet."""
    return str(tmp_path / "lines.jsonl")


def numbers(data: bytes | None) -> list[int]:
    """The numbers in lines that hold one each, all below ten."""

    def made(row: Any) -> int:
        if row + 0 > 9:
            raise InvalidField(f"{row} is above nine")
        return int(row)

    return json_lines.parse(data, "f", made, "the line is no number", "Mend it.")


@pytest.mark.parametrize(
    ("data", "found"),
    [(None, []), (b"", []), (b"1\n2\n", [1, 2]), (b"1\n\n2\n\0\0", [1, 2]), (b"1\n2", [1]), (b"1\n{", [1]), (b"{", [])],
)
def test_whole_lines_are_read_and_a_torn_last_one_is_passed_over(data: bytes | None, found: list[int]) -> None:
    """Even if it parses: without its newline it may be half of another line."""
    assert numbers(data) == found


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"{", "the line is no number"),
        (b"[" * 100_000, "the line is no number"),
        (b"null", "the line is no number"),
        (b"\xff", "the line is no number"),
        (b"10", "10 is above nine"),
    ],
)
def test_a_broken_line_is_named_with_its_number_and_the_remedy(line: bytes, fault: str) -> None:
    """Also if it is the last line, or follows empty lines."""
    for after in (b"", b"3\n"):
        with pytest.raises(BrokenFile, match=f"^f, line 4: {fault}. Mend it.$") as caught:
            numbers(b"1\n2\n\n" + line + b"\n" + after)
        assert caught.value.line == 4


@pytest.mark.parametrize(
    ("data", "healed"),
    [
        (b"", b""),
        (b"1\n", b"1\n"),
        (b"1\n2", b"1\n2\n"),
        (b"1\n{", b"1\n"),
        (b"{", b""),
        (b"1\n2\0\0", b"1\n2\n"),
        (b"1\n\0\0", b"1\n"),
        (b"\0", b""),
    ],
)
def test_a_torn_last_line_is_healed(data: bytes, healed: bytes) -> None:
    """A line that lacks only its newline is kept; a torn one would stay broken forever."""
    assert json_lines.healed(data) == healed
    assert json_lines.healed(healed) == healed


def test_lines_come_backwards_with_their_places_and_any_block_size(path: str) -> None:
    """A torn last line is skipped, however long it is; with a bound the file ends there."""
    dice = random.Random(7)
    for _ in range(150):
        data = bytes(dice.choice(b"ab\n") for _ in range(dice.randrange(40)))
        put(path, data)
        for most in (None, len(data) // 2):
            whole = [line for line in data[:most].split(b"\n")[:-1] if line]
            for block in (1, 2, 3, 7, 64):
                found = list(json_lines.backwards(path, block, most))
                assert [line for _, line in found] == whole[::-1], (data, block)
                assert all(data[start : start + len(line) + 1] == line + b"\n" for start, line in found)
                assert all(data[start - 1 : start] in (b"", b"\n") for start, _ in found)


def test_a_line_has_the_number_that_an_editor_shows(path: str) -> None:
    """Counted block by block: the file is longer than one."""
    Path(path).write_bytes(b"".join(b"%d%s\n" % (number, b" " * 5000) for number in range(1, 30)))
    assert [json_lines.number(path, offset) == int(line) for offset, line in json_lines.backwards(path)] == [True] * 29


def test_no_file_has_no_lines(path: str) -> None:
    """An absent run log is an empty run log."""
    assert list(json_lines.backwards(path)) == []


READERS: dict[str, Callable[[Layout, str], object]] = {
    "runs.jsonl": lambda layout, path: list(runs.finished(layout)),
    "receipts.jsonl": lambda layout, path: receipts.load(path),
    "contract-log.jsonl": lambda layout, path: contract_log.load(layout),
    "issues.jsonl": lambda layout, path: issues.load(layout),
    "orders.jsonl": lambda layout, path: order_log.pending(layout),
    "memory/archive.jsonl": lambda layout, path: [*archive.backwards(path, 0)],
    "evidence.jsonl": lambda layout, path: identity.parse_evidence(Path(path).read_bytes(), path),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("line", [b"{", b"{}", b"[]", b"5", b"null", b"\xff", b'{"surprise": 1}', b"[" * 100_000])
def test_every_file_of_lines_has_the_one_rule(tmp_path: Path, name: str, line: bytes) -> None:
    """Torn at the end, a line does not count; followed by a newline, it ends with 65 and its number."""
    layout = mission(tmp_path)
    path = os.path.join(layout.state, name)
    put(path, b"\n" + line)
    assert READERS[name](layout, path) == []
    put(path, b"\n" + line + b"\n")
    with pytest.raises(BrokenFile) as caught:
        READERS[name](layout, path)
    assert caught.value.line == 2
