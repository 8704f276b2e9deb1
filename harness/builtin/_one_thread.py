"""Keeps the child of a run single-threaded if it has no subagents: work that its libraries would give to a thread is done at
once.

They do so to resolve a name, or to look up the platform. The thread would stay, and every command of a tool forks beside it, so
a child could inherit a lock that nobody releases."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class _AtOnce(ThreadPoolExecutor):
    """An executor (the type that asyncio requires) that starts no thread."""

    def submit(self, call: Callable[..., Any], /, *words: Any, **more: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(call(*words, **more))  # what this raises reaches whoever would wait for the result
        return done


def keep() -> None:
    """For the loop that runs."""
    asyncio.get_running_loop().set_default_executor(_AtOnce())
