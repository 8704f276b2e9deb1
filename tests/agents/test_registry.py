"""Which agent runs: the configured one, else one for the project; and the message without any."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.agents import registry
from harness.agents._command import Command
from harness.agents._playbook import Playbook
from harness.base.errors import BrokenFile, Unavailable
from harness.mission import config
from harness.mission.features import Feature
from harness.state.layout import Layout
from tests.agents.agent_desk import project, settings

CONFIG = ".harness/config.toml"


def program(folder: Path, name: str) -> None:
    """A program on the PATH of a test."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)


def test_configured_agents_are_tried_in_order(tmp_path: Path) -> None:
    """A playbooks folder does not change that."""
    (tmp_path / "playbooks").mkdir()
    assert registry.choose(["codex", "mine"], str(tmp_path), CONFIG) == ["codex", "mine"]


def test_a_list_of_models_goes_on_with_each_failed_attempt(tmp_path: Path) -> None:
    """The dearer one after the first red; the last one from then on; it is for the first agent of the role's list."""
    known = config.parse('[roles.worker]\nmodel = ["small", "large"]\n[roles.validator]\nmodel = "one"\n', CONFIG)
    known = known.replace(agents={"codex": {"model": "own"}})

    def model(role: str, attempts: int, *, first: bool = True) -> str:
        feature = Feature(id="F-001", title="x", claims=[], attempts=attempts)
        return registry.settings_of(Layout(str(tmp_path)), known, "codex", role, feature, first=first).model

    assert [model("worker", attempts) for attempts in range(3)] == ["small", "large", "large"]
    assert (model("worker", 1, first=False), model("validator", 1), model("planner", 1)) == ("own", "one", "own")


def test_a_project_with_playbooks_needs_no_configuration(tmp_path: Path) -> None:
    """The embedded agent runs."""
    (tmp_path / "playbooks").mkdir()
    assert registry.choose([], str(tmp_path), CONFIG) == ["playbook"]


def test_without_any_agent_the_message_names_those_found_and_the_line_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The installed CLIs are named, and none is started without configuration."""
    program(tmp_path / "bin", "codex")
    program(tmp_path / "bin", "gemini")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(Unavailable) as fault:
        registry.choose([], str(tmp_path), CONFIG)
    said = str(fault.value)
    assert "Found on this machine: codex, gemini" in said
    assert CONFIG in said
    assert 'agent = "mine"' in said
    assert 'command = ["program", "argument"]' in said
    assert "playbooks/" in said
    assert "\n" not in said


def test_without_installed_programs_the_message_states_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of an empty list."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="None of the known agent CLIs is on the PATH"):
        registry.choose([], str(tmp_path), CONFIG)


def test_a_file_called_playbooks_is_no_folder_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a folder makes the embedded agent the default."""
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "playbooks").write_text("")
    with pytest.raises(Unavailable):
        registry.choose([], str(tmp_path), CONFIG)


def test_an_unknown_agent_names_the_known_ones_and_how_to_add_one(tmp_path: Path) -> None:
    """A typo in the configuration is a broken file."""
    with pytest.raises(BrokenFile) as fault:
        registry.make("playbok", settings(tmp_path))
    assert "there is no agent 'playbok'" in str(fault.value)
    assert "playbook" in str(fault.value)
    assert '[agents.playbok] command = ["program", "argument"]' in str(fault.value)
    assert str(fault.value).startswith(CONFIG)


def test_command_is_a_kind_of_agent_and_no_name(tmp_path: Path) -> None:
    """Without a table there is no program to start."""
    with pytest.raises(BrokenFile, match="no agent 'command'"):
        registry.make("command", settings(tmp_path))


def test_a_table_with_a_command_is_an_agent_of_any_name(tmp_path: Path) -> None:
    """Any program can be an agent."""
    made = registry.make("mine", settings(tmp_path, command=["cat"]))
    assert isinstance(made, Command)
    assert made.argv == ["cat"]


def test_available_agents_are_tried_and_the_first_missing_one_is_reported(tmp_path: Path) -> None:
    """One missing agent does not stop the others; when all are missing, a person reads its message."""
    folder = project(tmp_path)
    (folder / "playbooks").mkdir()
    tables = {"gone": ["no-such-agent-here"], "lost": ["nor-this-one"], "mine": ["cat"]}

    def of(name: str) -> registry.Settings:
        return settings(folder, command=tables[name]) if name in tables else settings(folder)

    found, missing = registry.available(["gone", "mine", "playbook"], of)
    assert [name for name, _ in found] == ["mine"]
    assert "no-such-agent-here" in str(next(iter(missing.values())))
    (folder / "playbooks" / "worker.md").write_text("")
    found, missing = registry.available(["playbook", "mine"], of)
    assert [type(agent) for _, agent in found] == [Playbook, Command]
    assert missing == {}
    found, missing = registry.available(["lost", "gone"], of)
    assert found == []
    assert "nor-this-one" in str(missing["lost"])


def test_only_embedded_agents_may_have_no_work() -> None:
    """A validator without a playbook proposes nothing; one without its configured agent is an error."""
    assert registry.embedded(["playbook"])
    assert registry.embedded(["playbook", "scripted"])
    assert not registry.embedded(["playbook", "codex"])


def test_no_program_is_started_to_find_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for agents runs none of them."""
    program(tmp_path / "bin", "claude")
    (tmp_path / "bin" / "claude").write_text(f"#!/bin/sh\ntouch '{tmp_path}/started'\n")
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "bin"), "/bin"]))
    with pytest.raises(Unavailable, match="claude"):
        registry.choose([], str(tmp_path), CONFIG)
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("name", "table", "kind"),
    [
        ("playbook", {}, ""),
        ("scripted", {"path": "x"}, ""),
        ("mine", {"command": ["cat"]}, "uncounted"),
        ("playbook", {"command": ["cat"]}, "uncounted"),
        ("claude", {}, "reported"),
        ("codex", {}, "uncounted"),
        ("mine", {"command": ["cat"], "format": "claude"}, "reported"),
        ("codex", {"command": ["cat"]}, "uncounted"),
    ],
)
def test_agents_that_are_not_embedded_may_cost_money(name: str, table: dict[str, list[str]], kind: str) -> None:
    """Embedded agents are free; the cost of any other program is unknown."""
    assert registry.costs(name, table) == kind


@pytest.mark.parametrize(
    ("name", "table", "key"),
    [
        ("codex", {}, "OPENAI_API_KEY"),
        ("codex", {"command": ["no-such-program"]}, ""),
        ("mine", {"command": ["no-such-program"], "format": "codex"}, "OPENAI_API_KEY"),
        ("mine", {"command": ["no-such-program"]}, ""),
        ("playbook", {}, ""),
    ],
)
def test_what_an_agent_needs_is_known_before_it_is_installed(name: str, table: dict[str, str], key: str) -> None:
    """From its table in config.toml alone."""
    found = registry.needs(name, table)
    assert key in found if key else found == ()
