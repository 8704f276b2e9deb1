"""The agent that replaces real ones in tests: it follows its file line by line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness.agents._script import ScriptedAgent
from harness.agents.base import AgentFailure, AgentSuccess
from harness.base.errors import Unavailable
from harness.mission.usage import parse, reported
from tests.agents.agent_desk import Observed, desk, listen, project, settings


def act(folder: Path, *steps: dict[str, Any], seconds: float = 60.0) -> Observed:
    """The run of a script."""
    (folder / "scripts").mkdir(exist_ok=True)
    (folder / "scripts" / "worker.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    return listen(ScriptedAgent(settings(folder)), desk(folder, seconds=seconds))


def test_the_last_text_is_the_reply(tmp_path: Path) -> None:
    """Every text is a message; the last one counts."""
    observed = act(project(tmp_path), {"say": "first"}, {"say": "second"})
    assert observed.said == ["first", "second"]
    assert observed.end == AgentSuccess(reply="second")


def test_commands_run_in_the_working_folder(tmp_path: Path) -> None:
    """A script can change files like an agent, and the output of its commands is shown."""
    folder = project(tmp_path)
    observed = act(folder, {"run": "echo made | tee new"}, {"say": "done"})
    assert observed.output == "made\n"
    assert (folder / "new").read_text() == "made\n"


def test_a_command_that_fails_is_the_agents_fault(tmp_path: Path) -> None:
    """No line after it runs; the usage so far is reported."""
    observed = act(project(tmp_path), {"usage": {"input": 5}}, {"run": "exit 4"}, {"say": "never"})
    assert observed.failure == ("agent_error", "the scripted command ended with exit 4")
    assert observed.end.usage == reported("scripted", input=5)
    assert observed.said == []


def test_a_command_that_hangs_runs_out_of_time(tmp_path: Path) -> None:
    """`wall`, as with any agent."""
    assert act(project(tmp_path), {"run": "sleep 20"}, seconds=0.2).failure[0] == "wall"


@pytest.mark.parametrize("outcome", ["limit", "auth", "idle", "killed"])
def test_a_script_can_end_in_any_way(tmp_path: Path, outcome: str) -> None:
    """So a test can show the effect of a vendor's limit or an expired login on a mission."""
    assert act(project(tmp_path), {"fail": outcome, "reason": "as told"}).failure == (outcome, "as told")


def test_a_script_can_state_when_to_retry(tmp_path: Path) -> None:
    """Like a vendor that refuses requests until then."""
    end = act(project(tmp_path), {"fail": "limit", "until": 1777076234}).end
    assert isinstance(end, AgentFailure)
    assert end.until == 1777076234


def test_usage_is_passed_on(tmp_path: Path) -> None:
    """The usage of an agent reaches the run log."""
    used = {"input": 1200, "cost_usd": 0.25}
    observed = act(project(tmp_path), {"say": "a"}, {"usage": used})
    assert observed.end == AgentSuccess(reply="a", usage=reported("scripted", input=1200, cost_usd=0.25))
    assert [parse(text) for text in observed.usages] == [observed.end.usage]


def test_an_empty_script_finishes_with_an_empty_reply(tmp_path: Path) -> None:
    """An agent without output is a separate case."""
    assert act(project(tmp_path)).end == AgentSuccess(reply="")


def test_scripts_are_found_as_playbooks_are(tmp_path: Path) -> None:
    """Attempt, feature, role; in the configured folder."""
    folder = project(tmp_path)
    there = folder / "elsewhere"
    there.mkdir()
    names = ["worker-F-001.2.jsonl", "worker-F-001.jsonl", "worker.jsonl"]
    for name in names:
        (there / name).write_text("")
    for name in names:
        found = ScriptedAgent(settings(folder, attempt=2, path="elsewhere")).path
        assert os.path.basename(found) == name
        os.unlink(found)
    with pytest.raises(Unavailable, match=r"elsewhere/worker-F-001\.2\.jsonl or"):
        ScriptedAgent(settings(folder, attempt=2, path="elsewhere"))
