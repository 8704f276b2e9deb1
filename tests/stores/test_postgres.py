"""The store on PostgreSQL."""

from __future__ import annotations

import os

import pytest

from harness.base.errors import StoreRefusal
from harness.stores._postgres import PostgresEngine
from harness.stores.store import ABSENT, ANY
from harness.stores.urls import open_store
from tests import crash
from tests.stores import servers
from tests.stores.conftest import skip_without
from tests.stores.servers import Server


def test_a_full_disk_refuses_a_write_and_keeps_the_old_value() -> None:
    """The error names the store and the key; nothing of the new value is there. Here a file of the server may not be longer."""
    skip_without("postgres")
    with servers.postgres(limit=20_000_000) as server:
        store = open_store(server.url)
        store.put(("a", "k"), b"old", ABSENT)
        with pytest.raises(StoreRefusal, match=r"harness/a/k: the store refuses this \(.*extend file"):
            store.put(("a", "k"), os.urandom(24_000_000), ANY)
        known = store.get(("a", "k"))
        assert known is not None and known.data == b"old"


def test_who_is_denied_is_told_so_at_once_and_no_password_is_shown(postgres_server: Server) -> None:
    """An unknown user or database; a database that may not be written."""
    for url in (postgres_server.url.replace("tests@", "nobody:secret@"), f"{postgres_server.url}-of-nobody"):
        store = open_store(url)
        with pytest.raises(StoreRefusal, match="does not exist") as raised:
            store.get(("k",))
        assert "secret" not in f"{raised.value} {store.describe(('k',))}"
    store = open_store(f"{postgres_server.url}?options=-cdefault_transaction_read_only%3Don")
    with pytest.raises(StoreRefusal, match=r"harness/k: .*read-only"):
        store.put(("k",), b"", ANY)


def test_a_fork_has_connections_of_its_own(postgres_server: Server) -> None:
    """Both go on at once, and neither reads what the other is answered."""
    store = open_store(f"{postgres_server.url}?prefix=forked")

    def write(name: str) -> None:
        for number in range(200):
            store.put((name,), f"{name}{number}".encode(), ANY)
            known = store.get((name,))
            assert known is not None and known.data == f"{name}{number}".encode()

    write("before")
    child = crash.start(lambda: write("child"))
    write("parent")
    assert crash.end(child) == 0


def test_many_threads_have_few_connections_and_a_server_that_starts_again_gets_new_ones(
    postgres_server: Server,
) -> None:
    """A server has not many to give, and forgets those that were there."""
    store = open_store(f"{postgres_server.url}?prefix=threads")
    servers.together(lambda number: store.put((str(number),), b"", ANY), 64)
    assert len(store.list(())) == 64
    rows = PostgresEngine(postgres_server.url, "", 5).execute(
        "select count(*)::text from pg_stat_activity where usename = 'tests'"
    )
    assert int(rows[0][0]) <= 8 + 3  # with those of other tests
    postgres_server.kill()
    postgres_server.start()
    assert store.get(("1",)) is not None
