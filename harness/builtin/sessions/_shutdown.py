"""SIGTERM to a program: the calls that run are recorded as interrupted by shutdown, and then the process ends."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable

Tell = Callable[[], None]

_open: dict[Tell, asyncio.AbstractEventLoop] = {}
_requested = threading.Event()


class ShutdownCalls:
    """The calls of one event loop, as far as a shutdown concerns them."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.mine: set[Tell] = set()

    def add(self, tell: Tell) -> None:
        """A running call; it is notified on its loop when the process ends."""
        _open[tell] = self.loop
        self.mine.add(tell)
        if _requested.is_set():
            self.loop.call_soon(tell)

    def remove(self, tell: Tell) -> None:
        """Note that the call is recorded; after the last one a requested shutdown continues."""
        _open.pop(tell, None)
        self.mine.discard(tell)
        _finish()

    def end(self) -> None:
        """Tell all of them that the process ends."""
        for tell in list(self.mine):
            tell()


def install() -> None:
    """Handle SIGTERM, unless the program does so itself; only the main thread can."""
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _begin)


def _begin(number: int, frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends the process at once
    _requested.set()
    for tell, loop in list(_open.items()):
        loop.call_soon_threadsafe(tell)
    _finish()


def _finish() -> None:
    """End the process as the signal would have done."""
    if not _open and _requested.is_set():
        os.kill(os.getpid(), signal.SIGTERM)
