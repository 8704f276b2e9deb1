"""state.json: what it has, and what is no state of the session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.builtin.sessions import state
from harness.builtin.sessions._disk_store import FileStore
from harness.builtin.sessions.state import AgentState
from harness.builtin.sessions.store import Item, keys

OF = keys("alice", "s")
WHOLE = AgentState(
    user="alice",
    session="s",
    agent="helper",
    created="2026-04-24T10:05:12Z",
    kept={"todo": [{"content": "x", "status": "pending"}], "plan": {"active": True}, "seen": {"a": "b"}},
    summary="So far.",
    calls=2,
)


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    """The todo list, the plan and the permissions by their names, the rest of what tools keep below `tools`."""
    store = FileStore(str(tmp_path))
    assert state.load(store, OF) == (None, "")
    version = store.put(OF.state, WHOLE.dumped(), "")
    assert state.load(store, OF) == (WHOLE, version)
    row = json.loads(WHOLE.dumped())
    assert (row["format"], row["todo"][0]["content"], row["plan"], row["tools"]) == (
        1,
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
        (b'{"format":99}', "of a newer harness"),
        (WHOLE.dumped().replace(b'"calls":2', b'"calls":"2"'), "'calls'"),
        (WHOLE.dumped().replace(b'"format":1', b'"more":1'), "more"),
        (WHOLE.replace(user="bob").dumped(), "of session s of bob"),
    ],
)
def test_what_is_no_state_of_this_session_is_never_a_new_one(tmp_path: Path, data: bytes, says: str) -> None:
    """65, with the file and what is wrong."""
    with pytest.raises(BrokenFile, match=says) as fault:
        state.parse(Item(data=data, version="v"), "state.json", OF)
    assert "state.json" in str(fault.value)
    assert state.named(Item(data=data, version="")) in (None, OF, keys("bob", "s"))


def test_a_state_that_is_gone_beside_its_log_is_no_new_session(tmp_path: Path) -> None:
    """Somebody removed it; to begin anew would go on in a log that it does not know."""
    store = FileStore(str(tmp_path))
    store.append(OF.log, b"{}\n")
    with pytest.raises(BrokenFile, match="it is gone"):
        state.load(store, OF)
    assert state.agent_of(Item(data=WHOLE.dumped(), version="")) == "helper"
    assert state.agent_of(Item(data=b"{", version="")) == ""
