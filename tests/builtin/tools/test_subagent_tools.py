"""The tools of subagents: what reaches the team. What a team does is in tests/builtin/subagents/test_runner.py."""

from __future__ import annotations

from typing import Any

from harness.base.errors import UsageFault
from harness.builtin.tools._subagent_tools import DEFAULT_SECONDS, OUTPUT_SECONDS
from harness.builtin.tools.tool import ToolResult
from harness.workspace.rules import ToolRules
from tests.builtin.tools.benches import Bench


class Team:
    """Keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def spawn(self, agent: str, task: str, *, background: bool, seconds: float) -> ToolResult:
        """Keep it."""
        if agent == "nobody":
            raise UsageFault("There is no subagent 'nobody'.")
        self.asked.append((agent, task, background, seconds))
        return ToolResult(text="ok")

    def send(self, name: str, message: str, *, background: bool, seconds: float) -> ToolResult:
        """Keep it."""
        return self.spawn(name, message, background=background, seconds=seconds)

    def agents(self) -> str:
        """A list."""
        return "scout: finds"

    def tasks(self) -> str:
        """A list."""
        return "scout-1: running"

    def output(self, name: str, *, seconds: float) -> ToolResult:
        """Keep it."""
        self.asked.append((name, seconds))
        return ToolResult(text="out")

    def cancel(self, name: str) -> ToolResult:
        """Keep it."""
        self.asked.append((name,))
        return ToolResult(text="gone")

    def reminder(self) -> str:
        """Nothing is left."""
        return ""


def test_calls_reach_the_team_with_their_defaults(bench: Bench) -> None:
    """A call that waits does so for a while; what is wrong is a failed result."""
    bench.own.subagents = team = Team()
    bench.said("agent_spawn", agent="scout", task="x")
    bench.said("agent_send", id="scout-1", message="y", background=True, timeout=5)
    bench.said("task_output", id="scout-1")
    bench.said("task_cancel", id="scout-1")
    assert (bench.said("agent_list"), bench.said("task_list")) == ("scout: finds", "scout-1: running")
    assert team.asked == [
        ("scout", "x", False, DEFAULT_SECONDS), ("scout-1", "y", True, 5), ("scout-1", OUTPUT_SECONDS), ("scout-1",)
    ]  # fmt: skip
    assert "no subagent 'nobody'" in bench.refused("agent_spawn", agent="nobody", task="x")


def test_a_subagent_can_be_denied_by_name(bench: Bench) -> None:
    """As any call, by what it is about."""
    bench.own.subagents, bench.own.rules = Team(), ToolRules(deny=["agent_spawn(scout)"])
    assert "not permitted" in bench.refused("agent_spawn", agent="scout", task="x")
    bench.said("agent_spawn", agent="other", task="x")
