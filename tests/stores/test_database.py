"""A database with transactions, on both engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import BrokenFile, StoreRefusal, StoreUnavailable, UsageFault
from harness.stores.database import Database, open_database
from tests.stores import servers
from tests.stores.servers import Server


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """One with an empty table `kept`."""
    url = (
        f"sqlite://{tmp_path}/deep/rows.db"
        if request.param == "sqlite"
        else request.getfixturevalue("postgres_server").url
    )
    found = open_database(url)
    with found.transaction() as execute:
        execute("drop table if exists kept")
        execute("create table kept (name text primary key, number bigint)")
    return found


def test_a_transaction_is_whole_or_undone_and_values_come_back_as_they_were(database: Database) -> None:
    """Texts, integers and NULL; a fault in the middle undoes what was before it, and the next transaction is a new one."""
    with database.transaction() as execute:
        execute("insert into kept (name, number) values ($1, $2), ($3, $4)", "ünï '\n", -(2**62), "none", None)
    for act in (lambda execute: execute("insert into kept (name) values ($1)", "none"), lambda execute: 1 / 0):
        with pytest.raises((StoreRefusal, ZeroDivisionError)), database.transaction() as execute:
            execute("update kept set number = 7")
            act(execute)
    with database.transaction() as execute:
        assert {row["name"]: row["number"] for row in execute("select * from kept")} == {
            "ünï '\n": -(2**62),
            "none": None,
        }


def test_none_of_many_writers_is_lost(database: Database) -> None:
    """Each reads and writes in one transaction."""
    with database.transaction() as execute:
        execute("insert into kept (name, number) values ('n', 0)")

    def count(_: int) -> None:
        for _ in range(10):
            with database.transaction() as execute:
                assert execute("select number from kept")[0]["number"] >= 0  # who reads first may write as well
                execute("update kept set number = number + 1 where name = 'n'")

    servers.together(count, 8)
    with database.transaction() as execute:
        assert execute("select number from kept") == [{"number": 80}]


def test_what_is_no_database_is_said_without_a_password(tmp_path: Path) -> None:
    """A file with something else, a server that is not there, a URL of a store."""
    (tmp_path / "notes").write_text("What people wrote.\n" * 99)
    for url, kind, words in (
        (f"sqlite://{tmp_path}/notes", BrokenFile, "notes: file is not a database"),
        (f"postgresql://me:secret@127.0.0.1:{servers.free_port()}/x", StoreUnavailable, "127.0.0.1"),
        ("redis://127.0.0.1/0", UsageFault, "is not a database"),
    ):
        with pytest.raises(kind, match=words) as raised, open_database(url).transaction() as execute:
            execute("select 1")
        assert "secret" not in str(raised.value)


def test_a_server_that_starts_again_is_asked_anew(postgres_server: Server) -> None:
    """A transaction begins again on another connection; one that was under way is told to its caller."""
    database = open_database(postgres_server.url)
    with database.transaction() as execute:
        execute("select 1")
    with pytest.raises(StoreUnavailable), database.transaction() as execute:
        postgres_server.kill()
        execute("select 1")
    postgres_server.start()
    with database.transaction() as execute:
        assert execute("select 1 as one") == [{"one": 1}]
