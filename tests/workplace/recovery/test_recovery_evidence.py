"""Recovery evidence of a dead run: what is there counts where it matches the ledger, and nothing is made up."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.mission import runs
from harness.state import files, names
from harness.workplace.recovery import recovery_evidence
from tests.missions import House
from tests.run.test_recover import killed


def ledger_of(house: House) -> dict[str, list[object]]:
    """The ledger on disk."""
    return dict(json.loads(house.read("ledger.json")))


def test_a_run_had_closed_where_its_line_and_its_files_say_the_same(house: House) -> None:
    """The power failed before its lock was removed."""
    run_id = house.work({"run": "echo 1 > 1.txt"})["run"]
    assert recovery_evidence.closed(house.layout, run_id)
    assert not recovery_evidence.closed(house.layout, "another")


@pytest.mark.parametrize("name", ["runs.jsonl", "ledger.json", "result.json", "reply.md", "context.json"])
def test_a_run_had_not_closed_where_one_of_them_says_otherwise(house: House, name: str) -> None:
    """Run log, ledger, result and the digested files must agree."""
    run_id = house.work({"run": "echo 1 > 1.txt"}, {"say": "done"})["run"]
    path = house.state / name if name in ("runs.jsonl", "ledger.json") else house.state / "runs" / run_id / name
    path.write_bytes(path.read_bytes().translate(bytes.maketrans(b"123456789", b"234567891")) + b" ")
    assert not recovery_evidence.closed(house.layout, run_id)


def test_a_context_counts_where_it_parses_and_belongs_to_the_run(house: House) -> None:
    """Else nothing is known of how the run had opened."""
    run_id = killed(house)
    path = Path(house.layout.run(run_id).context)
    known = runs.context(house.layout, run_id)
    assert recovery_evidence.context(house.layout, run_id) == known
    for spoilt in (b"{", b"", files.dump_json({**known.asdict(), "run": "another"})):
        path.write_bytes(spoilt)
        assert recovery_evidence.context(house.layout, run_id) is None
    path.unlink()
    assert recovery_evidence.context(house.layout, run_id) is None


def test_a_ledger_that_does_not_parse_or_is_gone_tells_nothing(house: House) -> None:
    """Then the one in the run's context counts."""
    assert recovery_evidence.ledger(house.layout) == ledger_of(house)
    Path(house.layout.path(names.LEDGER)).write_text("{")
    assert recovery_evidence.ledger(house.layout) == {}
    os.unlink(house.layout.path(names.LEDGER))
    assert recovery_evidence.ledger(house.layout) == {}


def test_books_are_found_in_their_own_head_or_in_the_results(house: House) -> None:
    """The sources are used in this order, and only where they match the ledger."""
    house.work({"usage": {"input": 1}}, feature="F-002")
    path = Path(house.layout.path(names.RUN_LOG))
    before = path.read_bytes()
    path.write_bytes(before + b"more\n")
    assert recovery_evidence.books(house.layout, None) == before
    path.write_bytes(b"other\n")
    assert recovery_evidence.books(house.layout, None) == before
    os.unlink(house.layout.run(json.loads(before)["run"]).result)
    with pytest.raises(BrokenFile, match="no copy of that is left"):
        recovery_evidence.books(house.layout, None)
    path.write_bytes(before.replace(b'"outcome":"no_op"', b'"outcome":"ok"') + b"garbage\n")
    yielded: list[str] = []
    assert recovery_evidence.books(house.layout, yielded).count(b"\n") == 1
    assert yielded == ["runs.jsonl"]


def test_a_run_without_context_began_where_something_of_it_is_left_or_was_taken_away(house: House) -> None:
    """A crash leaves an empty folder, or a half-written file, and a lease that claims something."""
    run = house.layout.run("7-worker")
    os.mkdir(run.folder)
    Path(run.lock).touch()
    Path(run.context + ".55.tmp").touch()
    assert not recovery_evidence.began(house.layout, "7-worker")
    Path(run.stream).touch()
    assert recovery_evidence.began(house.layout, "7-worker")
    os.unlink(run.stream)
    Path(run.lock).write_text("{}")
    assert not recovery_evidence.began(house.layout, "7-worker")
    os.unlink(run.context + ".55.tmp")
    os.truncate(run.lock, 0)
    os.rmdir(run.folder)
    assert recovery_evidence.began(house.layout, "7-worker")
