"""A store over an engine that keeps named entries: what SQLite, Redis, PostgreSQL and S3 have in common.

Each write has a token of its own, which becomes its version; an entry remembers the tokens of its last writes. So a write whose
reply is lost is sent again as it is, and the tokens that are there say whether it went in the first time.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Protocol, TypeVar

from harness.base.errors import BrokenFile, StoreRefusal, StoreUnavailable, VersionConflict
from harness.stores import store
from harness.stores.store import ABSENT, ANY, Key, Value

T = TypeVar("T")

TOKEN_CHARS = 16
HISTORY_CHARS = 8 * TOKEN_CHARS  # the tokens of the last eight writes, newest first
PAUSES = (0.0, 0.1, 0.4, 1.5)  # seconds between the tries of one call: a server may restart meanwhile


class NoAnswer(Exception):
    """The engine cannot be reached, or does not answer now; the text says why. What it was to do may have been done."""


class RefusedCall(Exception):
    """The engine answers that it does not do this, and has done nothing; the text says why."""


class Engine(Protocol):
    """Entries by name, in the order of the names. Methods may be called from several threads. Raise NoAnswer and RefusedCall."""

    def read(self, names: Sequence[str]) -> list[Value | None]:
        """The entries, None for each that is not there."""

    def change(self, name: str, data: bytes | None, expect: str, token: str) -> str:
        """Replace what `expect` says, as for a store, or with None remove it, which never expects ABSENT. Returns the new
        version: the tokens of the last writes, newest first; of S3 more, behind a `/`. Returns "" and changes nothing if
        another one is there, or if `token` is among its tokens."""

    def names(self, begins: str, after: str, limit: int) -> list[str]:
        """The names that begin so and are behind `after`; at most `limit`, 0 for all."""


class EngineStore:
    """See Store, and log.Bulk. `address`: how people see it, without a password; keys follow behind a `/`."""

    def __init__(self, engine: Engine, address: str) -> None:
        self.engine, self.address = engine, address

    def get(self, key: Key) -> Value | None:
        """See Store."""
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[Key]) -> list[Value | None]:
        """See log.Bulk."""
        names = [store.encoded(key) for key in keys]
        return self._tried(keys[0], lambda: self.engine.read(names)) if keys else []

    def put(self, key: Key, data: bytes, expect: str) -> str:
        """See Store. Raises StoreUnavailable if a reply is lost, and so many writes follow that nothing says what became of
        this one."""
        return self._changed(key, data, expect)

    def delete(self, key: Key, expect: str) -> None:
        """See Store. If the reply is lost and the value is gone, this was the one that removed it."""
        if expect != ABSENT:
            self._changed(key, None, expect)
        elif self.get(key):
            raise VersionConflict(self.describe(key))

    def _changed(self, key: Key, data: bytes | None, expect: str) -> str:
        name, token, tries = store.encoded(key), os.urandom(TOKEN_CHARS // 2).hex(), count()

        def sent() -> str:
            is_again = next(tries) > 0
            version = self.engine.change(name, data, expect, token)
            return version or (self._resolved(key, data, expect, token) if is_again or expect == ANY else "")

        if version := self._tried(key, sent):
            return version
        raise VersionConflict(self.describe(key))

    def _resolved(self, key: Key, data: bytes | None, expect: str, token: str) -> str:
        """The version of a change that went in before, "" if it never did. (With ANY none is refused.)"""
        found = self.engine.read([store.encoded(key)])[0]
        version = found.version if found else ""
        history = version.partition("/")[0]
        if expect == ANY or token in history or (data is None and found is None):
            return version if history.startswith(token) else token
        if (expect[:TOKEN_CHARS] in history) if expect else len(history.rstrip("-")) < HISTORY_CHARS:
            return ""
        raise StoreUnavailable(self.describe(key), "a reply was lost, and many writes followed")

    def list(self, prefix: Key, after: Key = (), limit: int = 0) -> list[Key]:
        """See Store."""
        begins = store.encoded(prefix) + "/" if prefix else ""
        behind = store.encoded(after) if after else ""
        return [store.decoded(one) for one in self._tried(prefix, lambda: self.engine.names(begins, behind, limit))]

    def describe(self, key: Key) -> str:
        """See Store."""
        return f"{self.address}/{store.encoded(key)}" if key else self.address

    def _tried(self, key: Key, action: Callable[[], T]) -> T:
        return tried(self.describe(key), action)


def tried(where: str, action: Callable[[], T]) -> T:
    """Do it, again after each pause while there is no answer. Raises StoreUnavailable, StoreRefusal."""
    pauses = iter(PAUSES)
    while True:
        with named(where):
            try:
                return action()
            except NoAnswer:
                if (pause := next(pauses, None)) is None:
                    raise
        time.sleep(pause)


@contextlib.contextmanager
def named(where: str) -> Iterator[None]:
    """Turns NoAnswer into StoreUnavailable, and RefusedCall into StoreRefusal."""
    try:
        yield
    except NoAnswer as fault:
        raise StoreUnavailable(where, str(fault)) from None
    except RefusedCall as fault:
        raise StoreRefusal(where, str(fault)) from None


def upper(begins: str) -> str:
    """The first text behind all that begin so; `begins` ends in `/`, or is empty."""
    return begins[:-1] + "0" if begins else "\x7f"


def packed(token: str, history: str, data: bytes) -> bytes:
    """An entry as one value: a line with the tokens, then the data."""
    return f"{token}{history}".ljust(HISTORY_CHARS, "-")[:HISTORY_CHARS].encode() + b"\n" + data


def unpacked(value: bytes, where: str) -> tuple[str, bytes]:
    """(the tokens, the data) of an entry; raises BrokenFile."""
    head, data = value[: HISTORY_CHARS + 1], value[HISTORY_CHARS + 1 :]
    if len(head) != HISTORY_CHARS + 1 or not head.endswith(b"\n") or not head.isascii():
        raise BrokenFile(where, "it is no value of a store", remedy="Move it away.")
    return head[:-1].decode(), data
