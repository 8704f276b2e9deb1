"""orders.jsonl: an order waits until a line says what came of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.model import order_log
from harness.store import files
from harness.store.layout import Layout
from tests.missions import House

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
        Path(layout.orders).write_text(text)
    assert [one.id for one in order_log.pending(layout)] == waiting


def test_a_line_that_is_no_order_is_named(tmp_path: Path) -> None:
    """File, line and what is wrong."""
    layout = Layout(str(tmp_path))
    files.make_folder(layout.state)
    Path(layout.orders).write_text(GIVEN + '{"id": 1}\n')
    with pytest.raises(BrokenFile, match=r"orders\.jsonl, line 2"):
        order_log.pending(layout)


def test_a_run_loads_what_carries_orders_out_only_where_one_waits(house: House) -> None:
    """A mission that once had an order pays for it in every later run: 30 ms each."""
    house.harness("feature", "set", "F-001", "title", "Part one")
    house.script("worker", {"run": "touch 1.txt"})
    checkout = Path(order_log.__file__).parents[2]
    worker = f"sys.argv = __file__, _ = [{str(checkout / 'roles/worker.py')!r}, 'F-001']"
    told = "exits.leave = lambda code: print(f'{code} {\"harness.run.orders\" in sys.modules}')"
    start = f"import sys; sys.path.append({str(checkout)!r}); {worker}"
    script = f"{start}\nfrom harness.base import exits; {told}\nexec(open(__file__).read())"
    done = house.run([sys.executable, "-c", script])
    assert done.out.endswith("\n0 False\n"), done
