"""The databases that the tests of a team are played over."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.stores.database import open_database
from harness.team import directory
from harness.team.database import Attribution, Team, migrate, open_team
from tests import crash
from tests.stores import servers
from tests.stores.conftest import skip_without

ME = Attribution(who="ops", why="the tests")
ROLE = "clerk"  # no superuser, and owns nothing
NUMBERS = count()
QUICK = ("-c", "fsync=off", "-c", "autovacuum=off")  # no test of a team kills its server


class Place(NamedTuple):
    """`url`: of a database with the tables, for the role that a team uses; `owner`: of the same, for who made them."""

    url: str
    owner: str


@pytest.fixture(scope="session")
def cluster() -> Iterator[servers.Server]:
    """A PostgreSQL for all tests of a process, with that role."""
    skip_without("postgres")
    with servers.postgres(0, *QUICK) as server:
        with open_database(server.url).transaction() as execute:
            execute(f"create role {ROLE} login")
        yield server


@pytest.fixture(scope="session")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    """An S3 for all tests of a process."""
    skip_without("s3")
    with servers.s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


def made(engine: str, folder: Path, request: pytest.FixtureRequest, *options: str) -> Place:
    """An empty database. `options`: of createdb."""
    if engine == "sqlite":
        return Place(f"sqlite://{folder}/team.db", "")
    server: servers.Server = request.getfixturevalue("cluster")
    name = f"team{next(NUMBERS)}"
    words = [str(servers.program("createdb")), "-h", "127.0.0.1", "-p", str(server.port), "-U", "tests", name, *options]
    subprocess.run(words, check=True, capture_output=True)
    owner = server.url.replace("/postgres", f"/{name}")
    return Place(owner.replace("tests@", f"{ROLE}@"), owner)


@pytest.fixture(scope="session")
def templates() -> dict[str, Place]:
    """{engine: a database as that of `place`, which nobody is connected to}."""
    return {}


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty database on each engine; a filled one where a test asks for `place`."""
    if "place" not in request.fixturenames:
        return made(request.param, tmp_path, request)
    templates = request.getfixturevalue("templates")
    if request.param not in templates:
        folder = request.getfixturevalue("tmp_path_factory").mktemp("template")
        templates[request.param] = made(request.param, folder, request)
        assert crash.in_child(lambda: _prepare(templates[request.param])) == 0
    return _copied(templates[request.param], tmp_path, request)


@pytest.fixture
def place(empty: Place) -> Place:
    """A database with the tables and two tenants, `acme` and `globex`, each filled alike."""
    return empty


def _copied(template: Place, folder: Path, request: pytest.FixtureRequest) -> Place:
    if template.owner:
        return made("postgresql", folder, request, "--template", template.owner.rpartition("/")[2])
    copy = made("sqlite", folder, request)
    shutil.copyfile(template.url.removeprefix("sqlite://"), copy.url.removeprefix("sqlite://"))
    return copy


def _prepare(place: Place) -> None:
    migrate(place.owner or place.url, ROLE)
    team = open_team(place.url)
    for tenant in ("acme", "globex"):
        team.add_tenant(tenant)
        fill(team, tenant)


@pytest.fixture
def team(place: Place) -> Team:
    """Its handle."""
    return open_team(place.url)


def fill(team: Team, tenant: str) -> None:
    """The agent `scribe`, the users `ann` and `bob`, the space `sales`, and the thread `deal` of ann in it; ann and the agent
    may write in the space."""
    with team.transaction(tenant) as tx:
        for kind, name in (("agent", "scribe"), ("user", "ann"), ("user", "bob"), ("space", "sales")):
            directory.add(tx, kind, name, ME)
        for who in ("ann", "scribe"):
            directory.grant(tx, who, "sales", "write", ME)
        directory.add(tx, "thread", "deal", ME, {"agent": "scribe", "space": "sales", "user": "ann"})
