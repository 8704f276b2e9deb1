"""Entries in a table: the common part of the engines of SQLite and PostgreSQL. Each call is one statement, so it is atomic."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from harness.stores._engine import HISTORY_CHARS, prefix_end
from harness.stores.store import ABSENT, ANY, Value

Row = dict[str, Any]  # by column: texts, integers, bytes and None
Execute = Callable[..., list[Row]]  # called with a statement and its values

TABLE = "harness_entries"
INSERT = f"insert into {TABLE} as known (name, history, data) values ($1, $2, $3) on conflict (name) do "
NOTHING = INSERT + "nothing returning history"
REPLACE = f"""{INSERT} update set history = substr(excluded.history || known.history, 1, {HISTORY_CHARS}), data = excluded.data
where known.history not like '%' || excluded.history || '%' returning history"""
UPDATE = f"""update {TABLE} set history = substr($2 || history, 1, {HISTORY_CHARS}), data = $3
where name = $1 and history = $4 returning history"""
DELETE = f"delete from {TABLE} where name = $1 and $4 in (history, '{ANY}') returning history"
READ = f"select name, data, history from {TABLE} where name in (select value from EACH)"  # of a JSON array in $1
NAMES = f"""select name from {TABLE} where name >= $1 and name > $2 and name < $3
order by name limit cast($4 as bigint)"""
ALL = str(2**62)  # rows


class SqlEngine:
    """See Engine. `prefix`: begins all its names in the table; `kind`: `sqlite` or `postgresql`; `each`: SQL that lists a JSON
    array in a column `value`."""

    prefix, kind, each = "", "", ""

    def execute(self, statement: str, *values: str | bytes) -> list[Sequence[Any]]:
        """The rows of a statement; data are passed as bytes."""
        raise NotImplementedError

    def transaction(self) -> AbstractContextManager[Execute]:
        """A transaction, rolled back if its block raises; values are texts, integers and None. Raises NoAnswer, RefusedCall."""
        raise NotImplementedError

    def read(self, names: Sequence[str]) -> list[Value | None]:
        known = [self.prefix + one for one in names]
        rows = self.execute(READ.replace("EACH", self.each), json.dumps(known))
        found = {name: Value(data, version) for name, data, version in rows}
        return [found.get(one) for one in known]

    def change(self, name: str, data: bytes | None, expect: str, token: str) -> str:
        statement = DELETE if data is None else {ABSENT: NOTHING, ANY: REPLACE}.get(expect, UPDATE)
        return "".join(row[0] for row in self.execute(statement, self.prefix + name, token, data or b"", expect))

    def names(self, begins: str, after: str, limit: int) -> list[str]:
        low = self.prefix + begins
        rows = self.execute(NAMES, low, self.prefix + after, prefix_end(low), str(limit or ALL))
        return [row[0].removeprefix(self.prefix) for row in rows]
