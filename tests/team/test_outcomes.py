"""Promises of harness/team/_outcomes.py; what the rows are for is in test_reconcile.py."""

from __future__ import annotations

from pathlib import Path

from harness.team._outcomes import ACCEPTED, INTENDED, REFUSED, FileOutcome, OutcomeLog, prompt_lines


def test_rows_are_there_for_the_next_call(tmp_path: Path) -> None:
    """Without one that a kill has torn."""
    path = tmp_path / "deep/f1.jsonl"
    log, rows = (
        OutcomeLog(str(path)),
        [FileOutcome(path="a", outcome=ACCEPTED), FileOutcome(path="b", outcome=REFUSED, why="No.")],
    )
    log.add(FileOutcome(path="a", outcome=INTENDED, digest="d"))
    for row in rows:
        log.add(row)
    path.write_bytes(path.read_bytes() + b'{"path": "c", "outc')
    again = OutcomeLog(str(path))
    assert (again.intended, [*again.settled.values()]) == ({"a": "d"}, rows)
    assert prompt_lines(rows) == ["b: refused. No."]
    again.add(FileOutcome(path="c", outcome=ACCEPTED))
    assert [*OutcomeLog(str(path)).settled] == ["a", "b", "c"]
