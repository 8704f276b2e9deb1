"""Hooks of a program: before and after a call, and before and after each tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness import CallContext, Hooks, Reply, SimulatedCall, ToolResult
from tests.builtin.simulating import Program


def test_hooks_see_and_change_calls_and_tools(tmp_path: Path) -> None:
    """The message, the reply, a refusal, and another result; with the ids of the call."""
    seen: list[Any] = []

    def before(message: str) -> str:
        seen.append(CallContext.current())
        return message.upper()

    def after(reply: Reply) -> None:
        seen.append(reply.text)

    def before_tool(name: str, arguments: dict[str, Any]) -> str | None:
        return "not today" if name == "glob_files" else None

    def after_tool(name: str, arguments: dict[str, Any], result: ToolResult) -> ToolResult:
        return ToolResult(text=f"{name}: hidden")

    hooks = Hooks(before_call=before, after_call=after, before_tool=before_tool, after_tool=after_tool)
    calls = [SimulatedCall(name="glob_files", arguments={"pattern": "*"}), SimulatedCall(name="list_files")]
    with Program(tmp_path, calls, "done", hooks=hooks) as program:
        program.call_sync("hello", user_id="ann", session_id="s", attributes={"a": 1})
    assert seen == [CallContext(user="ann", session="s", agent="helper", attributes={"a": 1}), "done"]
    assert program.results() == ["not today", "list_files: hidden"]
    assert program.simulated.requests[0].messages[0]["text"] == "HELLO"


def test_an_exception_of_a_hook_refuses_what_it_is_about(tmp_path: Path) -> None:
    """Of a call before anything is recorded; of a tool as a failed result."""

    def before(message: str) -> str:
        if message == "bad":
            raise PermissionError("not you")
        return message

    def before_tool(name: str, arguments: dict[str, Any]) -> str | None:
        raise RuntimeError("broken hook")

    with Program(
        tmp_path, SimulatedCall(name="list_files"), "done", hooks=Hooks(before_call=before, before_tool=before_tool)
    ) as program:
        with pytest.raises(PermissionError):
            program.call_sync("bad")
        assert program.call_sync("good").call == 1
    assert program.results() == ["before_tool failed: RuntimeError: broken hook"]
