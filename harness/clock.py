"""Time as we write it: whole seconds, UTC."""

from __future__ import annotations

import time


def now() -> int:
    """Whole seconds since the epoch."""
    return int(time.time())


def stamp(seconds: float) -> str:
    """`seconds` since the epoch as `2026-04-24T10:05:12Z`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def day(seconds: float) -> str:
    """`seconds` since the epoch as `2026-04-24`."""
    return stamp(seconds)[:10]
