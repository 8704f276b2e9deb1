"""A gate over any store: one holder at a time, in order of arrival, across processes and machines.

The gate is one row with the places in the queue, each with its holder and a deadline that the holder renews. A place ends at its
deadline, or at once if its process on this machine is gone. All changes are compare-and-sets of the row.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import random
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from harness.base import encoding
from harness.base.errors import BrokenFile, LockBusy, VersionConflict
from harness.process import tree
from harness.stores.store import ABSENT, Key, Store

T = TypeVar("T")

LEASE_SECONDS = 30.0  # from a renewal to the deadline
TRIES = 2000  # of one change of the row, against other writers
PAUSE_SECONDS = 0.002  # between two of them, at most
POLL_SECONDS = 0.02  # between two reads of a waiting holder
REMEDY = "Remove it: waiting calls then ask again."


class LostPlace(LockBusy):
    """The place is no longer in the queue: its deadline passed, or somebody removed it. The holder must not write any more."""

    def __init__(self, where: str) -> None:
        super().__init__(f"The call lost its place in {where}, so it wrote nothing more. Ask again.")


class GatePlace:
    """A place in the queue of a gate. `number`: larger than that of every earlier place."""

    def __init__(self, store: Store, key: Key, number: int) -> None:
        self.store, self.key, self.number = store, key, number
        self.renewed = time.monotonic()

    def is_first(self) -> bool:
        """Whether no living holder is before it. Raises LostPlace."""
        return not any(_is_alive(one) for one in self._row()["places"] if one["number"] < self.number)

    def check(self) -> None:
        """Raises LostPlace if the place is gone."""
        self._row()

    def stop_words(self) -> str | None:
        """The words of the person who stopped the holders up to this place; None if nobody did. Raises LostPlace."""
        stop = self._row().get("stop")
        return str(stop["words"]) if stop and stop["upto"] >= self.number else None

    def renew(self) -> None:
        """Move the deadline once a third of the time is over. Raises LostPlace."""
        if time.monotonic() - self.renewed < LEASE_SECONDS / 3:
            return

        def extend(row: dict[str, Any]) -> None:
            self._own(row)["until"] = time.time() + LEASE_SECONDS

        _change(self.store, self.key, extend)
        self.renewed = time.monotonic()

    def leave(self) -> None:
        """Give the place up; a second call changes nothing."""

        def remove(row: dict[str, Any]) -> None:
            row["places"] = [one for one in row["places"] if one["number"] != self.number]

        if any(one["number"] == self.number for one in _read(self.store, self.key)[0]["places"]):
            _change(self.store, self.key, remove)

    def _row(self) -> dict[str, Any]:
        row, _ = _read(self.store, self.key)
        self._own(row)
        return row

    def _own(self, row: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] | None = next((one for one in row["places"] if one["number"] == self.number), None)
        if found is None:
            raise LostPlace(self.store.describe(self.key))
        return found


def enter(store: Store, key: Key) -> GatePlace:
    """A new place at the end of the queue; places whose holders are gone are removed."""

    def add_place(row: dict[str, Any]) -> int:
        row["last"] += 1
        mine = {"number": row["last"], "holder": _holder(), "until": time.time() + LEASE_SECONDS}
        row["places"] = [*(one for one in row["places"] if _is_alive(one)), mine]
        return int(row["last"])

    return GatePlace(store, key, _change(store, key, add_place))


@contextlib.contextmanager
def held(store: Store, key: Key) -> Iterator[GatePlace]:
    """A place at the gate, as soon as it is the first. Raises LostPlace."""
    place = enter(store, key)
    try:
        while not place.is_first():
            place.renew()
            time.sleep(POLL_SECONDS)
        yield place
    finally:
        place.leave()


def stop(store: Store, key: Key, words: str) -> int:
    """Ask every holder in the queue to end, with these words; returns their number. Writes nothing if there are none."""

    def request(row: dict[str, Any]) -> int:
        alive = [one["number"] for one in row["places"] if _is_alive(one)]
        if alive:
            row["stop"] = {"upto": max(alive), "words": words}
        return len(alive)

    return _change(store, key, request) if waiting(store, key) else 0


def waiting(store: Store, key: Key) -> list[int]:
    """The numbers of the places whose holders are alive, first to last."""
    return [one["number"] for one in _read(store, key)[0]["places"] if _is_alive(one)]


def _change(store: Store, key: Key, change: Callable[[dict[str, Any]], T]) -> T:
    for _ in range(TRIES):
        row, version = _read(store, key)
        result = change(row)
        try:
            store.put(key, encoding.dump_json(row), version)
        except VersionConflict:
            time.sleep(random.uniform(0, PAUSE_SECONDS))
        else:
            return result
    raise LockBusy(f"{store.describe(key)}: too many writers at once. Try again.")


def _read(store: Store, key: Key) -> tuple[dict[str, Any], str]:
    """The row and its version. Raises BrokenFile."""
    known = store.get(key)
    if known is None:
        return {"last": 0, "places": []}, ABSENT
    where = store.describe(key)
    row = encoding.parse_json(known.data, where)
    try:
        places = [
            (int(one["number"]), float(one["until"]), int(one["holder"]["pid"]), int(one["holder"]["started"]))
            for one in row["places"]
        ]
        stop = row.get("stop", {"upto": 0, "words": ""})
        _ = int(row["last"]) + int(stop["upto"]) + len(places), str(stop["words"])
    except (TypeError, KeyError, ValueError, AttributeError):
        raise BrokenFile(where, "it is not the row of a gate", remedy=REMEDY) from None
    return row, known.version


def _is_alive(place: dict[str, Any]) -> bool:
    holder = place["holder"]
    if place["until"] < time.time():
        return False
    here = _holder()
    if any(holder.get(name) != here[name] for name in ("node", "boot", "space")):
        return True  # on another machine or in another container only the deadline counts
    fields = tree.stat(holder["pid"]) if tree.on_linux() else []
    return tree.lives(holder["pid"]) and (not fields or int(fields[19]) == holder["started"])


def _holder() -> dict[str, Any]:
    """This process: its machine, the namespace of process ids, the id, and its start."""
    return _process(os.getpid())


@functools.lru_cache(1)
def _process(pid: int) -> dict[str, Any]:
    space = os.readlink("/proc/self/ns/pid") if tree.on_linux() else ""
    return {"node": platform.node(), "space": space, **tree.pid_record()}
