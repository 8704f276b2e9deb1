"""The contract of a store: what holds for every implementation in tests/stores/places.py."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.base.errors import UsageFault, VersionConflict
from harness.stores import log
from harness.stores.store import ABSENT, ANY, Key, Store, decoded, encoded
from tests import crash
from tests.crash import TORTURE, sampled
from tests.kill_sweep import Sweep, sample, why_not
from tests.missions import Done
from tests.stores.places import OUTLIVING, Place
from tests.stores.servers import together

HOME = str(Path(__file__).resolve().parents[2])
NAMES = [
    "a",
    "A",
    "ä",
    "a/b",
    "..",
    ".",
    "a b",
    "%41",
    "=41",
    "x.json",
    "日本",
    "\x00",
    "\udc80",
    "_x",
    "a.tmp",
    ".tmp\n",
]
NAMES += [".folder.lock", "%2Etmp", "a" * 80]
WRITERS, WRITES, SAMPLED_WRITES = 8, 1000, 60
WRITERS_OF_SLOW, WRITES_OF_SLOW = 3, 8  # of the suite, where the server is a program of Python
KILLED_POINTS = 3  # of an action, in the suite
ACTIONS: dict[str, Callable[[Store], object]] = {
    "put": lambda store: store.put(("a", "k"), b"new" * 9999, ANY),
    "first put": lambda store: store.put(("b", "c", "k"), b"new" * 9999, ABSENT),
    "delete": lambda store: store.delete(("a", "k"), ANY),
    "append": lambda store: log.append(store, ("a", "log"), b"2\n3\n", log.read(store, ("a", "log")).end),
    "first append": lambda store: log.append(store, ("b", "c", "log"), b"2\n3\n", 0),
}
ACTS = """import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from tests.stores.places import Place
from tests.stores.test_store import ACTIONS
ACTIONS[sys.argv[4]](Place(sys.argv[2], Path(sys.argv[3])).open())
"""
KILLED = {  # in the suite
    *(("disk", "first put"), ("disk", "append"), ("disk", "delete")),
    *(("sqlite", "first append"), ("sqlite", "put")),
}


def test_two_keys_never_have_one_form_and_each_form_leads_back() -> None:
    """Whatever the names hold."""
    keys: list[Key] = [*((one,) for one in NAMES), *itertools.product(NAMES, NAMES)]
    forms = [encoded(key) for key in keys]
    assert len(set(forms)) == len(keys) and [decoded(form) for form in forms] == keys
    assert all(part not in ("", ".", "..") for form in forms for part in form.split("/"))


@pytest.mark.parametrize("key", [(), ("",), ("a", "")])
def test_a_key_without_a_name_is_refused(store: Store, key: Key) -> None:
    """It would be a folder, or another key."""
    with pytest.raises(UsageFault):
        store.put(key, b"x", ANY)


def test_absent_and_empty_are_two_answers(store: Store) -> None:
    """And a value is what was put."""
    assert store.get(("a", "b")) is None
    version = store.put(("a", "b"), b"", ABSENT)
    assert store.get(("a", "b")) == (b"", version)


def test_every_write_has_a_new_version_also_of_the_same_bytes(store: Store) -> None:
    """A, then B, then A again is no A that nobody touched."""
    versions = [store.put(("k",), data, ANY) for data in (b"A", b"B", b"A", b"A")]
    assert len(set(versions)) == 4
    with pytest.raises(VersionConflict):
        store.put(("k",), b"C", versions[0])


def test_a_write_that_expects_another_version_changes_nothing(store: Store) -> None:
    """Neither a put nor a delete."""
    version = store.put(("k",), b"1", ABSENT)
    for expect in (ABSENT, "v0"):
        with pytest.raises(VersionConflict):
            store.put(("k",), b"2", expect)
        with pytest.raises(VersionConflict):
            store.delete(("k",), expect)
    assert store.get(("k",)) == (b"1", version)
    store.delete(("k",), version)
    assert store.get(("k",)) is None
    store.delete(("k",), ANY)
    with pytest.raises(VersionConflict):
        store.put(("k",), b"2", version)


def test_a_list_has_the_keys_below_whole_names_in_one_order(store: Store) -> None:
    """`a` is not the beginning of `ab`; `after` and `limit` page through."""
    keys = sorted(
        [("a", "x"), ("a", "y", "z"), ("a-b", "x"), ("ab",), ("a.b",), ("b",), ("a", "y.t"), ("ä", "1")], key=encoded
    )
    for key in keys:
        store.put(key, b"", ABSENT)
    assert store.list(()) == keys
    assert store.list(("a",)) == [key for key in keys if key[0] == "a"]
    pages: list[Key] = []
    last: Key = ()
    while page := store.list((), last, 3):
        pages += page
        last = page[-1]
    assert pages == keys and store.list(("nothing",)) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_key_has_any_names_and_is_listed_with_them(store: Store, name: str) -> None:
    """Also names that mean something to a store."""
    for key in ((name,), ("under", name), (name + "x", "below")):
        store.put(key, name.encode("utf-8", "surrogateescape"), ABSENT)
        assert store.list(key[:-1])[-1 if len(key) > 1 else 0 :] and key in store.list(())
        known = store.get(key)
        assert known is not None and known.data == name.encode("utf-8", "surrogateescape")


def test_what_is_not_there_can_be_deleted_and_listed(store: Store) -> None:
    """Below a value, and where nothing ever was."""
    store.put(("k",), b"", ABSENT)
    for key in (("k", "below"), ("k", "far", "below"), ("nowhere", "k")):
        store.delete(key, ANY)
        assert store.get(key) is None and store.list(key) == []


def test_no_compare_and_set_of_many_writers_is_lost(place: Place) -> None:
    """Each adds one to a number, again and again: processes, where the values outlive one and it may be forked."""
    is_slow = place.name == "s3" and not TORTURE
    writes = WRITES if TORTURE or not place.outlives else WRITES_OF_SLOW if is_slow else SAMPLED_WRITES
    writers = WRITERS_OF_SLOW if is_slow else WRITERS

    def count() -> None:
        store = place.open()
        for _ in range(writes):
            while True:
                known = store.get(("n",))
                data = str(int(known.data) + 1 if known else 1).encode()
                try:
                    store.put(("n",), data, known.version if known else ABSENT)
                    break
                except VersionConflict:
                    continue

    if place.forks:
        children = [crash.start(count) for _ in range(writers)]
        assert [crash.end(pid) for pid in children] == [0] * writers
    else:
        together(lambda _: count(), writers)
    known = place.first.get(("n",))
    assert known is not None and int(known.data) == writers * writes


def test_a_list_while_others_write_has_every_key_that_was_there_all_the_time(place: Place) -> None:
    """What comes and goes meanwhile may be in it, or not; nothing else is."""
    store, kept = place.first, {("k", f"{number:03d}") for number in range(50)}
    for key in kept:
        store.put(key, b"", ABSENT)

    def churn(other: Store) -> None:
        other.put(("k", "025-new"), b"", ANY)
        other.put(("k", "010"), b"again", ANY)
        other.delete(("k", "025-new"), ANY)

    with _meanwhile(place, churn):
        for _ in range(100 if TORTURE or place.name != "s3" else 20):
            found = store.list(("k",))
            assert found == sorted(found) and kept <= set(found) <= kept | {("k", "025-new")}


@pytest.mark.parametrize(
    ("outliving", "action"), sampled(itertools.product(OUTLIVING, ACTIONS), KILLED.__contains__), indirect=["outliving"]
)
def test_a_kill_at_any_step_leaves_the_old_value_or_the_new_one_and_the_next_write_works(
    outliving: Place, action: str
) -> None:
    """Whole; other keys are as they were, and no other one is there. At some calls of some actions; in `make torture` at all."""
    if why_not():
        pytest.skip("a kill at a system call needs strace")
    before = outliving.folder.with_name("before")
    store = outliving.first
    store.put(("a", "k"), b"old", ABSENT)
    log.append(store, ("a", "log"), b"1\n", 0)
    old = _state(store)
    shutil.copytree(outliving.folder, before)

    def prepare() -> None:
        shutil.rmtree(outliving.folder)
        shutil.copytree(before, outliving.folder)

    words = [sys.executable, "-c", ACTS, HOME, outliving.name, str(outliving.folder), action]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    sweep = Sweep(words, prepare, where=outliving.folder, env=env)
    points = sweep.points()
    new = _state(outliving.open())
    assert new != old and len(points) > 1

    def recover(_: Done) -> tuple[list[str], str]:
        other = outliving.open()
        found = _state(other)
        faults = [] if found in (old, new) else [f"half: {found}"]
        ACTIONS[action if found == old else "put"](other)
        ACTIONS["append"](other)
        faults += [] if _state(other)["a/log"].endswith(b"2\n3\n") else ["the next append is lost"]
        return faults, str(found)

    report = sweep.run(points if TORTURE else sample(points, KILLED_POINTS, action), recover, list)
    assert report.points and report.faults == [], report


def _state(store: Store) -> dict[str, bytes]:
    """Every value by its encoded key, a log whole."""
    logs = [("a", "log"), ("b", "c", "log")]
    values = {key: store.get(key) for key in store.list(()) if key not in logs and key[:-1] not in logs}
    found = {encoded(key): value.data for key, value in values.items() if value is not None}
    return found | {encoded(key): log.read(store, key).data for key in logs if log.exists(store, key)}


@contextlib.contextmanager
def _meanwhile(place: Place, action: Callable[[Store], object]) -> Iterator[None]:
    """Repeat an action beside this: in a process, where the values outlive one and it may be forked, else in a thread."""
    done, store = threading.Event(), place.open()

    def repeat() -> None:
        while not done.is_set():
            action(store)

    if place.forks:
        pid = crash.start(repeat)
        try:
            time.sleep(0.01)
            yield
        finally:
            os.kill(pid, signal.SIGKILL)
            crash.end(pid)
        return
    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_person_is_told_where_a_key_is(store: Store) -> None:
    """By a path or an address that has its names."""
    assert store.describe(("alice", "notes.md")).endswith("alice/notes.md")
