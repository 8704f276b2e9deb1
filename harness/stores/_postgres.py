"""A store in one table of a PostgreSQL database. Each call is one statement, so any connection pooler works.

It uses libpq through psycopg, because a call of psycopg itself waits forever for a server that has stopped.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from psycopg import OperationalError
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, PGconn, PollingStatus
from psycopg.pq.abc import PGconn as Connection
from psycopg.pq.abc import PGresult

from harness.stores._engine import EngineStore, NoAnswer, RefusedCall
from harness.stores._sql import TABLE, Execute, Row, SqlEngine

CONNECTIONS = 8  # of one process, at most
INFERRED, TEXT, BYTEA, INTEGERS = 0, 25, 17, (20, 21, 23)  # types
MAKE = f'create table {TABLE} (name text collate "C" primary key, history text not null, data bytea not null)'
NO_TABLE, MADE = "42P01", ("", "42P07", "23505")  # the table is missing; this or another process has created it
LATER = (
    "08",
    "40",
    "53300",
    "55P03",
    "57",
)  # lost connections, deadlocks, limits, timeouts, a server that stops or starts
DENIED = (
    "authentication failed",
    "does not exist",
    "no password supplied",
    "pg_hba.conf",
    "permission denied",
    "invalid",
)


class PostgresEngine(SqlEngine):
    """See Engine. `seconds`: limit for one answer of the server."""

    kind = "postgresql"
    each = "json_array_elements_text(cast($1 as json))"

    def __init__(self, address: str, prefix: str, seconds: float) -> None:
        self.address, self.prefix, self.seconds = address.encode(), prefix, seconds
        self._idle: dict[int, list[Connection]] = {}  # by process: a fork must not close connections of its parent
        self._free = threading.BoundedSemaphore(CONNECTIONS)

    def execute(self, statement: str, *values: str | bytes) -> list[Sequence[Any]]:
        """See SqlEngine. Creates the table if it is missing."""
        with self._connection() as connection:
            found = _result(connection, statement, values, self.seconds)
            if _state(found) == NO_TABLE:
                made = _result(connection, MAKE, (), self.seconds)
                found = _result(connection, statement, values, self.seconds) if _state(made) in MADE else made
        return [[*row.values()] for row in _rows(found)]

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Execute]:
        with self._connection() as connection:

            def execute(statement: str, *values: str | int | None) -> list[Row]:
                sent = [None if one is None else str(one) for one in values]
                try:
                    return _rows(_result(connection, statement, sent, self.seconds, INFERRED))
                except OperationalError as fault:
                    raise NoAnswer(str(fault)) from None

            execute("begin")
            yield execute
            execute("commit")

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Connection]:
        """A connection for this caller alone. If it fails, all idle connections are closed as well: a server that went away has
        lost them, too."""
        idle = self._idle.setdefault(os.getpid(), [])
        with self._free:
            used = list[Connection]()
            try:
                used.append(idle.pop() if idle else self._connect())
                yield used[0]
            except (OperationalError, NoAnswer) as fault:
                for one in used + idle:
                    one.finish()
                idle.clear()
                raise NoAnswer(str(fault)) from None
            except BaseException:
                for one in used:
                    one.finish()  # the server rolls back
                raise
            idle += used

    def _connect(self) -> Connection:
        made, until = PGconn.connect_start(self.address), time.monotonic() + self.seconds
        step = PollingStatus.WRITING
        while made.status != ConnStatus.BAD and step in (PollingStatus.READING, PollingStatus.WRITING):
            _wait_for(made, select.POLLIN if step == PollingStatus.READING else select.POLLOUT, until)
            step = PollingStatus(made.connect_poll())
        if made.status == ConnStatus.OK:
            made.nonblocking = 1
            return made
        why = made.get_error_message()
        raise (RefusedCall if any(one in why for one in DENIED) else NoAnswer)(why)


def _result(
    connection: Connection, statement: str, values: Sequence[str | bytes | None], seconds: float, text: int = TEXT
) -> PGresult:
    """Send a statement and wait for its result. `text`: the type of texts. Raises OperationalError, NoAnswer."""
    sent = [one.encode() if isinstance(one, str) else one for one in values]
    raw = [int(isinstance(one, bytes)) for one in values]
    connection.send_query_params(statement.encode(), sent, [BYTEA if one else text for one in raw], raw, 1)
    found, until = None, time.monotonic() + seconds
    while True:
        while (unsent := connection.flush()) or connection.is_busy():
            _wait_for(connection, select.POLLIN | (select.POLLOUT if unsent else 0), until)
            connection.consume_input()
        if (more := connection.get_result()) is None:
            assert found is not None  # each statement has a result
            return found
        found = more


def _wait_for(connection: Connection, event: int, until: float) -> None:
    """Wait for an event of poll(2) at the socket. Raises NoAnswer."""
    watched = select.poll()
    watched.register(connection.socket, event)
    if not watched.poll(max(0.0, until - time.monotonic()) * 1000):
        raise NoAnswer("it takes too long")


def _rows(found: PGresult) -> list[Row]:
    """The rows, by column. Raises NoAnswer, RefusedCall."""
    if state := _state(found):
        raise (NoAnswer if state.startswith(LATER) else RefusedCall)(found.get_error_message())

    def value(row: int, column: int) -> Any:
        data, kind = found.get_value(row, column), found.ftype(column)
        if data is None or kind == BYTEA:
            return data
        return int.from_bytes(data, "big", signed=True) if kind in INTEGERS else data.decode()

    names = [(found.fname(one) or b"").decode() for one in range(found.nfields)]
    return [{name: value(row, column) for column, name in enumerate(names)} for row in range(found.ntuples)]


def _state(found: PGresult) -> str:
    """The SQLSTATE of a fault; "" for success."""
    if found.status in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
        return ""
    return (found.error_field(DiagnosticField.SQLSTATE) or b"08000").decode()


def store_at(url: str, address: str, prefix: str, seconds: float) -> EngineStore:
    """The store in this database. `seconds`: limit for one answer of the server."""
    return EngineStore(PostgresEngine(url, f"{prefix}/", seconds), address)
