"""Sessions in a folder: a HarnessAgent against a model server on loopback, in this process or in a fork of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.builtin.events import Reply
from harness.builtin.sessions import log, state
from harness.builtin.sessions._calls import AgentConfig
from harness.builtin.sessions.agent import HarnessAgent
from harness.builtin.sessions.keys import session_keys
from harness.builtin.sessions.log import LogPart
from harness.builtin.sessions.state import AgentState
from harness.filesystem.keyvalue import KeyValueFiles
from harness.filesystem.local import Local
from harness.filesystem.protocol import FileContent
from harness.stores import log as logs
from harness.stores.disk import DiskStore
from harness.stores.memory import MemoryStore
from harness.stores.store import Store
from tests.agents.modelserver import Server
from tests.agents.wires import Exchange
from tests.builtin.talking import MODELS, QUICK, address
from tests.missions import told

pytest.importorskip("pydantic_ai", reason="the built-in agent's packages are not installed: make setup")

SESSION, USER = "s", "alice"
MEMORIES: dict[str, MemoryStore] = {}  # by folder: the store of tests that play in memory


def agent(folder: Path, server: Server, **more: Any) -> HarnessAgent:
    """An agent of this folder, with the model of the server."""
    given = {"limits": QUICK, "base_url": address(server, "chat"), "api_key": "k", "store": store(folder), **more}
    config = AgentConfig(**{name: given.pop(name) for name in AgentConfig.fields if name in given})
    name, model = given.pop("name", "helper"), given.pop("model", MODELS["chat"])
    return HarnessAgent(name, model, workspace=str(folder), config=config, **given)


def said(
    folder: Path, server: Server, *messages: str, session: str = SESSION, user: str = USER, **more: Any
) -> list[Reply]:
    """The replies to these messages, one after another, by an instance of its own."""

    async def all_of() -> list[Reply]:
        async with agent(folder, server, **more) as one:
            return [await one.call(message, session_id=session, user_id=user) for message in messages]

    return asyncio.run(all_of())


def store(folder: Path) -> Store:
    """The sessions of a folder: in it, or in memory where the test says so."""
    return MEMORIES.get(str(folder)) or disk(folder)


def disk(folder: Path) -> DiskStore:
    """The sessions in a folder."""
    return DiskStore(str(folder / ".harness" / "sessions"))


def file_of(folder: Path, name: str, user: str = USER) -> str:
    """The text of a user's file."""
    here = disk(folder).path(session_keys(user, SESSION).files)
    files = KeyValueFiles(store(folder), session_keys(user, SESSION).files) if str(folder) in MEMORIES else Local(here)
    found = files.read(name)
    assert isinstance(found, FileContent), found
    return found.data.decode()


def state_of(folder: Path, session: str = SESSION, user: str = USER) -> AgentState:
    """The state.json of a session."""
    found, _ = state.load(store(folder), session_keys(user, session))
    assert found is not None
    return found


def log_of(folder: Path, session: str = SESSION, user: str = USER) -> LogPart:
    """All of the log of a session."""
    return log.whole(store(folder), session_keys(user, session))


def home(folder: Path, session: str = SESSION, user: str = USER) -> Path:
    """The folder of a session."""
    return Path(store(folder).describe(session_keys(user, session).top))


def rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of the log."""
    return [json.loads(line) for line in data(folder).split(b"\n") if line]


def data(folder: Path) -> bytes:
    """The bytes of the log."""
    return logs.read(store(folder), session_keys(USER, SESSION).log).data


def texts(folder: Path, role: str = "user") -> list[str]:
    """What was said in a session, by this role."""
    return [row["value"]["text"] for row in rows(folder) if row.get("value", {}).get("role") == role]


def echo(exchange: Exchange) -> Any:
    """A brain that says how many messages of the person it has seen."""
    from tests.agents.modelserver import Reply as Answer

    return Answer(f"answer {exchange.turns + 1}")


async def until(holds: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until something holds."""
    for _ in range(int(seconds / 0.01)):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"it is not so within {seconds:.0f} s: {told(holds)}")
