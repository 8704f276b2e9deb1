"""A store in the memory of this process: for tests, and for conversations that leave nothing behind."""

from __future__ import annotations

import bisect
import itertools
import threading

from harness.base.errors import VersionConflict
from harness.stores import store
from harness.stores.store import ABSENT, Key, Value


class MemoryStore:
    """See Store. `name`: its address for people."""

    def __init__(self, name: str = "memory") -> None:
        self.name = name
        self._values: dict[str, Value] = {}
        self._order: list[str] = []  # the encoded keys, sorted
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        return self._values.get(store.encoded(key))

    def put(self, key: Key, data: bytes, expect: str) -> str:
        name = store.encoded(key)
        with self._lock:
            self._check(key, name, expect)
            version = f"v{next(self._numbers)}"
            if name not in self._values:
                bisect.insort(self._order, name)
            self._values[name] = Value(data, version)
        return version

    def delete(self, key: Key, expect: str) -> None:
        name = store.encoded(key)
        with self._lock:
            self._check(key, name, expect)
            if self._values.pop(name, None) is not None:
                del self._order[bisect.bisect_left(self._order, name)]

    def _check(self, key: Key, name: str, expect: str) -> None:
        known = self._values.get(name)
        if not store.matches(expect, known.version if known else ABSENT):
            raise VersionConflict(self.describe(key))

    def list(self, prefix: Key, after: Key = (), limit: int = 0) -> list[Key]:
        begins = store.encoded(prefix) + "/" if prefix else ""
        with self._lock:
            at = bisect.bisect_right(self._order, store.encoded(after)) if after else 0
            at = max(at, bisect.bisect_left(self._order, begins))
            found = itertools.takewhile(lambda name: name.startswith(begins), itertools.islice(self._order, at, None))
            names = list(itertools.islice(found, limit or None))
        return [store.decoded(name) for name in names]

    def describe(self, key: Key) -> str:
        return f"{self.name}:{store.encoded(key) if key else ''}"
