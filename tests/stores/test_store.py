"""The contract of a store: what holds for every implementation."""

from __future__ import annotations

import itertools
import threading

import pytest

from harness.base.errors import UsageFault, VersionConflict
from harness.stores.store import ABSENT, ANY, Key, Store, decoded, encoded

NAMES = ["a", "A", "ä", "a/b", "..", ".", "a b", "%41", "=41", "x.json", "日本", "\x00", "\udc80", "_x"]
WRITERS, WRITES = 8, 1000


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


def test_no_compare_and_set_of_many_writers_is_lost(store: Store) -> None:
    """Each adds one to a number, again and again."""
    writes = WRITES if type(store).__name__ == "MemoryStore" else 60

    def count() -> None:
        for _ in range(writes):
            while True:
                known = store.get(("n",))
                data = str(int(known.data) + 1 if known else 1).encode()
                try:
                    store.put(("n",), data, known.version if known else ABSENT)
                    break
                except VersionConflict:
                    continue

    _together(count)
    known = store.get(("n",))
    assert known is not None and int(known.data) == WRITERS * writes


def test_a_list_while_others_write_has_every_key_that_was_there_all_the_time(store: Store) -> None:
    """What comes and goes meanwhile may be in it, or not."""
    for number in range(50):
        store.put(("k", f"{number:03d}"), b"", ABSENT)
    done = threading.Event()

    def churn() -> None:
        while not done.is_set():
            store.put(("k", "025-new"), b"", ANY)
            store.delete(("k", "025-new"), ANY)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(50):
            assert {("k", f"{number:03d}") for number in range(50)} <= set(store.list(("k",)))
    finally:
        done.set()
        thread.join()


def test_a_person_is_told_where_a_key_is(store: Store) -> None:
    """By a path or an address that has its names."""
    assert store.describe(("alice", "notes.md")).endswith("alice/notes.md")


def _together(work: object) -> None:
    threads = [threading.Thread(target=work) for _ in range(WRITERS)]  # type: ignore[arg-type]  # a function without arguments
    for one in threads:
        one.start()
    for one in threads:
        one.join()
