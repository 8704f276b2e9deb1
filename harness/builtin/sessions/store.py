"""Where sessions are kept: a small key-value store with compare-and-set, append, and a queue. `on_files.py` is the one on disk.

A key is names with `/` between them, all made by `keys`. Two ids never make one key, see harness/base/ids.py.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from harness.base import ids
from harness.base.errors import UsageFault
from harness.base.record import Record

LONGEST_ID = 4096  # characters
SOONEST, LATEST, SLOWER = 0.002, 0.05, 1.3  # seconds between two looks at a queue, and how they grow


class Item(Record):
    """A value, and the version of it that compare-and-set takes."""

    data: bytes
    version: str


class QueuePlace(Protocol):
    """A place in a queue. It is lost when its process dies. `number`: larger than that of every place given before."""

    number: int

    def first(self) -> bool:
        """Whether nobody alive is before it."""

    def check(self) -> None:
        """Raises Lost where somebody took the place away: nothing may be written any more."""

    def leave(self) -> None:
        """Give it up; more than once is once."""


class Store(Protocol):
    """All that sessions need of a place to be in. Methods may be called from several threads. Whatever cannot be read, or is not
    what was written, raises; it is never "nothing there"."""

    def get(self, key: str) -> Item | None:
        """The value; None where there is none."""

    def put(self, key: str, data: bytes, expect: str) -> str:
        """Replace the value, durably, where its version is still this one ("": it does not exist); returns the new version.
        Raises Changed."""

    def append(self, key: str, data: bytes, at: int = -1) -> int:
        """Add whole lines; returns the length then. `at`: where the last whole line ends as the caller knows it; a torn line
        behind it is cut off, and more raises Changed. -1: wherever that is. It is durable after `sync`."""

    def sync(self, key: str) -> None:
        """Make what was appended durable."""

    def length(self, key: str) -> int:
        """Bytes of the value; 0 where there is none."""

    def tail(self, key: str, start: int = 0) -> bytes:
        """The value from a byte on."""

    def names(self, key: str) -> list[str]:
        """The names directly below a key."""

    def enter(self, key: str) -> QueuePlace:
        """A new place at the end of a queue."""

    def queue(self, key: str) -> list[int]:
        """The numbers of the places of a queue that are alive, the first first."""

    def where(self, key: str) -> str:
        """The key as a person finds it."""


class Keys(Record):
    """The keys of one session."""

    user: str
    session: str
    top: str
    state: str
    log: str
    interrupts: str
    queue: str
    results: str
    index: str

    def compaction(self, number: int) -> str:
        """The turns in which the conversation was summed up for the n-th time."""
        return f"{self.top}/compactions/{number:06d}.jsonl"


STATE, LOG, INDEX = "state.json", "log.jsonl", "_index.jsonl"  # `_`: no id begins so


def keys(user: str, session: str) -> Keys:
    """The keys of this session of this user; raises UsageFault for an id that is empty or no text for a file."""
    for what, one in (("user", user), ("session", session)):
        if not one or len(one) > LONGEST_ID:
            raise UsageFault(f"The id of a {what} has from 1 to {LONGEST_ID} characters; this one has {len(one)}.")
    owner = ids.encoded(user)
    top = f"{owner}/{ids.encoded(session)}"
    return Keys(
        user=user,
        session=session,
        top=top,
        state=f"{top}/{STATE}",
        log=f"{top}/{LOG}",
        interrupts=f"{top}/interrupts.jsonl",
        queue=f"{top}/queue",
        results=f"{top}/results",
        index=f"{owner}/{INDEX}",
    )


async def turn(place: QueuePlace) -> None:
    """Wait until the place is the first; raises Lost where it is taken away."""
    pause = SOONEST
    while not place.first():
        place.check()
        await asyncio.sleep(pause)
        pause = min(LATEST, pause * SLOWER)
