"""A session between its calls: what is saved, and when it is loaded anew."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile, UsageFault
from harness.builtin.sessions import _calls, _session
from harness.builtin.sessions.keys import session_keys
from tests.agents.modelserver import serving
from tests.builtin.sessions.talking import (
    SESSION,
    USER,
    agent,
    data,
    echo,
    home,
    log_of,
    rows,
    said,
    state_of,
    store,
    texts,
)
from tests.builtin.talking import calling, steps

OF = session_keys(USER, SESSION)


def test_a_call_costs_what_is_new_and_its_end_is_in_the_state(tmp_path: Path) -> None:
    """The log grows by the call alone; the state names its last row."""
    with serving(echo) as server:
        sizes = []
        for number in range(5):
            said(tmp_path, server, f"message {number}")
            sizes.append(len(data(tmp_path)))
            assert state_of(tmp_path).rows == len(rows(tmp_path)) and state_of(tmp_path).calls == number + 1
    grown = [after - before for before, after in pairwise(sizes[1:])]
    assert max(grown) - min(grown) < 100


def test_what_tools_keep_is_in_the_state_and_goes_on(tmp_path: Path) -> None:
    """The todo list, in another process."""
    todos = [{"content": "write", "status": "pending"}]
    with serving(steps(calling("todo_write", {"todos": todos}))) as server:
        said(tmp_path, server, "plan it")
        assert state_of(tmp_path).kept["todo"] == todos
        said(tmp_path, server, "go on")
    assert _session.load(store(tmp_path), OF, "helper").history.state["todo"] == todos


def test_a_session_that_another_process_went_on_with_is_read_anew(tmp_path: Path) -> None:
    """One instance keeps it in memory, and sees that it is not the newest."""
    with serving(echo) as server:

        async def both() -> list[str]:
            async with agent(tmp_path, server) as one, agent(tmp_path, server) as two:
                talks = [one, two, one, one, two]
                return [
                    (await which.call(f"{at}", session_id=SESSION, user_id=USER)).text for at, which in enumerate(talks)
                ]

        assert asyncio.run(both()) == [f"answer {number}" for number in range(1, 6)]
    assert texts(tmp_path) == ["0", "1", "2", "3", "4"]


def test_sessions_that_nobody_uses_leave_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest stay; all go on."""
    monkeypatch.setattr(_calls, "MOST_KEPT", 2)
    with serving(echo) as server:

        async def many() -> int:
            async with agent(tmp_path, server) as one:
                for name in ("a", "b", "c", "d", "a"):
                    await one.call("hello", session_id=name, user_id=USER)
                return len(one._here().known)

        assert asyncio.run(many()) == 2
    assert len(log_of(tmp_path, "a").calls) == 2


def test_a_session_belongs_to_its_agent(tmp_path: Path) -> None:
    """Another one is told whose it is; whoever only looks need not say."""
    with serving(echo) as server:
        said(tmp_path, server, "hello")
    with pytest.raises(UsageFault, match="is with helper, not with other"):
        _session.load(store(tmp_path), OF, "other")
    assert _session.load(store(tmp_path), OF, "").state.agent == "helper"


@pytest.mark.on_disk
def test_a_log_that_is_gone_is_no_new_session(tmp_path: Path) -> None:
    """The state has seen it."""
    with serving(echo) as server:
        said(tmp_path, server, "hello")
    (home(tmp_path) / "log.jsonl").unlink()
    with pytest.raises(BrokenFile, match="it is gone"):
        _session.load(store(tmp_path), OF, "helper")


def test_two_that_begin_a_session_at_once_begin_one(tmp_path: Path) -> None:
    """By threads of one process, each with an event loop of its own."""
    barrier = threading.Barrier(2)
    with serving(echo) as server, ThreadPoolExecutor(2) as pool:

        def begun(message: str) -> str:
            barrier.wait()
            return said(tmp_path, server, message)[0].text

        assert sorted(pool.map(begun, ["one", "two"])) == ["answer 1", "answer 2"]
    assert sorted(texts(tmp_path)) == ["one", "two"]
