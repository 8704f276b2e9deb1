"""Receipts read back as they were written, and give the result of a check in a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import BrokenFile
from harness.mission import receipts
from harness.mission.receipts import Receipt
from harness.state import files
from tests.helpers import put


def receipt(**values: Any) -> Receipt:
    """A green receipt, or one with other fields."""
    told: dict[str, Any] = {"claim": "A", "command": "true", "phase": "after", "exit": 0, "seconds": 0.1, "output": ""}
    told |= {"output_sha256": "0" * 64, "head": "h", "tree": "t", "by": "r", "host": "x", "at": "2026-04-24T10:05:12Z"}
    return Receipt(**{**told, **values})


@pytest.mark.parametrize(
    ("exit_status", "green", "verdict"),
    [(0, True, "green"), (1, False, "red (exit 1)"), (None, False, "red (timed out)")],
)
def test_only_exit_0_is_green(exit_status: int | None, green: bool, verdict: str) -> None:
    """A check that timed out is as red as one that failed."""
    one = receipt(exit=exit_status)
    assert (one.green, one.verdict) == (green, verdict)


def test_below_its_output_stand_the_trace_and_the_notes() -> None:
    """Whoever shows a receipt shows these; one that has none ends with its output."""
    assert (
        receipt(trace="+ false", notes=["one", "two"]).remarks == f"{receipts.TRACED}\n+ false\nnote: one\nnote: two\n"
    )
    assert receipt().remarks == ""


def test_receipts_come_back(tmp_path: Path) -> None:
    """One line each, whatever the output."""
    made = [receipt(), receipt(output="a\nb\u2028\0é", exit=None, guard=True)]
    put(str(tmp_path / "r"), receipts.render(made))
    assert receipts.render(made).count(b"\n") == 2
    assert receipts.load(str(tmp_path / "r")) == made


def test_a_receipt_that_is_just_being_written_is_passed_over(tmp_path: Path) -> None:
    """A run without receipts has none."""
    put(str(tmp_path / "r"), receipts.render([receipt(), receipt(claim="B")])[:-9])
    assert receipts.load(str(tmp_path / "r")) == [receipt()]
    assert receipts.load(str(tmp_path / "none")) == []


@pytest.mark.parametrize("line", [b"{", b"[" * 100_000, b"[]", b"5", b'{"claim":"A"}', b"\xff"])
def test_a_line_that_is_no_receipt_is_named(tmp_path: Path, line: bytes) -> None:
    """The error has its number: a red check must not vanish."""
    put(str(tmp_path / "r"), receipts.render([receipt()]) + b"\n" + line + b"\n")
    with pytest.raises(BrokenFile, match=r"/r, line 3: the line is not a receipt"):
        receipts.load(str(tmp_path / "r"))


ODD: list[dict[str, Any]] = [
    {"claim": 5},
    {"command": None},
    {"output": ["x"]},
    {"exit": "0"},
    {"exit": True},
    {"seconds": "1"},
    {"seconds": float("nan")},
    {"seconds": 10**400},
    {"seconds": -1},
    {"guard": 1},
    {"flaky": "no"},
    {"notes": "flaky"},
    {"notes": [1]},
    {"at": {}},
]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_a_field_of_a_wrong_kind_is_named_with_its_line(tmp_path: Path, odd: dict[str, Any]) -> None:
    """It is not reported later as a bug in the harness."""
    line = files.dump_json({**receipt().asdict(), **odd})
    put(str(tmp_path / "r"), receipts.render([receipt()]) + line)
    with pytest.raises(BrokenFile, match=rf"/r, line 2: '{next(iter(odd))}' is not what a check leaves there"):
        receipts.load(str(tmp_path / "r"))


def test_a_receipt_without_what_came_later_is_read(tmp_path: Path) -> None:
    """An older version did not write guard, flaky, notes, reason and trace."""
    later = ("guard", "flaky", "notes", "reason", "trace")
    old = {name: value for name, value in receipt().asdict().items() if name not in later}
    put(str(tmp_path / "r"), files.dump_json(old))
    assert receipts.load(str(tmp_path / "r")) == [receipt()]


def test_what_was_left_out_of_an_output_is_named() -> None:
    """Head and tail stay; a short output stays whole."""
    assert receipts.shortened(b"all", b"", b"", 3) == "all"
    assert receipts.shortened(b"head", b"", b"tail", 8) == "headtail"
    assert receipts.shortened(b"head", b"", b"tail", 1008) == "head\n[… 1000 bytes left out …]\ntail"
    assert receipts.shortened(b"head", b"middle", b"tail", 1014) == "head\n[… 1000 bytes left out …]\nmiddle\n[…]\ntail"
    assert receipts.shortened("é".encode()[:1], b"", b"", 1) == "\ufffd"


@pytest.mark.parametrize(
    ("output", "trace", "fault"),
    [
        ("", "", "test -f x"),
        ("what a pity\n", "+ false", "what a pity"),
        ("", "+ out=a\n+ [[ a  == b ]]\n+1 exit 1", "[[ a  == b ]]"),
        ("", "+1 exit 1", "test -f x"),
    ],
)
def test_where_the_output_says_nothing_the_fault_is_what_the_trace_saw(output: str, trace: str, fault: str) -> None:
    """The last command that came after a good one; without one the check itself."""
    assert receipt(command="test -f x", exit=1, output=output, trace=trace).fault == fault
