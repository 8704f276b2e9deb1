"""The pool: one server for all who may share it, used from any thread, and gone when nobody has used it for a while."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.builtin.mcp import server_pool
from harness.builtin.mcp.exposed_tools import ExposedTools
from tests.builtin.mcp.serving import called, ours, where


def test_conversations_of_a_user_share_a_server_and_users_do_not(tmp_path: Path) -> None:
    """Nor do folders, definitions and values of variables."""
    shared = server_pool.shared()
    definition, at = ours(), where(tmp_path)
    one = shared.take(definition, at)
    assert shared.take(definition, at) is one
    for other in (at.replace(user="alice"), at.replace(folder="/"), at.replace(variables={"A": "b"})):
        assert shared.take(definition, other) is not one
    assert shared.take(definition.replace(seconds=5), at) is not one


def test_many_threads_call_one_server_at_once(tmp_path: Path) -> None:
    """Each gets its own answer."""
    offer = ExposedTools([ours()], where(tmp_path))
    with ThreadPoolExecutor(8) as threads:
        texts = list(threads.map(lambda count: called(offer, "own_long", count=count).text, range(1, 33)))
    assert [text.count("\n") for text in texts] == list(range(32))


def test_one_that_nobody_has_is_ended_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before: the next conversation finds it warm."""
    first = ExposedTools([ours()], where(tmp_path))
    first.close()
    shared = server_pool.shared()
    at = where(tmp_path)
    kept = shared.take(ours(), at)
    assert [tool.name for tool in kept.connected().tools] and kept.users == 1
    shared.leave(kept)
    monkeypatch.setattr(server_pool, "IDLE_SECONDS", -1.0)
    shared.take(ours("other"), at)
    monkeypatch.undo()
    assert shared.take(ours(), at) is not kept
