"""A store in one SQLite file, for processes of one machine.

Each call opens its own connection, so that no fork and no thread shares one. The journal mode needs no connection that stays
open; a commit is durable when it returns.
"""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from harness.base.errors import BrokenFile, LockBusy
from harness.state import files
from harness.stores._engine import EngineStore, RefusedCall
from harness.stores._sql import INSERT, TABLE, Execute, Row, SqlEngine

T = TypeVar("T")

BUSY_SECONDS = 10.0  # limit of the wait for another process
PAUSE_SECONDS = 0.002  # between two attempts, at most
MAKE = f"create table if not exists {TABLE} (name text primary key, history text not null, data blob not null)"
BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED")
REFUSED = ("SQLITE_FULL", "SQLITE_READONLY", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_TOOBIG")


class SqliteEngine(SqlEngine):
    """See Engine. `path`: the file, created by the first write."""

    kind = "sqlite"
    each = "json_each($1)"

    def __init__(self, path: str) -> None:
        self.path = path

    def execute(self, statement: str, *values: str | bytes) -> list[Sequence[Any]]:
        if statement.startswith(INSERT) and not os.path.exists(self.path):
            self._make()
        elif not (os.path.exists(self.path) and (os.path.getsize(self.path) or statement.startswith(INSERT))):
            return []
        return self._wait_for_lock(lambda: self._run_statement(statement, values))

    def _run_statement(self, statement: str, values: Sequence[str | bytes]) -> list[Sequence[Any]]:
        with contextlib.closing(self._connect()) as found:
            if statement.startswith(INSERT):
                found.execute(MAKE)
            return found.execute(statement, _parameters(values)).fetchall()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Execute]:
        """See SqlEngine. It holds the lock of the file from the beginning, even to read; a missing file is created."""
        if not os.path.exists(self.path):
            self._make()
        with contextlib.closing(self._wait_for_lock(self._connect)) as found:

            def execute(statement: str, *values: str | int | None) -> list[Row]:
                done = self._wait_for_lock(lambda: found.execute(statement, _parameters(values)))
                names = [one[0] for one in done.description or ()]
                return [dict(zip(names, row, strict=True)) for row in done.fetchall()]

            found.execute("pragma foreign_keys = on")
            execute("begin immediate")
            yield execute
            execute("commit")

    def _make(self) -> None:
        files.make_folder(os.path.dirname(self.path))
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, files.PRIVATE))

    def _connect(self) -> sqlite3.Connection:
        found = sqlite3.connect(f"file:{quote(self.path)}?mode=rw", 0, isolation_level=None, uri=True)
        try:
            found.execute("pragma journal_mode = truncate")
            found.execute("pragma synchronous = full")
        except sqlite3.Error:
            found.close()
            raise
        return found

    def _wait_for_lock(self, action: Callable[[], T]) -> T:
        """Carry out `action`, and repeat it while another process has the lock. The pauses are short, because with SQLite's own
        pauses one busy writer keeps others out."""
        until = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return action()
            except sqlite3.Error as fault:
                self._check(fault, is_late=time.monotonic() > until)
            time.sleep(random.uniform(0, PAUSE_SECONDS))

    def _check(self, fault: sqlite3.Error, *, is_late: bool) -> None:
        """Raise the fault, unless another process holds the lock and there is time to wait."""
        if isinstance(fault, sqlite3.IntegrityError):
            raise RefusedCall(str(fault)) from None
        name = getattr(fault, "sqlite_errorname", "")  # a fault of the Python module has none
        if name.startswith(REFUSED):
            raise RefusedCall(str(fault)) from None
        if not name.startswith(BUSY):
            raise BrokenFile(self.path, str(fault), remedy="Move it away, or restore a copy.") from None
        if is_late:
            words = f"another process has held its lock for {BUSY_SECONDS:.0f} s"
            raise LockBusy(f"{self.path}: {words}. Try again later.") from None


def _parameters(values: Sequence[Any]) -> dict[str, Any]:
    return {str(number): value for number, value in enumerate(values, 1)}


def store_at(path: str) -> EngineStore:
    """The store in this file."""
    return EngineStore(SqliteEngine(path), f"sqlite://{path}")
