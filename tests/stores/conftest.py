"""The stores that the contract is played over."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.stores.store import Store
from tests.stores import servers
from tests.stores.places import IMPLEMENTATIONS, OUTLIVING, Place


def skip_without(name: str) -> None:
    """Skip a test of a store whose server cannot be had here; CI installs all of them."""
    if why := servers.missing(name):
        assert not os.environ.get("CI"), why
        pytest.skip(f"{why}: apt install redis-server postgresql")


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    """A Redis for all tests of a process."""
    skip_without("redis")
    with servers.redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[servers.Server]:
    """A PostgreSQL for all tests of a process."""
    skip_without("postgres")
    with servers.postgres() as server:
        yield server


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    """An S3 for all tests of a process."""
    skip_without("s3")
    with servers.s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


def made(name: str, folder: Path, request: pytest.FixtureRequest) -> Place:
    """An empty place of this name, with its server."""
    is_served = not IMPLEMENTATIONS[name].in_folder and IMPLEMENTATIONS[name].outlives
    return Place(name, folder, request.getfixturevalue(f"{name}_server").url if is_served else "")


@pytest.fixture(params=[name for name, one in IMPLEMENTATIONS.items() if one.forks])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place for each implementation, empty; that of s3 is in test_s3.py, whose process has threads."""
    return made(request.param, tmp_path, request)


@pytest.fixture
def store(place: Place) -> Store:
    """Each store, empty."""
    return place.first


@pytest.fixture(params=OUTLIVING)
def outliving(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place for each implementation whose values outlive a process in a folder, empty."""
    folder = tmp_path / "values"
    folder.mkdir()
    return Place(request.param, folder)
