"""Keeps the child of a run in one thread, where it has no subagents: what its libraries would give to another is done at once.

They do so for a name to resolve, or to look up what machine this is. The thread would stay, and every command of a tool is a fork
beside it, whose child may inherit a lock that nobody releases.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class _AtOnce(ThreadPoolExecutor):
    """An executor (asyncio takes this kind alone) that begins no thread."""

    def submit(self, call: Callable[..., Any], /, *words: Any, **more: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(call(*words, **more))  # what this raises reaches whoever would wait for the result
        return done


def keep() -> None:
    """For the loop that runs."""
    asyncio.get_running_loop().set_default_executor(_AtOnce())
