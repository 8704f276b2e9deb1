"""Whether every run is accounted for: a frequent check, so it parses and hashes nothing, and accuses no intact run."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.mission import runs
from harness.run import recover
from harness.state import files, names
from harness.workplace.recovery import unsettled_runs
from tests import crash
from tests.missions import House
from tests.run.test_recover import killed


def test_a_mission_in_which_nobody_died_has_nobody_unsettled(house: House) -> None:
    """Neither before its first run nor after some, nor while one is open."""
    assert unsettled_runs.unsettled(house.layout) == []
    house.work({"run": "echo 1 > 1.txt"})
    assert (unsettled_runs.unsettled(house.layout), unsettled_runs.unbooked(house.layout)) == ([], [])
    with files.Lock(house.layout.run("7-worker").lock):
        assert unsettled_runs.unsettled(house.layout) == []
    assert unsettled_runs.unsettled(house.layout) == ["7-worker"]


@pytest.mark.parametrize("left", [["lock"], ["context"]])
def test_a_run_that_died_is_found_by_whatever_is_left_of_it(house: House, left: list[str]) -> None:
    """The evidence is its lease or its context."""
    run_id = killed(house)
    run = house.layout.run(run_id)
    for name, path in (("lock", run.lock), ("context", run.context)):
        if name not in left:
            os.unlink(path)
    assert unsettled_runs.unsettled(house.layout) == [run_id]


def test_a_line_behind_what_the_ledger_knows_settles_nobody(house: House) -> None:
    """The agent could have written the line."""
    house.work({"run": "echo 2 > 2.txt"}, feature="F-002")
    run_id = killed(house)
    os.unlink(house.layout.run(run_id).lock)
    with open(house.layout.path(names.RUN_LOG), "ab") as books:
        books.write(files.dump_json({**house.ran()[-1], "run": run_id}))
    assert unsettled_runs.unsettled(house.layout) == [run_id]
    assert (
        next(unsettled_runs.believed(house.layout)).run == run_id
    )  # no run is known to have died: `unsettled` is for that
    Path(house.layout.run(run_id).lock).touch()
    assert next(unsettled_runs.believed(house.layout)).run != run_id


def test_books_are_short_where_a_finished_run_lacks_its_line_or_nothing_is_left(house: House) -> None:
    """A line that a person has fixed is not missing, and neither is one before the first run."""
    assert not unsettled_runs.books_short(house.layout)
    house.work({"run": "echo 1 > 1.txt"})
    house.work({"run": "echo 2 > 2.txt"}, feature="F-002")
    path = Path(house.layout.path(names.RUN_LOG))
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second.replace(b'"trigger":"",', b""))
    assert not unsettled_runs.books_short(house.layout)
    for short in (first, second, b""):
        path.write_bytes(short)
        assert unsettled_runs.books_short(house.layout)
        with pytest.raises(BrokenFile, match=r"runs\.jsonl: it is shorter than the harness left it"):
            unsettled_runs.require_books(house.layout)
    path.unlink()
    assert unsettled_runs.books_short(house.layout)
    assert len(unsettled_runs.unbooked(house.layout)) == 2


def test_a_ledger_that_does_not_parse_accuses_nobody(house: House) -> None:
    """The next writer reports it."""
    house.work({"run": "echo 1 > 1.txt"})
    Path(house.layout.path(names.LEDGER)).write_text("{")
    assert (unsettled_runs.unsettled(house.layout), unsettled_runs.books_short(house.layout)) == ([], False)
    assert runs.totals(house.layout).runs == 1


def test_ids_are_those_of_whole_lines_whoever_wrote_them() -> None:
    """The quick look at lines as we write them finds what the pattern finds."""
    pick, pieces = random.Random(1), ['{"run":"a', '"', ",x}", "\n", '{ "run": "b",}\n', '{"run":"c","z":1}\n']
    for _ in range(5000):
        log = "".join(pick.choice(pieces) for _ in range(pick.randrange(6))).encode()
        assert unsettled_runs._ids(log) == {name.decode() for name in re.findall(unsettled_runs.LOGGED, log, re.M)}, log


@pytest.mark.parametrize(
    "name",
    [
        *("features.json.{gone}.tmp", "cache/config.json.{gone}.tmp", "objects/ab.{gone}.tmp", ".git/HEAD.{gone}.tmp"),
        *("journal/3", "journal/record.tmp"),
    ],
)
def test_a_write_that_was_cut_short_is_found_and_its_remains_are_removed(house: House, name: str) -> None:
    """No run died: the next start does it all the same, and says nothing."""
    assert not unsettled_runs.cut_short(house.layout)
    gone = crash.start(lambda: None)
    crash.end(gone)
    left = house.state / name.format(gone=gone)
    left.parent.mkdir(exist_ok=True)
    left.write_text("half")
    assert unsettled_runs.cut_short(house.layout)
    assert recover.recover_dead(house.layout) == []
    assert (left.exists(), unsettled_runs.cut_short(house.layout)) == (False, False)
