"""Stores by URL: one line of configuration names where everything is kept."""

from __future__ import annotations

import os
from urllib.parse import SplitResult, unquote, urlsplit

from harness.base.errors import UsageFault
from harness.stores.disk import DiskStore
from harness.stores.memory import MemoryStore
from harness.stores.store import Store

FORMS = (
    "memory:, a path, file:///PATH, sqlite:///PATH, redis://HOST/DB, postgresql://HOST/DATABASE or s3://BUCKET/PREFIX"
)


def open_store(url: str) -> Store:
    """The store of a URL; docs/stores.md has the forms. Raises UsageFault for what is no such URL."""
    parts = urlsplit(url)
    if parts.scheme == "memory":
        return MemoryStore(parts.path or "memory")
    if not parts.scheme:
        return DiskStore(url)
    if parts.scheme == "file":
        return DiskStore(_path(url, parts))
    if parts.scheme == "sqlite":
        from harness.stores import _sqlite  # 12 ms, which no other store needs

        return _sqlite.opened(_path(url, parts))
    raise UsageFault(f"{url} names no store. Write one of {FORMS}.")


def _path(url: str, parts: SplitResult) -> str:
    path = unquote(parts.path)
    if parts.netloc or not os.path.isabs(path) or parts.query:
        raise UsageFault(f"{url}: a path is absolute, behind three slashes: {parts.scheme}:///srv/agent.")
    return path
