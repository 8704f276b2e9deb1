"""OpenCode, from recordings: its command line, its events, and its usage."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from harness.agents._opencode import environment
from harness.agents.base import AgentFailure
from tests.agents.agent_desk import counted, desk, project, repeat, settings

RECORDED = "opencode-1.18.33"
WORKER = f"{RECORDED}/mission-worker.jsonl"


def test_the_steps_are_summed_and_a_cost_of_nothing_is_unknown(tmp_path: Path) -> None:
    """Its output excludes the reasoning; a model without a price reports a cost of 0, which counts as unknown."""
    observed = repeat(tmp_path, "opencode", WORKER).observed
    assert observed.reply == "Done as worker."
    assert counted(observed) == (1800, 1200, 0, 150, 60)
    assert observed.end.usage is not None
    assert (observed.end.usage.cost_usd, observed.end.usage.turns) == (None, 3)


@pytest.mark.parametrize(
    ("case", "outcome"),
    [
        ("auth", "auth"),
        ("limit", "limit"),
        ("error", "limit"),
        ("quota", "auth"),
        ("bad-request", "config"),
        ("no-network", "limit"),
    ],
)
def test_a_failure_is_known_by_its_status_and_code(tmp_path: Path, case: str, outcome: str) -> None:
    """An empty account is no limit that passes."""
    end = repeat(tmp_path, "opencode", f"{RECORDED}/{case}.jsonl", 1).observed.end
    assert isinstance(end, AgentFailure)
    assert end.outcome == outcome
    if case == "limit":
        assert 0 < end.until - time.time() <= 8


def test_a_clean_exit_without_a_message_is_no_success(tmp_path: Path) -> None:
    """A refused permission looks like that."""
    (tmp_path / "steps").write_text('{"type":"step_finish","sessionID":"s","part":{"tokens":{"input":1},"cost":0.5}}\n')
    end = repeat(tmp_path, "opencode", str(tmp_path / "steps")).observed.end
    assert isinstance(end, AgentFailure)
    assert end.outcome == "agent_error"
    assert end.usage is not None
    assert (end.usage.cost_usd, end.usage.cost_source) == (0.5, "reported")


@pytest.mark.parametrize(("trust", "auto"), [("workspace", False), ("full", True)])
def test_trust_is_a_rule_for_paths_outside(tmp_path: Path, trust: str, auto: bool) -> None:
    """It has no sandbox; `full` has no restriction."""
    done = repeat(tmp_path, "opencode", WORKER, trust=trust)
    assert ("--auto" in done.argv) == auto
    assert ("OPENCODE_PERMISSION" in done.environment) != auto


def test_it_works_in_the_folder_of_the_mission(tmp_path: Path) -> None:
    """It trusts $PWD more than its working folder."""
    assert repeat(tmp_path, "opencode", WORKER).environment["PWD"] == str(tmp_path / "my project")


def test_every_server_of_the_user_is_switched_off_by_its_name(tmp_path: Path) -> None:
    """Also from configurations with comments and trailing commas."""
    folder = tmp_path / ".config" / "opencode"
    folder.mkdir(parents=True)
    text = '{\n // "mcp": none\n "mcp": {"one": {"url": "http://x//y"}, /* not */ "two": {},},\n}\n'
    (folder / "opencode.jsonc").write_text(text)
    other = tmp_path / "other"
    other.mkdir()
    (other / "opencode.json").write_text('{"mcp": {"three": {}}}')
    table = {"env": {"OPENCODE_CONFIG_DIR": str(other)}}
    given = json.loads(repeat(tmp_path, "opencode", WORKER, table=table).environment["OPENCODE_CONFIG_CONTENT"])
    assert given["mcp"] == {name: {"enabled": False} for name in ("one", "two", "three")}


def test_an_answer_given_up_at_a_refused_tool_is_no_success(tmp_path: Path) -> None:
    """It exits with 0 after some messages; only its last step shows that another one must follow."""
    end = repeat(tmp_path, "opencode", f"{RECORDED}/denied.jsonl").observed.end
    assert isinstance(end, AgentFailure)
    assert end.outcome == "config"
    assert "trust in config.toml" in end.reason


def test_a_configuration_given_in_the_environment_stays_but_for_its_servers(tmp_path: Path) -> None:
    """A provider in it may be the login."""
    content = json.dumps({"provider": {"p": {}}, "mcp": {"three": {"url": "x"}}})
    (tmp_path / "my config").write_text('{"mcp": {"four": {}}}')
    env = {"OPENCODE_CONFIG_CONTENT": content, "OPENCODE_CONFIG": str(tmp_path / "my config")}
    given = json.loads(repeat(tmp_path, "opencode", WORKER, table={"env": env}).environment["OPENCODE_CONFIG_CONTENT"])
    assert given["provider"] == {"p": {}}
    assert given["mcp"] == {"four": {"enabled": False}, "three": {"url": "x", "enabled": False}}


def test_it_is_kept_from_the_project_s_instructions_where_its_prompt_has_them(tmp_path: Path) -> None:
    """That variable also hides its configuration in the project, so it gets that with its own; else nothing is said."""
    made = project(tmp_path)
    (made / "opencode.json").write_text('{"model": "own/model", // mine\n "autoupdate": true}')
    at, usual = desk(tmp_path, prompt="Do it.").replace(directory=str(made)), settings(made)
    alone = environment(usual, at)
    assert "OPENCODE_DISABLE_PROJECT_CONFIG" not in alone and "own/model" not in alone["OPENCODE_CONFIG_CONTENT"]
    kept = environment(usual, at.replace(told=True))
    assert kept["OPENCODE_DISABLE_PROJECT_CONFIG"] == "true"
    assert json.loads(kept["OPENCODE_CONFIG_CONTENT"])["model"] == "own/model"
    assert json.loads(kept["OPENCODE_CONFIG_CONTENT"])["autoupdate"] is False
