"""A store over an engine: what becomes of a lost reply, a slow, a restarted and an absent server."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile, StoreUnavailable, VersionConflict
from harness.filesystem.keyvalue import KeyValueFiles
from harness.filesystem.protocol import FileContent
from harness.filesystem.transfer import upload
from harness.stores import log
from harness.stores._engine import EngineStore, pack_entry, unpack_entry
from harness.stores.store import ABSENT, ANY, Store
from harness.stores.urls import open_store
from tests.crash import TORTURE
from tests.stores import proxy
from tests.stores.conftest import made
from tests.stores.places import Place
from tests.stores.proxy import Proxy
from tests.stores.servers import Server, free_port, together

KEY = ("alice", "k")
WRITERS, MARKS = 4, 250 if TORTURE else 12


@pytest.fixture(params=["redis", "postgres"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty place on each server; that of s3 is in test_s3.py, whose process has threads."""
    return made(request.param, tmp_path, request)


@pytest.fixture
def between(served: Place, request: pytest.FixtureRequest) -> Iterator[Proxy]:
    """A proxy before its server."""
    server: Server = request.getfixturevalue(f"{served.name}_server")
    with proxy.before(server.port) as found:
        served.server = served.server.replace(str(server.port), str(found.port))
        yield found


def test_an_entry_is_its_last_tokens_and_its_data() -> None:
    """The newest first, at most eight; what is none is said so."""
    value = b""
    for number in range(20):
        value = pack_entry(f"{number:016x}", unpack_entry(value, "k")[0] if value else "", b"data\n")
    history, data = unpack_entry(value, "k")
    assert data == b"data\n" and [int(history[at : at + 16], 16) for at in range(0, 128, 16)] == [*range(19, 11, -1)]
    for broken in (b"", b"data\n", value[:128], value.replace(b"0", b"\xff")):
        with pytest.raises(BrokenFile, match="k: "):
            unpack_entry(broken, "k")


def test_a_write_that_comes_late_changes_nothing_again(served: Place) -> None:
    """Its token is among those of the entry, though others wrote meanwhile."""
    check_late(served.first)


def check_late(store: Store) -> None:
    """Send a write again."""
    assert isinstance(store, EngineStore)
    tokens = [f"{number:016x}" for number in range(20)]
    for token in tokens:
        assert store.engine.change("k", token.encode(), ANY, token)
    assert store.engine.change("k", b"again", ANY, tokens[12]) == ""
    known = store.get(("k",))
    assert known is not None and known.data == tokens[-1].encode()
    assert known.version.partition("/")[0] == "".join(tokens[:11:-1])


def test_whichever_reply_is_lost_each_call_does_what_it_does_once(served: Place, between: Proxy) -> None:
    """A compare-and-set knows its own write, and a deletion; an append is there once."""
    for number in range(1, 30, 1 if TORTURE else 2):  # each loses two replies
        with_key = ("n", str(number))
        store, between.lost = served.open(), {between.replies + number, between.replies + number + 1}
        first = store.put((*with_key, "k"), b"1", ABSENT)
        second = store.put((*with_key, "k"), b"2", first)
        assert store.get((*with_key, "k")) == (b"2", second)
        with pytest.raises(VersionConflict):
            store.put((*with_key, "k"), b"3", first)
        third = store.put((*with_key, "k"), b"3", ANY)
        end = log.append(store, (*with_key, "log"), b"1\n", 0)
        log.append(store, (*with_key, "log"), b"2\n", end)
        assert log.read(store, (*with_key, "log")).data == b"1\n2\n"
        store.delete((*with_key, "k"), third)
        assert [one[2] for one in store.list(with_key)] == ["log", "log"]
        if between.replies < min(between.lost):
            return
    raise AssertionError("more replies than tried")


def test_of_many_writers_that_lose_replies_no_write_is_lost_and_none_is_there_twice(
    served: Place, between: Proxy
) -> None:
    """Each adds its marks. A write of which nothing says what became of it is an error, never a conflict."""
    between.share = 0.1

    def write(writer: int) -> None:
        store = served.open()
        for number in range(MARKS):
            _add(store, f"{writer}.{number}")

    together(write, WRITERS)
    between.share = 0.0
    assert sorted(_marks(served.open())[0]) == sorted(f"{one}.{two}" for one in range(WRITERS) for two in range(MARKS))


