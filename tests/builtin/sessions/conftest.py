"""Conversations of tests keep what belongs to the machine in a folder of the test; what is stored is tested on every store."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from harness.stores.memory import MemoryStore
from tests.builtin.sessions.talking import MEMORIES
from tests.crash import TORTURE
from tests.missions import CHECKOUT

OURS = str(CHECKOUT / "harness")
CHANGES = {
    "os.mkdir": 1,
    "os.rename": 2,
    "os.remove": 1,
    "os.rmdir": 1,
    "os.link": 2,
    "os.symlink": 2,
    "os.truncate": 1,
}
LISTS = {"os.listdir": 1, "os.scandir": 1}
STORED = ("test_calls", "test_compaction", "test_recall", "test_session", "test_upkeep")
CACHE = "/.harness/cache"  # parsed documents of the workspace, which anybody may delete
refused: set[str] = set()  # what the hook refused, for the end of the test: a tool turns an error into a result


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """On disk; and in memory where a test speaks of what is stored, in `make torture` each one that is not about files."""
    if "kept" in metafunc.fixturenames:
        alone = metafunc.definition.get_closest_marker("on_disk")
        both = not alone and (TORTURE or metafunc.module.__name__.rpartition(".")[2] in STORED)
        metafunc.parametrize("kept", ["disk", "memory"] if both else ["disk"], indirect=True, ids=lambda one: one)


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's state folder."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


@pytest.fixture(autouse=True)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """Where sessions are. In memory nothing of ours may change a file of the workspace, or look into its `.harness/sessions`."""
    if request.param == "disk":
        yield
        return
    MEMORIES[str(tmp_path)] = MemoryStore()
    refused.clear()
    yield
    del MEMORIES[str(tmp_path)]
    assert not refused


def _is_refused(event: str, arguments: tuple[Any, ...]) -> list[str]:
    """The paths that this event may not touch."""
    if event == "open":
        path, _, flags = arguments
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        return [str(path)] if isinstance(path, str) and (writes or "/.harness/sessions" in path) else []
    if event in LISTS:
        return [one for one in map(str, arguments[:1]) if "/.harness/sessions" in one]
    return [os.fsdecode(one) for one in arguments[: CHANGES.get(event, 0)] if isinstance(one, str | bytes)]


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not MEMORIES:
        return
    for path in _is_refused(event, arguments):
        inside = [path[len(folder) :] for folder in MEMORIES if path.startswith(f"{folder}/")]
        if inside and not inside[0].startswith(CACHE) and _is_ours():
            refused.add(f"{event} {path}")
            raise PermissionError(f"{event} {path}: the sessions are in memory")


def _is_ours() -> bool:
    """Whether our code is at work, and not the test alone."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.startswith(OURS):
            return True
        frame = frame.f_back
    return False


sys.addaudithook(_hook)
