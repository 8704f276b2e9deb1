"""A store over an engine that keeps named entries: the common part of SQLite, Redis, PostgreSQL and S3.

Each write has its own token, which becomes its version; an entry remembers the tokens of its last writes. So a write whose reply
is lost is sent again unchanged, and the tokens of the entry show whether the first attempt succeeded.
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
PAUSES = (0.0, 0.1, 0.4, 1.5)  # seconds between the attempts of one call: a server may restart meanwhile


class NoAnswer(Exception):
    """The engine cannot be reached or does not answer; the text says why. The request may have been carried out."""


class RefusedCall(Exception):
    """The engine refuses a request and has changed nothing; the text says why."""


class Engine(Protocol):
    """Entries by name, in the order of the names. Methods may be called from several threads. Raise NoAnswer and RefusedCall."""

    def read(self, names: Sequence[str]) -> list[Value | None]:
        """The entries, None for each absent one."""

    def change(self, name: str, data: bytes | None, expect: str, token: str) -> str:
        """Replace the entry that `expect` names, as for a store, or remove it if `data` is None, which never expects ABSENT.
        Returns the new version: the tokens of the last writes, newest first; S3 adds its tag after a `/`. Returns "" and changes
        nothing if the version is another one, or if the entry has the `token`."""

    def names(self, begins: str, after: str, limit: int) -> list[str]:
        """The names that begin with `begins` and sort after `after`; at most `limit`, 0 for all."""


class EngineStore:
    """See Store, and log.Bulk. `address`: for people, without a password; keys follow after a `/`."""

    def __init__(self, engine: Engine, address: str) -> None:
        self.engine, self.address = engine, address

    def get(self, key: Key) -> Value | None:
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[Key]) -> list[Value | None]:
        """The values of keys, in one request."""
        names = [store.encoded(key) for key in keys]
        return self._retry(keys[0], lambda: self.engine.read(names)) if keys else []

    def put(self, key: Key, data: bytes, expect: str) -> str:
        """See Store. Also raises StoreUnavailable if a reply is lost and so many writes follow that the outcome of this one is
        unknown."""
        return self._change_entry(key, data, expect)

    def delete(self, key: Key, expect: str) -> None:
        """See Store. If the reply is lost and the value is gone, this call counts as the one that removed it."""
        if expect != ABSENT:
            self._change_entry(key, None, expect)
        elif self.get(key):
            raise VersionConflict(self.describe(key))

    def _change_entry(self, key: Key, data: bytes | None, expect: str) -> str:
        name, token, attempts = store.encoded(key), os.urandom(TOKEN_CHARS // 2).hex(), count()

        def attempt() -> str:
            is_repeated = next(attempts) > 0
            version = self.engine.change(name, data, expect, token)
            return version or (self._resolve(key, data, expect, token) if is_repeated or expect == ANY else "")

        if version := self._retry(key, attempt):
            return version
        raise VersionConflict(self.describe(key))

    def _resolve(self, key: Key, data: bytes | None, expect: str, token: str) -> str:
        """The version of a change that an earlier attempt made; "" if none did. (With ANY no change is refused.)"""
        found = self.engine.read([store.encoded(key)])[0]
        version = found.version if found else ""
        history = version.partition("/")[0]
        if expect == ANY or token in history or (data is None and found is None):
            return version if history.startswith(token) else token
        if (expect[:TOKEN_CHARS] in history) if expect else len(history.rstrip("-")) < HISTORY_CHARS:
            return ""
        raise StoreUnavailable(self.describe(key), "a reply was lost, and many writes followed")

    def list(self, prefix: Key, after: Key = (), limit: int = 0) -> list[Key]:
        begins = store.encoded(prefix) + "/" if prefix else ""
        behind = store.encoded(after) if after else ""
        return [store.decoded(one) for one in self._retry(prefix, lambda: self.engine.names(begins, behind, limit))]

    def describe(self, key: Key) -> str:
        return f"{self.address}/{store.encoded(key)}" if key else self.address

    def _retry(self, key: Key, action: Callable[[], T]) -> T:
        return retry(self.describe(key), action)


def retry(where: str, action: Callable[[], T]) -> T:
    """Carry out `action`, and repeat it after each pause while there is no answer. Raises StoreUnavailable, StoreRefusal."""
    pauses = iter(PAUSES)
    while True:
        with translate_faults(where):
            try:
                return action()
            except NoAnswer:
                if (pause := next(pauses, None)) is None:
                    raise
        time.sleep(pause)


@contextlib.contextmanager
def translate_faults(where: str) -> Iterator[None]:
    """Raise StoreUnavailable for NoAnswer, and StoreRefusal for RefusedCall."""
    try:
        yield
    except NoAnswer as fault:
        raise StoreUnavailable(where, str(fault)) from None
    except RefusedCall as fault:
        raise StoreRefusal(where, str(fault)) from None


def prefix_end(begins: str) -> str:
    """The first text that sorts after all texts with this beginning, which ends with `/` or is empty."""
    return begins[:-1] + "0" if begins else "\x7f"


def pack_entry(token: str, history: str, data: bytes) -> bytes:
    """An entry as one value: a line with the tokens, then the data."""
    return f"{token}{history}".ljust(HISTORY_CHARS, "-")[:HISTORY_CHARS].encode() + b"\n" + data


def unpack_entry(value: bytes, where: str) -> tuple[str, bytes]:
    """(the tokens, the data) of an entry; raises BrokenFile."""
    head, data = value[: HISTORY_CHARS + 1], value[HISTORY_CHARS + 1 :]
    if len(head) != HISTORY_CHARS + 1 or not head.endswith(b"\n") or not head.isascii():
        raise BrokenFile(where, "it is not a value of a store", remedy="Move it away.")
    return head[:-1].decode(), data
