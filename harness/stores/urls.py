"""Stores by URL: one line of configuration names where everything is kept."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from harness.base.errors import Unavailable, UsageFault
from harness.stores.disk import DiskStore
from harness.stores.memory import MemoryStore
from harness.stores.store import Store, encoded

PREFIX = "harness"  # of a store on a server that others use, too
SECONDS = 10.0  # that a server may take for one answer
FORMS = (
    "memory:, a path, file:///PATH, sqlite:///PATH, redis://HOST/0, postgresql://HOST/DATABASE or s3://BUCKET/PREFIX"
)


def open_store(url: str) -> Store:
    """The store of a URL; docs/stores.md has the forms. A server is asked on first use. Raises UsageFault for what is no such
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

        return _sqlite.opened(_path(parts))
    return _on_server(parts)


def _on_server(parts: SplitResult) -> Store:
    options = dict(parse_qsl(parts.query))
    where = parts.netloc.rpartition("@")[2]  # no password is shown
    prefix, seconds = encoded((options.pop("prefix", PREFIX),)), options.pop("seconds", SECONDS)
    url = urlunsplit((*parts[:3], urlencode(options), ""))
    address = f"{parts.scheme}://{where}{parts.path.rstrip('/')}/{prefix}"
    with _extra(parts.scheme):
        if parts.scheme in ("redis", "rediss"):
            from harness.stores import _redis  # the package is an extra

            return _redis.opened(url, address, prefix, float(seconds))
        if parts.scheme in ("postgresql", "postgres"):
            from harness.stores import _postgres  # the package is an extra

            return _postgres.opened(url, address, prefix, float(seconds))
        if parts.scheme == "s3" and where:
            from harness.stores import _s3  # the package is an extra

            return _s3.opened(where, parts.path.strip("/"), options, float(seconds))
    raise UsageFault(f"{parts.scheme}://{where} names no store. Write one of {FORMS}.")


@contextlib.contextmanager
def _extra(scheme: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as fault:
        extra = {"rediss": "redis", "postgresql": "postgres"}.get(scheme, scheme)
        words = f"pip install 'harness-missions[{extra}]'"
        raise Unavailable(f"A store at {scheme}:// needs the package {fault.name}. Install it: {words}") from None
    except (TypeError, ValueError) as fault:
        raise UsageFault(f"The options behind `?` are none of a store at {scheme}://: {fault}.") from None


def _path(parts: SplitResult) -> str:
    path = unquote(parts.path)
    if parts.netloc or not os.path.isabs(path) or parts.query:
        raise UsageFault(f"{parts.geturl()}: a path is absolute, behind three slashes: {parts.scheme}:///srv/agent.")
    return path
