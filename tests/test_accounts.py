"""Whether every run is accounted for: asked often, so nothing is parsed or hashed, and nothing that is whole is accused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from missions import House
from test_recover import killed

from harness import accounts, files, runs
from harness.errors import BrokenFile


def test_a_mission_in_which_nobody_died_has_nobody_unsettled(house: House) -> None:
    """Neither before its first run nor after some, nor while one lives."""
    assert accounts.unsettled(house.layout) == []
    house.work({"run": "echo 1 > 1.txt"})
    assert (accounts.unsettled(house.layout), accounts.unbooked(house.layout)) == ([], [])
    with files.Lock(house.layout.run("7-worker").lock):
        assert accounts.unsettled(house.layout) == []
    assert accounts.unsettled(house.layout) == ["7-worker"]


@pytest.mark.parametrize("left", [["lock"], ["context"], ["signature"]])
def test_a_run_that_died_is_found_by_whatever_is_left_of_it(house: House, left: list[str]) -> None:
    """Its lock, its context, or its name in the mission's lock."""
    run_id = killed(house)
    run = house.layout.run(run_id)
    for name, path in (("lock", run.lock), ("context", run.context), ("signature", house.layout.mission_lock)):
        if name not in left:
            os.unlink(path)
    assert accounts.unsettled(house.layout) == [run_id]


def test_a_line_behind_what_the_ledger_knows_settles_nobody(house: House) -> None:
    """The agent could have written it."""
    house.work({"run": "echo 2 > 2.txt"}, feature="F-002")
    run_id = killed(house)
    os.unlink(house.layout.run(run_id).lock)
    with open(house.layout.books, "ab") as books:
        books.write(files.dump_json({**house.ran()[-1], "run": run_id}))
    assert accounts.unsettled(house.layout) == [run_id]
    assert next(accounts.believed(house.layout)).run == run_id  # no run is known to have died: `unsettled` is for that
    Path(house.layout.run(run_id).lock).touch()
    assert next(accounts.believed(house.layout)).run != run_id


def test_books_are_short_where_a_finished_run_lacks_its_line_or_nothing_is_left(house: House) -> None:
    """Not where a person has mended a line, and not before the first run."""
    assert not accounts.books_short(house.layout)
    house.work({"run": "echo 1 > 1.txt"})
    house.work({"run": "echo 2 > 2.txt"}, feature="F-002")
    path = Path(house.layout.books)
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second.replace(b'"trigger":"",', b""))
    assert not accounts.books_short(house.layout)
    for short in (first, second, b""):
        path.write_bytes(short)
        assert accounts.books_short(house.layout)
        with pytest.raises(BrokenFile, match=r"runs\.jsonl: it is shorter than the harness left it"):
            accounts.require_books(house.layout)
    path.unlink()
    assert accounts.books_short(house.layout)
    assert len(accounts.unbooked(house.layout)) == 2


def test_a_ledger_that_does_not_parse_accuses_nobody(house: House) -> None:
    """Whoever writes next tells of it."""
    house.work({"run": "echo 1 > 1.txt"})
    Path(house.layout.ledger).write_text("{")
    assert (accounts.unsettled(house.layout), accounts.books_short(house.layout)) == ([], False)
    assert runs.totals(house.layout).runs == 1
