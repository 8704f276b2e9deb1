"""orders.jsonl: an order waits until a line says what came of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.mission import order_log
from harness.state import files, names
from harness.state.layout import Layout

GIVEN = (
    '{"id": "O-1", "at": "2026-04-24T10:05:12Z", "by": "person", "verb": "feature block", "args": ["F-001", "wait"]}\n'
)
DONE = '{"id": "O-1", "at": "2026-04-24T10:05:13Z", "state": "applied", "said": "F-001 is blocked"}\n'


@pytest.mark.parametrize(("text", "waiting"), [("", []), (GIVEN, ["O-1"]), (GIVEN + DONE, [])])
def test_what_waits_is_what_has_no_result(tmp_path: Path, text: str, waiting: list[str]) -> None:
    """Absent, given, carried out."""
    layout = Layout(str(tmp_path))
    if text:
        files.make_folder(layout.state)
        Path(layout.path(names.ORDERS)).write_text(text)
    assert [one.id for one in order_log.pending(layout)] == waiting


def test_a_line_that_is_no_order_is_named(tmp_path: Path) -> None:
    """File, line and what is wrong."""
    layout = Layout(str(tmp_path))
    files.make_folder(layout.state)
    Path(layout.path(names.ORDERS)).write_text(GIVEN + '{"id": 1}\n')
    with pytest.raises(BrokenFile, match=r"orders\.jsonl, line 2"):
        order_log.pending(layout)
