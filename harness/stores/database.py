"""A database with transactions, on SQLite or PostgreSQL, for rows instead of bytes by key.

A statement runs on both: its values are `$1`, `$2` …, texts, integers and None; types are `text` and `bigint`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from harness.base.errors import UsageFault
from harness.stores._engine import EngineStore, retry, translate_faults
from harness.stores._sql import Execute, Row, SqlEngine
from harness.stores.urls import open_store

__all__ = ["Database", "Execute", "Row", "open_database"]


class Database:
    """`kind`: `sqlite` or `postgresql`; `where`: its address without a password. Threads and processes may share it."""

    def __init__(self, engine: SqlEngine, where: str) -> None:
        self.engine, self.kind, self.where = engine, engine.kind, where

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Execute]:
        """One transaction with `execute(statement, *values)`: durable when the block ends, rolled back if it raises.

        Raises StoreUnavailable, after which the transaction may or may not be committed; StoreRefusal, BrokenFile, LockBusy;
        and UsageFault for a text that no database can store."""
        with contextlib.ExitStack() as stack:
            run = retry(self.where, lambda: stack.enter_context(self.engine.transaction()))

            def execute(statement: str, *values: str | int | None) -> list[Row]:
                if invalid := [one for one in values if isinstance(one, str) and not _is_storable(one)]:
                    raise UsageFault(f"{invalid[0]!r} cannot be stored: it is not UTF-8, or has a NUL.")
                with translate_faults(self.where):
                    return run(statement, *values)

            yield execute
            with translate_faults(self.where):
                stack.close()


def _is_storable(text: str) -> bool:
    return "\0" not in text and text.encode(errors="ignore").decode() == text


def open_database(url: str) -> Database:
    """The database of a URL, sqlite:///PATH or postgresql://HOST/DATABASE. The first use connects to a server. Raises
    UsageFault and Unavailable, as `open_store`."""
    store = open_store(url)
    if isinstance(store, EngineStore) and isinstance(store.engine, SqlEngine):
        return Database(store.engine, store.address)
    raise UsageFault(
        f"{store.describe(())} is not a database. Write sqlite:///PATH or postgresql://ROLE@HOST/DATABASE."
    )
