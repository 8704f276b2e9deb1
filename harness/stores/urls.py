"""Stores by URL: one setting names the place where everything is kept."""

from __future__ import annotations

import os
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from harness.base.errors import Unavailable, UsageFault
from harness.stores.disk import DiskStore
from harness.stores.memory import MemoryStore
from harness.stores.store import Store, encoded

PREFIX = "harness"  # of a store on a shared server
SECONDS = 10.0  # limit for one answer of a server
FORMS = (
    "memory:, a path, file:///PATH, sqlite:///PATH, redis://HOST/0, postgresql://HOST/DATABASE or s3://BUCKET/PREFIX"
)

EXTRAS = {"redis": "redis", "rediss": "redis", "postgresql": "postgres", "postgres": "postgres", "s3": "s3"}


def open_store(url: str) -> Store:
    """The store of a URL; docs/stores.md lists the forms. The first use connects to a server. Raises UsageFault for an invalid
    URL, and Unavailable if a package is missing."""
    parts = urlsplit(url)
    if parts.scheme == "memory":
        return MemoryStore(parts.path or "memory")
    if not parts.scheme:
        return DiskStore(url)
    if parts.scheme == "file":
        return DiskStore(_path(parts))
    if parts.scheme == "sqlite":
        from harness.stores import _sqlite  # 12 ms, which no other store needs

        return _sqlite.store_at(_path(parts))
    try:
        return _on_server(parts)
    except ModuleNotFoundError as fault:
        words = f"needs the package {fault.name}. Install it: pip install 'harness-missions[{EXTRAS[parts.scheme]}]'"
        raise Unavailable(f"A store at {parts.scheme}:// {words}") from None
    except ValueError as fault:
        raise UsageFault(f"The options after `?` are invalid for a store at {parts.scheme}://: {fault}.") from None


def _on_server(parts: SplitResult) -> Store:
    options = dict(parse_qsl(parts.query))
    where = parts.netloc.rpartition("@")[2]  # no password is shown
    prefix, seconds = encoded((options.pop("prefix", PREFIX),)), float(options.pop("seconds", SECONDS))
    url = urlunsplit((*parts[:3], urlencode(options), ""))
    address = f"{parts.scheme}://{where}{parts.path.rstrip('/')}/{prefix}"
    extra = EXTRAS.get(parts.scheme)
    if extra == "redis":
        from harness.stores import _redis  # the package is an extra

        return _redis.store_at(url, address, prefix, seconds)
    if extra == "postgres":
        from harness.stores import _postgres  # the package is an extra

        return _postgres.store_at(url, address, prefix, seconds)
    if extra == "s3" and where:
        from harness.stores import _s3  # the package is an extra

        return _s3.store_at(where, parts.path.strip("/"), options, seconds)
    raise UsageFault(f"{parts.scheme}://{where} does not name a store. Write one of {FORMS}.")


def _path(parts: SplitResult) -> str:
    path = unquote(parts.path)
    if parts.netloc or not os.path.isabs(path) or parts.query:
        raise UsageFault(
            f"{parts.geturl()}: a path is absolute and follows three slashes: {parts.scheme}:///srv/agent."
        )
    return path
