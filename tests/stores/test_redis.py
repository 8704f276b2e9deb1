"""The store on Redis."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import redis

from harness.base.errors import BrokenFile, StoreRefusal
from harness.filesystem.keyvalue import KeyValueFiles
from harness.filesystem.protocol import FileFault, Listing
from harness.filesystem.transfer import upload
from harness.stores._engine import pack_entry
from harness.stores.memory import MemoryStore
from harness.stores.store import ABSENT, ANY, encoded
from harness.stores.urls import open_store
from tests.stores import proxy, servers
from tests.stores.conftest import skip_without
from tests.stores.servers import Server


def test_a_full_server_refuses_a_write_and_keeps_the_old_value(tmp_path: Path) -> None:
    """The error names the store and the key; nothing of the new value is there, and reading goes on."""
    skip_without("redis")
    with servers.redis(tmp_path, "--maxmemory", "4mb") as server:
        store = open_store(server.url)
        store.put(("a", "k"), b"old", ABSENT)
        with pytest.raises(StoreRefusal, match=r"harness/a/\d+: the store refuses this \(.*maxmemory") as raised:
            for number in range(99):
                store.put(("a", str(number)), os.urandom(1 << 20), ABSENT)
        assert raised.value.code == 11
        with pytest.raises(StoreRefusal, match="a/k"):
            store.put(("a", "k"), os.urandom(1 << 20), ANY)
        known = store.get(("a", "k"))
        assert known is not None and known.data == b"old"
        assert all(store.get(one) for one in store.list(()))


def test_a_wrong_password_is_said_at_once_and_no_password_is_shown(tmp_path: Path) -> None:
    """Neither in an error nor where a key is described."""
    skip_without("redis")
    with servers.redis(tmp_path, "--requirepass", "right") as server:
        for place in (server.url, server.url.replace("//", "//:secret@")):
            store = open_store(place)
            with pytest.raises(StoreRefusal, match=r"(NOAUTH|WRONGPASS|Authentication|invalid)") as raised:
                store.get(("k",))
            assert "secret" not in f"{raised.value} {store.describe(('k',))}"


def test_an_option_that_nobody_knows_is_said_so(redis_server: Server) -> None:
    """It is no server that is down."""
    with pytest.raises(StoreRefusal, match="color"):
        open_store(f"{redis_server.url}?color=red").get(("k",))


def test_what_another_program_keeps_under_a_key_is_no_value(redis_server: Server) -> None:
    """It is neither absent nor empty; a prefix with any letters is one store."""
    store = open_store(f"{redis_server.url}?prefix=a}}b%2Fc")
    store.put(("k",), b"v", ANY)
    other = open_store(f"{redis_server.url}?prefix=a")
    assert other.list(()) == [] and store.list(()) == [("k",)]
    servers.ask(redis_server.port, b"SET {foreign}/k short\r\n")
    with pytest.raises(BrokenFile, match="foreign/k"):
        open_store(f"{redis_server.url}?prefix=foreign").get(("k",))


def test_a_listing_of_5000_files_takes_three_round_trips(redis_server: Server) -> None:
    """With their sizes and times, and no content of them."""
    made = MemoryStore()
    upload(KeyValueFiles(made), {f"many/{number:04}": b"x" * number for number in range(5000)})
    with proxy.before(redis_server.port) as between:
        store = open_store(f"{redis_server.url.replace(str(redis_server.port), str(between.port))}?prefix=many")
        written = {encoded(key): made.get(key) for key in made.list(())}
        client = redis.Redis.from_url(redis_server.url)
        client.mset({f"{{many}}/{name}": pack_entry("0" * 16, "", one.data) for name, one in written.items() if one})
        client.zadd("{many}names", dict.fromkeys(written, 0))
        files = KeyValueFiles(store)
        files.stat("many/0001")
        found = list[Listing | FileFault]()
        cost = between.cost(lambda: found.append(files.ls("many", most=9999)))
        assert cost.trips <= 3 and cost.given < 10_000 * 100, cost
    assert isinstance(found[0], Listing)
    assert [one.size for one in found[0].entries] == [*range(5000)]
