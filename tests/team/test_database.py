"""The database of a team: tables, versions, and one tenant a transaction."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile, NeedsPerson, StoreRefusal, UsageFault
from harness.stores.database import open_database
from harness.team import database, directory
from harness.team.database import Team, check_name, migrate, open_team
from tests.team.conftest import ME, Place

TABLES = (
    *("team_tenants", "team_users", "team_agents", "team_spaces", "team_grants"),
    *("team_threads", "team_goals", "team_tasks", "team_finalizes", "team_audit"),
)
HOSTILE = (
    "select * from team_users where 1 = 1 or $1 = ''",
    "select * from team_users where $1 = $1",
    "select users.* from team_users as users join team_audit as audit on $1 <> ''",
    "select * from (select * from team_users union all select * from team_users) as one where $1 <> ''",
    "with found as (select * from team_users where $1 <> '') select * from found",
    "update team_users set name = name where $1 <> '' returning *",
    "select * from team_users where $1 <> '' for update",
)


def test_the_tables_are_made_once_and_again_is_nothing(empty: Place) -> None:
    """One file a migration, in their order; a database without them is refused in one line."""
    with pytest.raises(BrokenFile, match=r"it has no team tables\. Run: harness team init") as raised:
        open_team(empty.url)
    assert raised.value.code == 65
    assert migrate(empty.owner or empty.url) == sorted(one.name for one in Path(database.FOLDER).iterdir())
    assert migrate(empty.owner or empty.url) == []


def test_a_database_behind_or_ahead_is_refused_and_stays_as_it_is(place: Place) -> None:
    """Behind: it says what to run. Ahead: a program that is older does not touch it, also not to migrate."""
    owner = open_database(place.owner or place.url)
    for change, words in (
        ("delete from team_migrations where number = 2", r"version 1, and this program needs 2\. Run:"),
        ("insert into team_migrations (number, name) values (7, 'later')", r"version 7, and this program knows 2\."),
    ):
        with owner.transaction() as execute:
            execute(change)
        with pytest.raises(BrokenFile, match=words):
            open_team(place.url)
    with pytest.raises(BrokenFile, match="version 7"):
        migrate(place.owner or place.url)


def test_a_migration_that_fails_leaves_nothing(empty: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a table of it is there, and a corrected one is carried out."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_a.sql").write_text("create table made (a text)\n\ncreate nonsense")
    monkeypatch.setattr(database, "FOLDER", str(folder))
    with pytest.raises((StoreRefusal, BrokenFile), match="nonsense"):
        migrate(empty.owner or empty.url)
    (folder / "0001_a.sql").write_text("create table made (a text)\n")
    assert migrate(empty.owner or empty.url) == ["0001_a.sql"]


def test_an_unknown_tenant_and_none_are_refused(team: Team) -> None:
    """One line, nothing changed."""
    for name in ("initech", "", "x' or '1' = '1"):
        with pytest.raises(UsageFault, match="tenant"), team.transaction(name):
            pass


def statements(path: Path) -> list[str]:
    """The texts of a module; a part that is put in later is `{}`."""
    tree = ast.parse(path.read_text())
    parted = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    inner = {id(part) for node in parted for part in node.values}
    whole = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in inner]
    texts = [
        "".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values) for node in parted
    ]
    return [*texts, *(text for text in whole if isinstance(text, str))]


def test_a_statement_that_names_no_tenant_is_not_carried_out(team: Team) -> None:
    """On SQLite this one place is what keeps tenants apart; so every statement of ours has the condition, too."""
    with team.transaction("acme") as tx:
        for statement in ("select * from team_users", "delete from team_grants", "select $10"):
            with pytest.raises(ValueError, match="does not name the tenant"):
                tx.execute(statement)
    texts = [text for path in Path(directory.__file__).parent.glob("*.py") for text in statements(path)]
    table = re.compile(r"\b(?:from|join|update|into) team_(?!transitions|tenants|migrations)[\w{}]+(?: as (\w+))?")
    named = [(text, found[1] or "") for text in texts for found in table.finditer(text)]
    assert len(named) > 20
    for text, alias in named:
        assert re.search(rf"\b{alias}\.?tenant = \$1|\(tenant,", text), (alias, text)


def test_the_row_of_another_tenant_can_not_be_named(team: Team) -> None:
    """A thread of one tenant is bound to what is of the same; the constraint holds on both engines."""
    with team.transaction("globex") as tx:
        foreign = directory.find(tx, "space", "sales")["id"]
    with team.transaction("acme") as tx, pytest.raises(UsageFault, match="no space"):
        directory.find(tx, "space", foreign)
    with pytest.raises(StoreRefusal), team.transaction("acme") as tx:
        tx.execute("update team_threads set space_id = $2 where tenant = $1", foreign)


@pytest.fixture
def postgresql(place: Place) -> Place:
    """That of PostgreSQL alone."""
    if not place.owner:
        pytest.skip("SQLite has no row-level security; its one place is tried above")
    return place


@pytest.mark.parametrize("hostile", HOSTILE)
def test_row_level_security_shows_a_hostile_query_its_own_tenant_alone(postgresql: Place, hostile: str) -> None:
    """Whatever a statement forgets or is made to say."""
    team = open_team(postgresql.url)
    with team.transaction("acme") as tx:
        rows = tx.execute(hostile)
        assert rows and {row["tenant"] for row in rows} == {tx.tenant}
        assert len(tx.execute("select * from team_tenants where $1 <> ''")) == 1


def test_row_level_security_lets_nobody_write_for_another_tenant_or_lift_it(postgresql: Place) -> None:
    """Each is refused, and nothing changes."""
    team = open_team(postgresql.url)
    with team.transaction("globex") as tx:
        other = tx.tenant
    for hostile in (
        f"insert into team_users (tenant, id, name) select '{other}', $1, 'eve'",
        f"update team_users set tenant = '{other}' where $1 <> ''",
        f"insert into team_tenants (id, name) select '{other}x', 'x' || $1",
        "delete from team_users where $1 <> ''",
        "update team_audit set who = 'eve' where $1 <> ''",
        "insert into team_transitions select 'task', 'none', $1, 'todo', 'done'",
        *(f"{words} -- $1" for words in ("alter table team_users disable row level security", "drop table team_tasks")),
        *(
            f"{words} -- $1"
            for words in ("drop policy tenant on team_users", "set role tests", "alter role clerk superuser")
        ),
        "set local row_security = off; -- $1",
    ):
        with pytest.raises(StoreRefusal), team.transaction("acme") as tx:
            tx.execute(hostile)
            tx.execute("select 1 / (count(*) - 2) from team_users where $1 <> ''")  # `row_security = off` fails here
    with team.transaction("globex") as tx:
        assert len(directory.members(tx)["users"]) == 2


def test_a_missing_tenant_is_an_error_on_a_new_and_on_a_pooled_connection(postgresql: Place) -> None:
    """And never no rows, whatever table is asked; also for the owner of the tables, where it is no superuser."""
    team = open_team(postgresql.url)
    for _ in ("new", "pooled"):
        for table in TABLES:
            with pytest.raises(StoreRefusal, match="no tenant is set"), team.database.transaction() as execute:
                execute(f"select * from {table}")
        with team.transaction("acme") as tx:  # whose connection goes back to the pool, with the setting empty
            assert directory.threads(tx)
    with (
        team.transaction("acme"),
        pytest.raises(StoreRefusal, match="no tenant"),
        team.database.transaction() as execute,
    ):
        execute("select * from team_users")


def test_a_role_that_row_level_security_does_not_bind_is_refused(postgresql: Place) -> None:
    """A superuser would see every tenant."""
    with pytest.raises(NeedsPerson, match="the role tests bypasses row-level security"):
        open_team(postgresql.owner)


def test_the_owner_of_the_tables_is_bound_as_well(empty: Place) -> None:
    """Who has one role alone makes the tables with it."""
    if not empty.owner:
        pytest.skip("SQLite has no roles")
    with open_database(empty.owner).transaction() as execute:
        execute("grant create on schema public to clerk")
    migrate(empty.url)
    team = open_team(empty.url)
    for name in ("acme", "globex"):
        team.add_tenant(name)
        with team.transaction(name) as tx:
            directory.add(tx, "user", "ann", ME)
            assert len(tx.execute("select * from team_users where $1 <> ''")) == 1


@pytest.mark.parametrize(
    "name", ["", "..", "a/b", "A", ".a", "a.", "a" * 65, "é", "0e8400-", f"{'0' * 8}-0000-0000-0000-{'0' * 12}"]
)
def test_a_name_is_a_folder_name_on_every_disk(name: str) -> None:
    """It climbs nowhere, and no identity looks like it."""
    with pytest.raises(UsageFault, match="is not a valid name of a space"):
        check_name("space", name)
