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
from harness.stores.database import Asked, Database, Row, open_database

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "migrations")
PRESENT = {
    "sqlite": "select 1 as found from sqlite_master where name = 'team_migrations'",
    "postgresql": "select 1 as found where to_regclass('team_migrations') is not null",
}
LOCK = "select pg_advisory_xact_lock(7283)"  # of those who migrate
UNBOUND = "select rolname from pg_roles where rolname = current_user and (rolsuper or rolbypassrls)"
KEPT = "create table if not exists team_migrations (number bigint primary key, name text not null)"
MAY = (
    "grant select, insert, update on all tables in schema public to ROLE",
    "revoke insert, update on team_transitions, team_migrations from ROLE",
    "revoke update on team_audit from ROLE",
    "grant update (result) on team_audit to ROLE",
    "grant delete on team_grants to ROLE",
)


class Attribution(Record, frozen=True):
    """Who calls a verb and why. `key`: of the caller's choice, the same if it sends the verb again; "": never again."""

    who: str
    why: str = ""
    key: str = ""


class Transaction:
    """A transaction of one tenant. `tenant`: its id."""

    def __init__(self, tenant: str, asked: Asked) -> None:
        self.tenant, self._asked = tenant, asked

    def ask(self, statement: str, *values: str | int | None) -> list[Row]:
        """The rows of a statement, in which `$1` is the tenant, and `$2` the first value. Raises ValueError for one without
        `$1`; else as Database."""
        if not re.search(r"\$1\b", statement):
            raise ValueError(f"no tenant in: {statement}")
        return self._asked(statement, self.tenant, *values)


class Team:
    """The handle of a team's database, of the version of this program."""

    def __init__(self, database: Database) -> None:
        self.database = database

    @contextlib.contextmanager
    def transaction(self, tenant: str) -> Iterator[Transaction]:
        """A transaction of a tenant, by name or id: all or nothing. Raises UsageFault for an unknown one; else as
        Database."""
        with self.database.transaction() as ask:
            self._set(ask, tenant)
            found = ask("select id from team_tenants where $1 in (id, name)", tenant)
            if not found:
                raise UsageFault(f"There is no tenant {tenant!r} in {self.database.where}.")
            self._set(ask, found[0]["id"])
            yield Transaction(found[0]["id"], ask)

    def add_tenant(self, name: str) -> str:
        """The id of a tenant, which is made unless it is there. Raises UsageFault for a name that is none."""
        check_name("tenant", name)
        with self.database.transaction() as ask:
            self._set(ask, name)
            ask("insert into team_tenants (id, name) values ($1, $2) on conflict (name) do nothing", new_id(), name)
            return str(ask("select id from team_tenants where name = $1", name)[0]["id"])

    def _set(self, ask: Asked, tenant: str) -> None:
        """Until the transaction ends, row-level security lets this tenant's rows alone be seen."""
        if not tenant:
            raise UsageFault('Name a tenant: --tenant NAME, or in .harness/config.toml: [team] tenant = "NAME"')
        if self.database.kind == "postgresql":
            ask("select set_config('harness.tenant', $1, true)", tenant)


def new_id() -> str:
    """An identity."""
    return str(uuid.uuid4())


def check_name(kind: str, name: str) -> None:
    """Raises UsageFault for what is no folder name on every disk, or looks like an identity."""
    is_id = re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", name)
    if is_id or not re.fullmatch(r"[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?", name):
        words = "of a-z, 0-9, '.', '_' and '-', at most 64, which begins and ends in a letter or digit"
        raise UsageFault(f"{name!r} is no name of a {kind}: it is a folder name {words}.")


def open_team(url: str) -> Team:
    """The team of a database by its URL. Raises BrokenFile where its tables are behind or ahead of this program, NeedsPerson
    for a role that row-level security does not bind, and as `open_database`."""
    database = open_database(url)
    with database.transaction() as ask:
        done, newest = _done(database, ask), max(_migrations())
        free = ask(UNBOUND) if database.kind == "postgresql" else []
    if done < newest:
        words = (
            f"its tables have version {done}, and this program needs {newest}" if done else "it has no tables of a team"
        )
        raise BrokenFile(database.where, words, remedy="Run: harness team init.")
    if free:
        raise NeedsPerson(
            f"{database.where}: row-level security does not bind the role {free[0]['rolname']}. Name one in [team] database"
            " that is no superuser, and run: harness team init --as postgresql://OWNER@HOST/DATABASE"
        )
    return Team(database)


def migrate(url: str, role: str = "") -> list[str]:
    """Brings the tables to the version of this program, each migration in a transaction; returns the names of the new ones.
    `role`: who may then use the tables, on PostgreSQL. Raises BrokenFile for a database ahead of this program."""
    database, made = open_database(url), []
    for number, name in _migrations().items():
        with database.transaction() as ask:
            if database.kind == "postgresql":
                ask(LOCK)
            if _done(database, ask) < number:
                for statement in [*_statements(database.kind, name), KEPT]:
                    ask(statement)
                ask("insert into team_migrations (number, name) values ($1, $2)", number, name)
                made.append(name)
    if role and database.kind == "postgresql":
        with database.transaction() as ask:
            for statement in MAY:
                ask(statement.replace("ROLE", '"{}"'.format(role.replace('"', '""'))))
    return made


def _migrations() -> dict[int, str]:
    """{number: file name}, in their order."""
    return {int(name[:4]): name for name in files.names(FOLDER) if name.endswith(".sql")}


def _statements(kind: str, name: str) -> list[str]:
    """The statements of a migration; one whose name says an engine is for that alone."""
    text = files.read_text(os.path.join(FOLDER, name)) or ""
    return text.strip().split("\n\n") if name.split(".")[1] in ("sql", kind) else []


def _done(database: Database, ask: Asked) -> int:
    """The number of the newest migration that was carried out, 0 for none. Raises BrokenFile for one of the future."""
    known = ask("select max(number) as newest from team_migrations") if ask(PRESENT[database.kind]) else []
    done, newest = known[0]["newest"] or 0 if known else 0, max(_migrations())
    if done > newest:
        words = f"its tables have version {done}, and this program knows {newest}"
        raise BrokenFile(database.where, words, remedy="Use the newer program that made them.")
    return int(done)
