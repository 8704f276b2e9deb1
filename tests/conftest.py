"""Fixtures of many tests: a mission in a separate repository, independent of the user's settings."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import other_user
from tests.crash import TORTURE
from tests.missions import CHECKOUT, House, copied, enter
from tests.other_user import OtherUser
from tests.tiers import LONG, LONG_PATHS, ONCE, ONCE_WORDS, ONLY_IN_TORTURE


def pytest_configure() -> None:
    """Programs that tests start hear their signals, also if the tests run under nohup or in the background of a script."""
    for number, handler in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that tests/tiers.py names, and skip what `make torture` alone plays."""
    skipped = pytest.mark.skip(reason="a longer form of a test of the suite: HARNESS_TORTURE=1 runs it")
    for item in items:
        names = {item.name, getattr(item, "originalname", item.name)}
        if names & LONG or item.nodeid.startswith(LONG_PATHS):
            item.add_marker("long")
        if item.nodeid.startswith(ONCE) or ONCE_WORDS.search(item.name):
            item.add_marker("once")
        if names & ONLY_IN_TORTURE:
            item.add_marker("torture")
            if not TORTURE:
                item.add_marker(skipped)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """A fork that a test has made, and that left its code by an exception, ends here: it would play the tests that follow."""
    pid = os.getpid()
    done = yield
    if os.getpid() != pid:
        os.write(2, f"A fork of {os.environ.get('PYTEST_CURRENT_TEST')} outlived its test.\n".encode())
        os._exit(70)
    return done


@pytest.fixture(autouse=True)
def stays_in_its_folder() -> Iterator[None]:
    """A test that leaves this process in another folder fails, not those that follow when the folder is gone."""
    before = os.getcwd()
    yield
    try:
        after = os.getcwd()
    except FileNotFoundError:
        after = "a folder that is gone"
    if after != before:
        os.chdir(CHECKOUT)
        pytest.fail(f"The test left its process in {after}, and began in {before}.")


@pytest.fixture(scope="session")
def nobody(tmp_path_factory: pytest.TempPathFactory) -> OtherUser:
    """Another user, who can run our programs."""
    python = other_user.interpreter()
    if not python:
        pytest.skip("only root can become another user, with setpriv and a Python that others can run")
    return OtherUser(tmp_path_factory.mktemp("nobody"), python)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """A folder for a project that does not exist yet; this process gets its environment too."""
    return House(tmp_path, enter(monkeypatch, tmp_path))


@pytest.fixture
def unbegun(bare: House) -> House:
    """A repository with SPEC.md in its first commit, and no mission."""
    bare.repository()
    return bare


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A started mission, made once: tests work on copies."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("template")
        made = House(folder, enter(patch, folder))
        made.repository()
        made.begin()
        return folder


@pytest.fixture
def house(bare: House, template: Path) -> Iterator[House]:
    """A mission with two features to do, on its branch, with scripted agents."""
    made = copied(template, bare.folder, bare.env)
    yield made
    made.end()


@pytest.fixture
def unconfined(house: House) -> House:
    """A mission whose agents are not confined, as on a machine without bubblewrap and Landlock."""
    house.base = ('confine = "off"',)
    house.config('agent = "scripted"')
    return house
