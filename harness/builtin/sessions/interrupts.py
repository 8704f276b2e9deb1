"""Interrupting: whoever interrupts names all calls of a session that run or wait at that moment, and each of them ends by it.

A line of `interrupts.jsonl` has the place in the queue up to which it counts. So it reaches a call that has not begun, and none
that comes later.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from harness.base import encoding
from harness.base.record import Record
from harness.builtin.sessions.log import now
from harness.builtin.sessions.store import Keys, Store
from harness.state import json_lines

LOOK_SECONDS = 0.2
LONGEST = 4000  # characters of the words


class Interrupt(Record):
    """Somebody interrupted, with these words."""

    words: str = ""


def interrupt(store: Store, keys: Keys, words: str) -> int:
    """Interrupt all calls of the session that run or wait; how many there are. Without any nothing is written."""
    alive = store.queue(keys.queue)
    if alive:
        row = {"at": now(), "upto": max(alive), "words": words[:LONGEST]}
        store.append(keys.interrupts, encoding.dump_json(row))
    return len(alive)


class Watched(Record):
    """A call that may be interrupted: from which byte on its lines count, and its place in the queue."""

    keys: Keys
    start: int
    number: int
    tell: Callable[[Interrupt], None]


class Watch:
    """Looks after the calls of one event loop."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.calls: list[Watched] = []
        self.work: asyncio.Task[None] | None = None

    def add(self, call: Watched) -> None:
        """Look after this call, too."""
        self.calls.append(call)
        if self.work is None or self.work.done():
            self.work = asyncio.get_running_loop().create_task(self._watch())

    def remove(self, call: Watched) -> None:
        """It has ended."""
        with contextlib.suppress(ValueError):
            self.calls.remove(call)

    def look(self) -> None:
        """Look now."""
        for call in list(self.calls):
            found = lines(self.store, call)
            if found is not None:
                self.remove(call)
                call.tell(found)

    def close(self) -> None:
        """Look after nobody any more."""
        self.calls.clear()
        if self.work is not None:
            self.work.cancel()

    async def _watch(self) -> None:
        while self.calls:
            self.look()
            await asyncio.sleep(LOOK_SECONDS)


def lines(store: Store, call: Watched) -> Interrupt | None:
    """What the lines since the call's beginning say to it; None for nothing."""
    if store.length(call.keys.interrupts) <= call.start:
        return None
    for _, line in json_lines.whole(store.tail(call.keys.interrupts, call.start)):
        try:
            row = json_lines.value(line)
        except ValueError:  # a writer that died left half a line
            continue
        if isinstance(row, dict) and row.get("upto", 0) >= call.number:
            return Interrupt(words=str(row.get("words", "")))
    return None
