"""A gate over each store: one holder at a time, in the order of arrival."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.stores import gate
from harness.stores.disk import DiskStore
from harness.stores.store import ANY, Store
from tests.crash import TORTURE
from tests.stores.servers import together

KEY = ("s", "gate.json")
HOLDERS = 16 if TORTURE else 6
HOLDS = """import sys, time
sys.path.insert(0, sys.argv[2])
from harness.stores import gate
from harness.stores.disk import DiskStore
gate.enter(DiskStore(sys.argv[1]), ("s", "gate.json"))
print("in", flush=True)
time.sleep(60)
"""


def test_places_come_in_the_order_in_which_they_were_taken(store: Store) -> None:
    """And each has a larger number than all before, also after the queue was empty."""
    first, second = gate.enter(store, KEY), gate.enter(store, KEY)
    assert first.is_first() and not second.is_first()
    assert gate.waiting(store, KEY) == [first.number, second.number]
    first.leave()
    first.leave()
    assert second.is_first()
    second.leave()
    assert gate.enter(store, KEY).number > second.number


def test_one_holder_at_a_time_of_many_threads(store: Store) -> None:
    """Nobody is inside with another."""
    inside, most, order = [0], [0], list[int]()

    def hold(_: int) -> None:
        place = gate.enter(store, KEY)
        while not place.is_first():
            time.sleep(0.001)
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        order.append(place.number)
        time.sleep(0.001)
        inside[0] -= 1
        place.leave()

    together(hold, HOLDERS)
    assert most == [1] and order == sorted(order) and len(order) == HOLDERS


def test_a_place_that_somebody_removed_is_lost(store: Store) -> None:
    """Its holder learns it before the next write."""
    place = gate.enter(store, KEY)
    store.delete(KEY, ANY)
    with pytest.raises(gate.LostPlace):
        place.check()
    place.leave()


def test_a_place_whose_deadline_passed_is_skipped_and_then_lost(store: Store) -> None:
    """Of a machine that does not answer: here its process cannot be looked at."""
    first, second = gate.enter(store, KEY), gate.enter(store, KEY)
    known = store.get(KEY)
    assert known is not None
    row = json.loads(known.data)
    row["places"][0] |= {"until": time.time() - 1, "holder": {**row["places"][0]["holder"], "node": "elsewhere"}}
    store.put(KEY, json.dumps(row).encode(), known.version)
    assert second.is_first()
    gate.enter(store, KEY)
    with pytest.raises(gate.LostPlace):
        first.check()


def test_a_holder_of_another_machine_is_waited_for_until_its_deadline(store: Store) -> None:
    """Its process id says nothing here."""
    gate.enter(store, KEY)
    second = gate.enter(store, KEY)
    known = store.get(KEY)
    assert known is not None
    row = json.loads(known.data)
    row["places"][0]["holder"] |= {"node": "elsewhere", "pid": 2**30}
    store.put(KEY, json.dumps(row).encode(), known.version)
    assert not second.is_first()


def test_the_place_of_a_killed_process_is_free_at_once(tmp_path: Path) -> None:
    """Nobody waits for a deadline on one machine."""
    home = str(Path(__file__).resolve().parents[2])
    with subprocess.Popen([sys.executable, "-c", HOLDS, str(tmp_path), home], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"in\n"
        mine = gate.enter(DiskStore(str(tmp_path)), KEY)
        assert not mine.is_first()
        other.kill()
        other.wait()
        assert mine.is_first()


def test_whoever_stops_a_gate_reaches_all_that_are_in_it_and_none_that_comes_later(store: Store) -> None:
    """With the words for them; without anybody nothing is written."""
    assert gate.stop(store, KEY, "x") == 0 and store.get(KEY) is None
    first, second = gate.enter(store, KEY), gate.enter(store, KEY)
    assert first.stop_words() is None and gate.stop(store, KEY, "enough") == 2
    later = gate.enter(store, KEY)
    assert (first.stop_words(), second.stop_words(), later.stop_words()) == ("enough", "enough", None)


NO_HOLDER = b'{"last": 1, "places": [{"number": 1, "until": 9e9, "holder": {}}]}'


@pytest.mark.parametrize("data", [b"", b"[]", b'{"last": 1}', b'{"last": 0, "places": [{"number": "x"}]}', NO_HOLDER])
def test_a_row_that_is_none_of_a_gate_is_said_so(store: Store, data: bytes) -> None:
    """It is never an empty queue."""
    store.put(KEY, data, ANY)
    with pytest.raises(BrokenFile):
        gate.enter(store, KEY)
