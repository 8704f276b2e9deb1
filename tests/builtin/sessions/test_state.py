"""state.json: what it has, and what is no state of the session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.builtin.sessions import state
from harness.builtin.sessions.keys import session_keys
from harness.builtin.sessions.state import AgentState
from harness.stores.disk import DiskStore
from harness.stores.memory import MemoryStore
from harness.stores.store import ABSENT, Value

OF = session_keys("alice", "s")
WHOLE = AgentState(
    user="alice",
    session="s",
    agent="helper",
    created="2026-04-24T10:05:12Z",
    kept={"todo": [{"content": "x", "status": "pending"}], "plan": {"active": True}, "seen": {"a": "b"}},
    summary="So far.",
    calls=2,
)

pytestmark = pytest.mark.on_disk


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    """The todo list, the plan and the permissions by their names, the rest of what tools keep below `tools`."""
    store = DiskStore(str(tmp_path))
    assert state.load(store, OF) == (None, ABSENT)
    version = store.put(OF.state, WHOLE.dumped(), "")
    assert state.load(store, OF) == (WHOLE, version)
    row = json.loads(WHOLE.dumped())
    assert (row["format"], row["todo"][0]["content"], row["plan"], row["tools"]) == (
        2,
        "x",
        {"active": True},
        {"seen": {"a": "b"}},
    )


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "torn"),
        (WHOLE.dumped()[:40], "torn"),
        (b"[]", "the state of a session"),
        (b'{"format":1}', "it has format 1, and this harness reads format 2"),
        (b'{"format":99}', "it has format 99, and this harness reads format 2"),
        (WHOLE.dumped().replace(b'"calls":2', b'"calls":"2"'), "'calls'"),
        (WHOLE.dumped().replace(b'"format":2', b'"more":1'), "more"),
        (WHOLE.replace(user="bob").dumped(), "of session s of bob"),
    ],
)
def test_what_is_no_state_of_this_session_is_never_a_new_one(tmp_path: Path, data: bytes, says: str) -> None:
    """65, with the file and what is wrong."""
    with pytest.raises(BrokenFile, match=says) as fault:
        state.parse(Value(data, "v"), "state.json", OF)
    assert "state.json" in str(fault.value)


def test_a_state_that_is_gone_beside_its_log_is_no_new_session(tmp_path: Path) -> None:
    """Somebody removed it; to begin anew would go on in a log that it does not know."""
    store = DiskStore(str(tmp_path))
    store.append(OF.log, b"{}\n", 0)
    with pytest.raises(BrokenFile, match="it is gone"):
        state.load(store, OF)


def test_who_speaks_is_known_without_the_rest() -> None:
    """Nobody, where there is no session or none that can be read."""
    store = MemoryStore()
    assert state.agent_of(store, OF) == ""
    version = store.put(OF.state, WHOLE.dumped(), ABSENT)
    assert state.agent_of(store, OF) == "helper"
    store.put(OF.state, b"{", version)
    assert state.agent_of(store, OF) == ""


def test_the_list_has_the_newest_session_first_and_names_what_cannot_be_read() -> None:
    """One that has no call yet is not in it; neither is another user's."""
    store = MemoryStore()
    for name, ended in (("a", "2026-01-01"), ("b", "2026-01-02"), ("c", "")):
        of = session_keys("alice", name)
        newest = {"ended": ended, "outcome": "ok", "words": "hello"} if ended else {}
        store.put(of.state, WHOLE.replace(session=name, newest=newest).dumped(), ABSENT)
    store.put(session_keys("alice", "d").state, b"{", ABSENT)
    store.put(session_keys("bob", "e").state, WHOLE.replace(user="bob", session="e").dumped(), ABSENT)
    assert [one.session for one in state.of_user(store, "alice")] == ["b", "a"]
    assert [line.partition(" ")[0] for line in state.unread(store, "alice")] == ["memory:alice/d/state.json:"]
    assert [one.session for one in state.of_user(store)] == ["b", "a"] and state.of_user(store, "carol") == []
