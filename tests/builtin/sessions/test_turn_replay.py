"""A request of a session, shown and made again."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import BrokenFile, UsageFault
from harness.builtin.sessions import turn_replay
from harness.builtin.sessions.keys import session_keys
from tests.agents.modelserver import serving
from tests.builtin.sessions.talking import SESSION, USER, echo, home, said, store


@pytest.mark.on_disk
def test_a_request_is_shown_with_its_parts_and_what_is_new_in_it(tmp_path: Path) -> None:
    """And another byte in the log is seen."""
    with serving(echo) as server:
        said(tmp_path, server, "hello", "again")
    seen, made = turn_replay.turn(store(tmp_path), session_keys(USER, SESSION), 2)
    assert made is not None and made.equal
    assert [(one.what, one.new) for one in seen.sections] == [
        ("tools", False),
        ("system", False),
        ("user", False),
        ("assistant", True),
        ("user", True),
    ]
    path = home(tmp_path) / "log.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"text":"again"', b'"text":"other"'))
    with pytest.raises(BrokenFile, match=r"line 11: the row is not what was written there"):
        turn_replay.turn(store(tmp_path), session_keys(USER, SESSION), 2)


def test_a_turn_that_there_is_not_is_refused(tmp_path: Path) -> None:
    """Of a session that there is not, too."""
    with serving(echo) as server:
        said(tmp_path, server, "hello")
    with pytest.raises(UsageFault, match="turns 1 to 1, and no turn 9"):
        turn_replay.turn(store(tmp_path), session_keys(USER, SESSION), 9)
    with pytest.raises(UsageFault, match="There is no session other"):
        turn_replay.turn(store(tmp_path), session_keys(USER, "other"), 1)
