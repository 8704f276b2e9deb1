"""The one verb of every agent: its input, its events, and the last item that states the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.agents.base import AgentEvent, AgentFailure, AgentSuccess
from harness.agents.registry import EMBEDDED, Agent, ExecutionContext, Settings, make
from tests.agents.agent_desk import desk, listen, project, settings


def playbook(folder: Path) -> Agent:
    """A playbook that replies with one word."""
    (folder / "playbooks").mkdir()
    (folder / "playbooks" / "worker.md").write_text("word")
    return make("playbook", settings(folder))


def scripted(folder: Path) -> Agent:
    """A script that replies with one word."""
    (folder / "scripts").mkdir()
    (folder / "scripts" / "worker.jsonl").write_text('{"say": "word"}\n')
    return make("scripted", settings(folder))


def command(folder: Path) -> Agent:
    """A program that replies with one word."""
    return make("mine", settings(folder, command=["printf", "word"]))


BUILDERS: dict[str, Callable[[Path], Agent]] = {"playbook": playbook, "scripted": scripted, "command": command}


def test_every_agent_keeps_the_promises_below() -> None:
    """A new agent is added to this table; `recorded` takes a recording in the place of a program (test_recorded)."""
    assert BUILDERS.keys() == {*EMBEDDED, "command"} - {"recorded"}


@pytest.mark.parametrize("name", BUILDERS)
def test_an_agent_ends_in_one_finish_after_its_events(tmp_path: Path, name: str) -> None:
    """First events, then one end; the last message is the reply; unknown usage is None, not zero."""
    folder = project(tmp_path)
    observed = listen(BUILDERS[name](folder), desk(folder))
    assert observed.end == AgentSuccess(reply="word", usage=None)
    assert observed.said == ["word"]


@pytest.mark.parametrize("name", BUILDERS)
def test_an_agent_without_a_vendor_needs_no_key_and_no_folder(tmp_path: Path, name: str) -> None:
    """Embedded agents, and a program that the user named without a format."""
    agent = BUILDERS[name](project(tmp_path))
    assert (agent.needs, agent.writable) == ((), ())


@pytest.mark.parametrize("name", BUILDERS)
def test_an_agent_can_think_twice(tmp_path: Path, name: str) -> None:
    """It keeps no state between runs."""
    folder = project(tmp_path)
    agent = BUILDERS[name](folder)
    assert listen(agent, desk(folder)).end == listen(agent, desk(folder)).end


def test_settings_and_desk_are_closed_sets() -> None:
    """Everything that an agent receives is listed here, once."""
    assert Settings.fields[:6] == ("project", "config_path", "role", "feature", "attempt", "table")
    assert Settings.fields[6:] == ("trust", "model", "mcp", "prices", "allow", "deny", "held")
    assert ExecutionContext.fields[:5] == ("directory", "prompt_path", "seconds", "environment", "keep")
    assert ExecutionContext.fields[5:8] == ("idle_seconds", "startup_seconds", "after_result_seconds")
    assert ExecutionContext.fields[8:11] == ("stable_bytes", "cost_left_usd", "tokens_left")
    assert ExecutionContext.fields[11:] == ("confinement", "withheld", "told")
    assert AgentEvent(kind="tick").text == ""
    assert AgentFailure(outcome="limit", reason="full").usage is None
