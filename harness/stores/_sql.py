"""Entries in a table: what the engines of SQLite and PostgreSQL have in common. Each call is one statement, so it is whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

from harness.stores._engine import HISTORY_CHARS, TOKEN_CHARS, upper
from harness.stores.store import ABSENT, ANY, Value

TABLE = "harness_entries"
VERSION = f"substr(history, 1, {TOKEN_CHARS})"
INSERT = f"insert into {TABLE} as known (name, history, data) values ($1, $2, $3) on conflict (name) do "
NOTHING = INSERT + "nothing"
REPLACE = f"""{INSERT} update set history = substr(excluded.history || known.history, 1, {HISTORY_CHARS}), data = excluded.data
where known.history not like '%' || excluded.history || '%'"""
UPDATE = f"""update {TABLE} set history = substr($2 || history, 1, {HISTORY_CHARS}), data = $3
where name = $1 and {VERSION} = $4"""
DELETE = f"delete from {TABLE} where name = $1 and $4 in ({VERSION}, '{ANY}')"
READ = f"select name, data, {VERSION} from {TABLE} where name in (select value from EACH)"  # of a JSON array in $1
HISTORY = f"select history from {TABLE} where name = $1"
NAMES = f"""select name from {TABLE} where name >= $1 and name > $2 and name < $3
order by name limit cast($4 as bigint)"""
ALL = str(2**62)  # rows


class Database(Protocol):
    """What carries a statement out. `each`: the rows, with a column `value`, of a JSON array of texts in $1."""

    each: str

    def ask(self, statement: str, *values: str | bytes) -> tuple[list[Sequence[Any]], int]:
        """(the rows, how many were changed); values are bytes for the data."""


class SqlEngine:
    """See Engine. `prefix`: with which all names begin in the table."""

    def __init__(self, database: Database, prefix: str = "") -> None:
        self.database, self.prefix = database, prefix

    def read(self, names: Sequence[str]) -> list[Value | None]:
        """See Engine."""
        known = [self.prefix + one for one in names]
        rows, _ = self.database.ask(READ.replace("EACH", self.database.each), json.dumps(known))
        found = {name: Value(data, version) for name, data, version in rows}
        return [found.get(one) for one in known]

    def change(self, name: str, data: bytes | None, expect: str, token: str) -> str:
        """See Engine."""
        statement = DELETE if data is None else {ABSENT: NOTHING, ANY: REPLACE}.get(expect, UPDATE)
        return token if self.database.ask(statement, self.prefix + name, token, data or b"", expect)[1] else ""

    def history(self, name: str) -> str:
        """See Engine."""
        return "".join(row[0] for row in self.database.ask(HISTORY, self.prefix + name)[0])

    def names(self, begins: str, after: str, limit: int) -> list[str]:
        """See Engine."""
        low = self.prefix + begins
        rows, _ = self.database.ask(NAMES, low, self.prefix + after, upper(low), str(limit or ALL))
        return [row[0].removeprefix(self.prefix) for row in rows]
