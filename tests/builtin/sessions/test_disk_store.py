"""The store on disk: versions, appends, and a queue whose places die with their process."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from harness.base.errors import VersionConflict
from harness.builtin.sessions._disk_store import FileStore, Lost
from tests.crash import end, start


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    """An empty store."""
    return FileStore(str(tmp_path / "sessions"))


def test_a_value_is_put_only_where_its_version_is_the_expected_one(store: FileStore) -> None:
    """Of two who put at once, one is told."""
    assert store.get("u/s/state.json") is None
    first = store.put("u/s/state.json", b"one", "")
    for wrong in ("", "0" * 64):
        with pytest.raises(VersionConflict):
            store.put("u/s/state.json", b"two", wrong)
    store.put("u/s/state.json", b"two", first)
    item = store.get("u/s/state.json")
    assert item is not None and item.data == b"two" and item.version != first


def test_an_append_is_where_its_writer_knows_the_end_or_nowhere(store: FileStore) -> None:
    """Lines of another change the end; a torn line does not, and goes."""
    length = store.append("u/s/log", b"one\n", 0)
    assert (length, store.length("u/s/log")) == (4, 4)
    store.append("u/s/log", b"of another\n")
    with pytest.raises(VersionConflict):
        store.append("u/s/log", b"two\n", length)
    length = store.length("u/s/log")
    path = Path(store.where("u/s/log"))
    path.write_bytes(path.read_bytes() + b"torn")
    assert store.append("u/s/log", b"three\n", length) == length + 6
    assert store.tail("u/s/log", 4) == b"of another\nthree\n"
    with pytest.raises(VersionConflict):
        store.append("u/s/log", b"four\n", 10_000)
    store.sync("u/s/log")


def test_places_of_a_queue_are_in_their_order_and_their_numbers_grow(store: FileStore) -> None:
    """Also where all of them were given up in between."""
    one, two, three = (store.enter("u/s/queue") for _ in range(3))
    assert store.queue("u/s/queue") == [one.number, two.number, three.number]
    assert [place.first() for place in (one, two, three)] == [True, False, False]
    two.leave()
    one.leave()
    assert three.first() and store.queue("u/s/queue") == [three.number]
    three.leave()
    three.leave()
    assert store.enter("u/s/queue").number > three.number


def test_the_place_of_a_process_that_died_is_skipped(store: FileStore) -> None:
    """Whoever is behind it goes on, without waiting for a time."""

    def dies() -> None:
        store.enter("u/s/queue")
        os.kill(os.getpid(), signal.SIGKILL)

    assert end(start(dies)) == -signal.SIGKILL
    assert len(os.listdir(store.where("u/s/queue"))) == 2
    place = store.enter("u/s/queue")
    assert place.first() and store.queue("u/s/queue") == [place.number]


def test_who_lost_its_place_is_told(store: FileStore) -> None:
    """At its next step, and the file of whoever came then stays."""
    place = store.enter("u/s/queue")
    place.check()
    os.unlink(place.path)
    with pytest.raises(Lost):
        place.check()
    other = store.enter("u/s/queue")
    place.leave()
    other.check()
    assert other.number > place.number


def test_processes_that_enter_at_once_get_different_places(store: FileStore) -> None:
    """Each gets one, and gives it up only once it was the first."""

    def enters() -> None:
        for _ in range(20):
            place = store.enter("u/s/queue")
            while not place.first():
                place.check()
            store.append("u/s/log", f"{place.number}\n".encode(), store.length("u/s/log"))
            place.leave()

    assert [end(pid) for pid in [start(enters) for _ in range(3)]] == [0, 0, 0]
    numbers = [int(line) for line in store.tail("u/s/log").split()]
    assert len(numbers) == 60 and numbers == sorted(set(numbers))