def _marks(store: Store) -> tuple[list[str], str]:
    while True:
        try:
            known = store.get(KEY)
        except StoreUnavailable:
            continue
        return (json.loads(known.data), known.version) if known else ([], ABSENT)


def _add(store: Store, mark: str) -> None:
    while True:
        marks, version = _marks(store)
        try:
            store.put(KEY, json.dumps([*marks, mark]).encode(), version)
            return
        except VersionConflict:
            continue
        except StoreUnavailable:
            if mark in _marks(store)[0]:
                return


def test_a_server_that_never_answers_is_named_with_the_key_and_the_call_ends(served: Place, between: Proxy) -> None:
    """In the time that the URL gives it."""
    store = served.open()
    store.put(KEY, b"old", ANY)
    between.is_silent = True
    begun = time.monotonic()
    with pytest.raises(StoreUnavailable, match="alice/k: the store does not answer") as raised:
        open_store(_with(served, "seconds=0.2")).put(KEY, b"new", ANY)
    assert time.monotonic() - begun < 55 and raised.value.code == 75
    between.is_silent = False
    known = store.get(KEY)
    assert known is not None and known.data in (b"old", b"new")


def test_a_server_that_is_killed_and_starts_again_keeps_what_it_took_and_a_writer_goes_on(
    served: Place, request: pytest.FixtureRequest
) -> None:
    """The writer waits for it, and adds each mark once; the connections of before are made anew."""
    server: Server = request.getfixturevalue(f"{served.name}_server")
    store, done, ended = served.open(), [0], threading.Event()

    def write() -> None:
        while not ended.is_set():
            _add(store, str(done[0]))
            done[0] += 1

    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(2):
        count, until = done[0], time.monotonic() + 60
        while done[0] < count + 20 and time.monotonic() < until:
            time.sleep(0.01)
        server.kill()
        server.start()
    ended.set()
    writer.join()
    marks, _ = _marks(served.open())
    assert marks == [str(one) for one in range(done[0])] and len(marks) > 40


def test_a_server_that_is_not_there_is_named_with_the_key(served: Place) -> None:
    """For each call."""
    server = served.server.rpartition(":")
    store = open_store(f"{server[0]}:{free_port()}{server[2].lstrip('0123456789')}")
    for call in (lambda: store.get(KEY), lambda: store.put(KEY, b"", ANY)):
        with pytest.raises(StoreUnavailable, match="alice"):
            call()


def _with(served: Place, option: str) -> str:
    return served.url + ("&" if "?" in served.url else "?") + option


def test_a_hundred_lines_of_a_large_file_take_two_round_trips_and_two_mebibytes(served: Place, between: Proxy) -> None:
    """Where they lie in one part of it, else a third; a search in the file's folder and its size cost no content."""
    files = KeyValueFiles(served.open(), ("f",))
    rows = [b"line %07d of a large file\n" % number for number in range(360_000)]
    upload(files, {"d/big": b"".join(rows), "d/small": b"x\n"})
    files.read("d/big", 7, 1)
    for offset in (0, 150_000, 319_900):
        cost = between.cost(partial(files.read, "d/big", offset, 100))
        found = files.read("d/big", offset, 100)
        assert isinstance(found, FileContent) and found.data == b"".join(rows[offset : offset + 100])
        assert cost.trips <= 2 and cost.given <= 2 * 2**20, cost
    assert between.cost(lambda: files.read("d/big", 2**20 // len(rows[0]) - 50, 100)).trips <= 3
    assert between.cost(lambda: files.stat("d/big")).trips == 1
    for act in (lambda: files.ls("d"), lambda: files.glob("*g", "d")):
        cost = between.cost(act)
        assert cost.trips <= 4 and cost.given < 20_000, cost


def test_an_append_costs_the_same_however_long_the_log_is(served: Place, between: Proxy) -> None:
    """One round trip, and its own bytes; so does a look whether the log goes on."""
    store, row = served.open(), b"x" * 1000 + b"\n"
    costs = [between.cost(partial(log.append, store, ("log",), row, at)) for at in range(100)]
    early, late = costs[10:20], costs[-10:]
    assert {one.trips for one in early + late} == {1}
    assert max(map(sum, late)) <= max(map(sum, early)) + 20 < 3000
    assert between.cost(lambda: log.has_more(store, ("log",), 100)).trips <= 2
