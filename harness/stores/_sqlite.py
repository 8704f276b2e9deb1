"""A store in one SQLite file, for processes of one machine.

Each call has a connection of its own, so that no fork and no thread shares one. The journal is the one that needs no connection
to stay open; a commit is durable when it returns.
"""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import TypeVar
from urllib.parse import quote

from harness.base.errors import BrokenFile, LockBusy
from harness.state import files
from harness.stores._engine import EngineStore, RefusedCall, upper
from harness.stores.store import ABSENT, ANY, Value

T = TypeVar("T")

BUSY_SECONDS = 10.0  # that a call waits for another process
PAUSE_SECONDS = 0.002  # between two tries, at most
TABLE = "create table if not exists entries (name text primary key, version text not null, data blob not null)"
BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED")
REFUSED = ("SQLITE_FULL", "SQLITE_READONLY", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_TOOBIG")
INSERT = "insert into entries values (:name, :token, :data) on conflict (name) do "
REPLACE = "update set version = excluded.version, data = excluded.data"
UPDATE = "update entries set version = :token, data = :data where name = :name and version = :expect"


class SqliteEngine:
    """See Engine. `path`: the file, made by the first write. A reply cannot be lost, so an entry has its last token alone."""

    def __init__(self, path: str) -> None:
        self.path = path

    def read(self, names: Sequence[str]) -> list[Value | None]:
        """See Engine."""
        query = "select data, version from entries where name = ?"
        rows = self._called(
            lambda found: [found.execute(query, (one,)).fetchone() for one in names], [None] * len(names)
        )
        return [Value(bytes(row[0]), row[1]) if row else None for row in rows]

    def write(self, name: str, data: bytes, expect: str, token: str) -> str:
        """See Engine."""
        if not os.path.exists(self.path):
            files.make_folder(os.path.dirname(self.path))
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, files.PRIVATE))
        statement = {ABSENT: INSERT + "nothing", ANY: INSERT + REPLACE}.get(expect, UPDATE)
        values = {"name": name, "data": data, "expect": expect, "token": token}

        def written(found: sqlite3.Connection) -> str:
            found.execute(TABLE)
            return token if found.execute(statement, values).rowcount else ""

        return self._called(written)

    def remove(self, name: str, expect: str, token: str) -> bool:
        """See Engine."""

        def removed(found: sqlite3.Connection) -> bool:
            if found.execute("delete from entries where name = ? and ? in (version, '*')", (name, expect)).rowcount:
                return True
            there = expect == ABSENT and found.execute("select 1 from entries where name = ?", (name,)).fetchone()
            return expect in (ABSENT, ANY) and not there

        return self._called(removed, expect in (ABSENT, ANY))

    def names(self, begins: str, after: str, limit: int) -> list[str]:
        """See Engine."""
        query = "select name from entries where name >= ? and name > ? and name < ? order by name limit ?"
        values = (begins, after, upper(begins), limit or -1)
        return self._called(lambda found: [str(row[0]) for row in found.execute(query, values)], [])

    def _called(self, action: Callable[[sqlite3.Connection], T], nothing: T | None = None) -> T:
        """Carry out a call; `nothing`: the answer where nothing was ever written. Each statement is a transaction; who waits
        for another looks often, for SQLite's own pauses let one busy writer keep readers out."""
        if nothing is not None and not (os.path.exists(self.path) and os.path.getsize(self.path)):
            return nothing
        until = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return self._connected(action)
            except sqlite3.Error as fault:
                if not self._is_busy(fault):
                    raise
            if time.monotonic() > until:
                raise LockBusy(
                    f"{self.path}: another process has held its lock for {BUSY_SECONDS:.0f} s. Try again later."
                )
            time.sleep(random.uniform(0, PAUSE_SECONDS))

    def _connected(self, action: Callable[[sqlite3.Connection], T]) -> T:
        with contextlib.closing(sqlite3.connect(f"file:{quote(self.path)}?mode=rw", 0, uri=True)) as found:
            found.isolation_level = None
            found.execute("pragma journal_mode = truncate")
            found.execute("pragma synchronous = full")
            return action(found)

    def _is_busy(self, fault: sqlite3.Error) -> bool:
        """Whether another one holds the lock; any other fault is raised as ours."""
        name = getattr(fault, "sqlite_errorname", "")  # a fault of the module itself has none
        if name.startswith(REFUSED):
            raise RefusedCall(str(fault)) from None
        if not name.startswith(BUSY):
            raise BrokenFile(self.path, str(fault), remedy="Move it away, or restore a copy.") from None
        return True


def opened(path: str) -> EngineStore:
    """The store in this file."""
    return EngineStore(SqliteEngine(path), f"sqlite://{path}")
