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
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from harness.base.errors import BrokenFile, LockBusy
from harness.state import files
from harness.stores._engine import EngineStore, RefusedCall
from harness.stores._sql import INSERT, TABLE, SqlEngine

BUSY_SECONDS = 10.0  # that a call waits for another process
PAUSE_SECONDS = 0.002  # between two tries, at most
MAKE = f"create table if not exists {TABLE} (name text primary key, history text not null, data blob not null)"
BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED")
REFUSED = ("SQLITE_FULL", "SQLITE_READONLY", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_TOOBIG")


class SqliteEngine(SqlEngine):
    """See Engine. `path`: the file, made by the first write."""

    each = "json_each($1)"

    def __init__(self, path: str) -> None:
        self.path = path

    def ask(self, statement: str, *values: str | bytes) -> list[Sequence[Any]]:
        """See SqlEngine. Who waits for another looks often: SQLite's own pauses let one busy writer keep readers out."""
        if statement.startswith(INSERT) and not os.path.exists(self.path):
            files.make_folder(os.path.dirname(self.path))
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, files.PRIVATE))
        elif not (os.path.exists(self.path) and (os.path.getsize(self.path) or statement.startswith(INSERT))):
            return []
        until = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return self._carried_out(statement, {str(number): value for number, value in enumerate(values, 1)})
            except sqlite3.Error as fault:
                self._check(fault, is_late=time.monotonic() > until)
            time.sleep(random.uniform(0, PAUSE_SECONDS))

    def _carried_out(self, statement: str, values: dict[str, str | bytes]) -> list[Sequence[Any]]:
        with contextlib.closing(sqlite3.connect(f"file:{quote(self.path)}?mode=rw", 0, uri=True)) as found:
            found.isolation_level = None
            found.execute("pragma journal_mode = truncate")
            found.execute("pragma synchronous = full")
            if statement.startswith(INSERT):
                found.execute(MAKE)
            return found.execute(statement, values).fetchall()

    def _check(self, fault: sqlite3.Error, *, is_late: bool) -> None:
        """Raise what is wrong, unless another one holds the lock and there is time."""
        name = getattr(fault, "sqlite_errorname", "")  # a fault of the module itself has none
        if name.startswith(REFUSED):
            raise RefusedCall(str(fault)) from None
        if not name.startswith(BUSY):
            raise BrokenFile(self.path, str(fault), remedy="Move it away, or restore a copy.") from None
        if is_late:
            words = f"another process has held its lock for {BUSY_SECONDS:.0f} s"
            raise LockBusy(f"{self.path}: {words}. Try again later.") from None


def opened(path: str) -> EngineStore:
    """The store in this file."""
    return EngineStore(SqliteEngine(path), f"sqlite://{path}")
