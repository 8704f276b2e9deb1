"""Looks after the calls of one event loop: whether a person interrupts them, and that their places at the gate stay theirs."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable

from harness.base.errors import LockBusy
from harness.stores.gate import GatePlace

POLL_SECONDS = 0.2
SOONEST, LATEST, SLOWER = 0.002, 0.05, 1.3  # seconds between two looks at a gate, and how they grow

Notify = Callable[[str], None]


class Watch:
    """Polls each call a few times a second. A call is interrupted once, with the words of the person."""

    def __init__(self) -> None:
        self.calls: dict[GatePlace, Notify] = {}
        self.work: asyncio.Task[None] | None = None

    def add(self, place: GatePlace, tell: Notify) -> None:
        """Look after this call, too."""
        self.calls[place] = tell
        if self.work is None or self.work.done():
            loop = asyncio.get_running_loop()  # the task is of all calls, so of the context of none
            self.work = loop.create_task(self._watch(), context=contextvars.Context())

    def remove(self, place: GatePlace) -> None:
        """The call has ended."""
        self.calls.pop(place, None)

    def close(self) -> None:
        """Stop all watching."""
        self.calls.clear()
        if self.work is not None:
            self.work.cancel()

    async def _watch(self) -> None:
        while self.calls:
            for place, words in await asyncio.to_thread(_stopped, list(self.calls)):
                if (tell := self.calls.pop(place, None)) is not None:
                    tell(words)
            await asyncio.sleep(POLL_SECONDS)


async def turn(place: GatePlace) -> None:
    """Wait until the place is the first. Raises LostPlace."""
    pause = SOONEST
    while not place.is_first():
        place.renew()
        await asyncio.sleep(pause)
        pause = min(LATEST, pause * SLOWER)


def _stopped(places: list[GatePlace]) -> list[tuple[GatePlace, str]]:
    """The places that a person stopped, with the words; the others are renewed."""
    found = []
    for place in places:
        try:
            if (words := place.stop_words()) is not None:
                found.append((place, words))
            place.renew()
        except LockBusy:  # the place is lost, or the gate is busy: the next write says so
            continue
    return found
