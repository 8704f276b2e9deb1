"""The rules of a session: changed by a person, obeyed by the next call, kept by those after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import UsageFault
from harness.builtin.sessions import rule_changes
from harness.builtin.sessions.keys import session_keys
from harness.builtin.tools.tool import ALWAYS, NO, YES
from harness.workspace.rules import ToolRules
from tests.agents.modelserver import serving
from tests.builtin.sessions.talking import SESSION, USER, file_of, rows, said, store
from tests.builtin.talking import calling, steps

OF = session_keys(USER, SESSION)
WRITES = calling("write_file", {"path": "a.txt", "content": "x"})


def results(folder: Path) -> list[str]:
    """What came of the calls of tools."""
    return [row["value"]["text"] for row in rows(folder) if row.get("value", {}).get("role") == "tool"]


def test_what_nobody_can_permit_is_denied_and_a_rule_of_the_session_permits_it(tmp_path: Path) -> None:
    """And another denies it again; a deny wins."""
    with serving(lambda exchange: WRITES if exchange.turns % 2 == 0 else steps()(exchange)) as server:
        asks = ToolRules(ask=["write_file"])
        said(tmp_path, server, "write", rules=asks)
        assert "nobody is here to give it" in results(tmp_path)[-1]
        assert rule_changes.changed(store(tmp_path), OF, "allow", ["write_file(a.txt)"])["allow"] == [
            "write_file(a.txt)"
        ]
        said(tmp_path, server, "write", rules=asks)
        assert results(tmp_path)[-1].startswith("Created a.txt")
        rule_changes.changed(store(tmp_path), OF, "deny", ["write_file"])
        said(tmp_path, server, "write", rules=asks)
        assert "not permitted" in results(tmp_path)[-1] or "There is no tool" in results(tmp_path)[-1]
        assert rule_changes.known(store(tmp_path), OF) == {
            "allow": ["write_file(a.txt)"],
            "ask": [],
            "deny": ["write_file"],
        }
        assert rule_changes.changed(store(tmp_path), OF, "drop", ["write_file"])["deny"] == []
    assert file_of(tmp_path, "a.txt") == "x"


def test_a_person_is_asked_and_always_is_a_rule_from_then_on(tmp_path: Path) -> None:
    """No is a result for the model; always is kept with the session."""
    asked: list[str] = []
    answers = iter([NO, YES, ALWAYS])

    def ask(question: object, stopped: object) -> str:
        asked.append(str(question))
        return next(answers)

    with serving(lambda exchange: WRITES if exchange.turns % 2 == 0 else steps()(exchange)) as server:
        for _ in range(4):
            said(tmp_path, server, "write", rules=ToolRules(ask=["write_file"]), ask=ask)
    assert len(asked) == 3
    assert "did not permit" in results(tmp_path)[0]
    assert rule_changes.known(store(tmp_path), OF)["allow"] == ["write_file(a.txt)"]


def test_what_is_no_rule_or_no_session_is_refused(tmp_path: Path) -> None:
    """With what to write."""
    with pytest.raises(UsageFault, match="There is no session"):
        rule_changes.changed(store(tmp_path), OF, "allow", ["execute"])
    with pytest.raises(UsageFault, match="is no rule"):
        rule_changes.changed(store(tmp_path), OF, "allow", ["execute(git"])
    with pytest.raises(UsageFault, match="Name the rules"):
        rule_changes.changed(store(tmp_path), OF, "allow", [])
