"""The database of a team: every query goes through a transaction of one tenant; numbered migrations make the tables."""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Iterator

from harness.base.errors import BrokenFile, NeedsPerson, UsageFault
from harness.base.record import Record
from harness.state import files
from harness.state.layout import command
from harness.stores.database import Database, Execute, Row, open_database

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "migrations")
HAS_MIGRATIONS = {
    "sqlite": "select 1 as found from sqlite_master where name = 'team_migrations'",
    "postgresql": "select 1 as found where to_regclass('team_migrations') is not null",
}
LOCK = "select pg_advisory_xact_lock(7283)"  # held by the process that migrates
UNRESTRICTED_ROLE = "select rolname from pg_roles where rolname = current_user and (rolsuper or rolbypassrls)"
MAKE_MIGRATIONS = "create table if not exists team_migrations (number bigint primary key, name text not null)"
ROLE_GRANTS = (
    "grant select, insert, update on all tables in schema public to ROLE",
    "revoke insert, update on team_transitions, team_migrations from ROLE",
    "revoke update on team_audit from ROLE",
    "grant update (result) on team_audit to ROLE",
    "grant delete on team_grants to ROLE",
)


class Attribution(Record, frozen=True):
    """Who calls a verb and why. `key`: chosen by the caller, and the same when it sends the verb again; "" for a single call."""

    who: str
    why: str = ""
    key: str = ""


class Transaction:
    """A transaction of one tenant. `tenant`: the tenant's id."""

    def __init__(self, tenant: str, execute: Execute) -> None:
        self.tenant, self._execute = tenant, execute

    def execute(self, statement: str, *values: str | int | None) -> list[Row]:
        """The rows of a statement, in which `$1` is the tenant and `$2` the first value. Raises ValueError for a statement
        without `$1`, and otherwise as Database."""
        if not re.search(r"\$1\b", statement):
            raise ValueError(f"the statement does not name the tenant: {statement}")
        return self._execute(statement, self.tenant, *values)


class Team:
    """A team's database, whose tables have the version of this program."""

    def __init__(self, database: Database) -> None:
        self.database = database

    @contextlib.contextmanager
    def transaction(self, tenant: str) -> Iterator[Transaction]:
        """A transaction of a tenant, by name or id: all or nothing. Raises UsageFault for an unknown tenant, and otherwise
        as Database."""
        with self.database.transaction() as execute:
            self._set_tenant(execute, tenant)
            found = execute("select id from team_tenants where $1 in (id, name)", tenant)
            if not found:
                raise UsageFault(f"There is no tenant {tenant!r} in {self.database.where}.")
            self._set_tenant(execute, found[0]["id"])
            yield Transaction(found[0]["id"], execute)

    def add_tenant(self, name: str) -> str:
        """The id of a tenant, which is created if it is missing. Raises UsageFault for an invalid name."""
        check_name("tenant", name)
        with self.database.transaction() as execute:
            self._set_tenant(execute, name)
            execute("insert into team_tenants (id, name) values ($1, $2) on conflict (name) do nothing", new_id(), name)
            return str(execute("select id from team_tenants where name = $1", name)[0]["id"])

    def _set_tenant(self, execute: Execute, tenant: str) -> None:
        """Row-level security shows only this tenant's rows until the transaction ends."""
        if not tenant:
            raise UsageFault('Name a tenant: --tenant NAME, or in .harness/config.toml: [team] tenant = "NAME"')
        if self.database.kind == "postgresql":
            execute("select set_config('harness.tenant', $1, true)", tenant)


def new_id() -> str:
    """A new identity."""
    return str(uuid.uuid4())


def check_name(kind: str, name: str) -> None:
    """Raises UsageFault for a name that is not a folder name on every disk, or that looks like an identity."""
    is_id = re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", name)
    if is_id or not re.fullmatch(r"[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?", name):
        words = "at most 64 of a-z, 0-9, '.', '_' and '-'; the first and the last are a letter or a digit"
        raise UsageFault(f"{name!r} is not a valid name of a {kind}. A name has {words}.")


def open_team(url: str) -> Team:
    """The team in the database of a URL. Raises BrokenFile if its tables are older or newer than this program, NeedsPerson
    for a role that bypasses row-level security, and otherwise as `open_database`."""
    database = open_database(url)
    with database.transaction() as execute:
        version, newest = _version(database, execute), max(_migrations())
        unrestricted = execute(UNRESTRICTED_ROLE) if database.kind == "postgresql" else []
    if version < newest:
        words = (
            f"its tables have version {version}, and this program needs {newest}"
            if version
            else "it has no team tables"
        )
        raise BrokenFile(database.where, words, remedy=f"Run: {command('team init')}")
    if unrestricted:
        raise NeedsPerson(
            f"{database.where}: the role {unrestricted[0]['rolname']} bypasses row-level security. Name a role in [team]"
            f" database that is not a superuser, and run: {command('team init')} --as postgresql://OWNER@HOST/DATABASE"
        )
    return Team(database)


def migrate(url: str, role: str = "") -> list[str]:
    """Migrate the tables to the version of this program, each step in a transaction; returns the names of the new migrations.
    `role`: may use the tables afterwards, on PostgreSQL. Raises BrokenFile for a database newer than this program."""
    database, applied = open_database(url), []
    for number, name in _migrations().items():
        with database.transaction() as execute:
            if database.kind == "postgresql":
                execute(LOCK)
            if _version(database, execute) < number:
                for statement in [*_statements(database.kind, name), MAKE_MIGRATIONS]:
                    execute(statement)
                execute("insert into team_migrations (number, name) values ($1, $2)", number, name)
                applied.append(name)
    if role and database.kind == "postgresql":
        with database.transaction() as execute:
            for statement in ROLE_GRANTS:
                execute(statement.replace("ROLE", '"{}"'.format(role.replace('"', '""'))))
    return applied


def _migrations() -> dict[int, str]:
    """{number: file name}, in their order."""
    return {int(name[:4]): name for name in files.names(FOLDER) if name.endswith(".sql")}


def _statements(kind: str, name: str) -> list[str]:
    """The statements of a migration; a file name with an engine in it is for that engine only."""
    text = files.read_text(os.path.join(FOLDER, name)) or ""
    return text.strip().split("\n\n") if name.split(".")[1] in ("sql", kind) else []


def _version(database: Database, execute: Execute) -> int:
    """The number of the newest migration in the database, 0 for none. Raises BrokenFile if this program does not know it."""
    rows = (
        execute("select max(number) as newest from team_migrations") if execute(HAS_MIGRATIONS[database.kind]) else []
    )
    version, newest = rows[0]["newest"] or 0 if rows else 0, max(_migrations())
    if version > newest:
        words = f"its tables have version {version}, and this program knows {newest}"
        raise BrokenFile(database.where, words, remedy="Use the newer program that made them.")
    return int(version)
