"""The built-in agent as the harness sees it: what it is started with, what its events mean, what a bad table says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.agents import builtin, registry
from harness.agents._answer_state import AnswerState
from harness.agents.base import AgentFailure, AgentSuccess
from harness.mission.usage import TABLE
from harness.process.confine import Confinement, Glass
from tests.agents.agent_desk import desk, project, settings
from tests.missions import House

MODEL = "anthropic:claude-opus-5"


def test_a_key_is_never_on_the_command_line(tmp_path: Path) -> None:
    """Only the names of the variables that may hold it."""
    made = project(tmp_path)
    at = desk(made, ANTHROPIC_API_KEY="sk-ant-secret").replace(
        cost_left_usd=1.5, tokens_left=7, confinement=Confinement(glass=Glass(writable=["/a"]), tier="bubblewrap")
    )
    given = settings(made, base_url="http://127.0.0.1:1").replace(model=MODEL, trust="workspace")
    words = builtin.argv(given, at)
    assert "sk-ant-secret" not in " ".join(words)
    order = json.loads(words[-1])
    assert order["key_env"] == ["ANTHROPIC_API_KEY"]
    assert (order["cost_left"], order["tokens_left"]) == (1.5, 7)
    assert order["confinement"]["glass"]["writable"] == ["/a"]
    assert words[0] == "-I", "neither the folder of the project nor the user's own packages are on its path"


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("", "[agents.builtin]: model is not set"),
        ('model = "gpt-5"', "invalid model 'gpt-5'"),
        ('model = "acme:x"', "invalid model 'acme:x'"),
        ('model = "openai:gpt-5"\ntemperature = 3', "'temperature' must be from 0 to 2"),
        ('model = "openai:gpt-5"\nargs = ["-x"]', "'args' is for agents that are programs"),
        ('model = "openai:gpt-5"\nbase_url = "localhost:8080"', "base_url"),
        ('model = "openai:gpt-5"\nmax_steps = 0', "max_steps"),
        ('model = "openai:gpt-5"\nmax_output_tokens = 0', "max_output_tokens"),
        ('model = "openai:gpt-5"\nmax_output_tokens = 1.5', "max_output_tokens"),
    ],
)
def test_a_bad_table_is_65_with_its_line(house: House, table: str, words: str) -> None:
    """Before anything is started."""
    lines = table.split("\n")
    house.config('agent = "builtin"', 'trust = "workspace"', "[agents.builtin]", *lines)
    done = house.role("worker", "F-001")
    assert done.code == 65, done
    assert words in done.err and f"config.toml, line {3 + (table != '') * len(lines)}" in done.err
    assert not house.ran()


def test_keys_of_its_table_are_refused_for_others(house: House) -> None:
    """They would have no effect there."""
    house.config('agent = "claude"', 'trust = "full"', "[agents.claude]", 'base_url = "http://127.0.0.1:1"')
    done = house.role("worker", "F-001")
    assert done.code == 65 and "base_url" in done.err and "line 4" in done.err, done


@pytest.mark.parametrize("library", builtin.LIBRARIES)
def test_without_its_packages_it_is_69_with_the_command(house: House, tmp_path: Path, library: str) -> None:
    """An interpreter that does not have one of them: the same one, without it in its site-packages."""
    house.config('agent = "builtin"', 'trust = "workspace"', "[agents.builtin]", f'model = "{MODEL}"')
    hider = tmp_path / "hide.py"
    hider.write_text(
        "import importlib.machinery, runpy, sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {library!r}: raise ModuleNotFoundError(name)\n"
        "find = importlib.machinery.PathFinder.find_spec\n"
        "importlib.machinery.PathFinder.find_spec = classmethod("
        f"lambda cls, name, *rest: None if name == {library!r} else find(name, *rest))\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    words = house.words("worker", "F-001")
    done = house.run([words[0], "-P", str(hider), *words[2:]])
    assert done.code == 69, done
    assert "pip install" in done.err and "pydantic-ai-slim" in done.err and "pathspec ripgrep" in done.err


def events(*rows: dict[str, object]) -> tuple[list[object], AnswerState]:
    """What the rows mean."""
    answer = AnswerState("builtin")
    return [event for row in rows for event in builtin.read(row, answer)], answer


def test_an_end_is_the_outcome_of_the_run() -> None:
    """With its reason, and the time at which the vendor accepts requests again."""
    found, _ = events({"type": "end", "outcome": "limit", "reason": "slow down", "until": 4_000_000_000})
    end = found[0]
    assert isinstance(end, AgentFailure) and (end.outcome, end.reason, end.until) == (
        "limit",
        "slow down",
        4_000_000_000,
    )
    found, _ = events({"type": "said", "text": "Done."}, {"type": "end", "outcome": "ok", "reply": "Done."})
    assert isinstance(found[-1], AgentSuccess) and found[-1].reply == "Done."
    found, _ = events({"type": "end", "outcome": "surprise", "reason": "r"})
    assert isinstance(found[0], AgentFailure) and found[0].outcome == "agent_error"


def test_usage_has_the_cost_of_the_table() -> None:
    """It was computed, not reported."""
    row = {"type": "usage", "model": "m", "turns": 2, "input": 5, "output": 7, "cost_usd": 0.5, "cost_source": TABLE}
    _, answer = events(row)
    spent = answer.spent()
    assert spent is not None
    assert (spent.turns, spent.input, spent.cost_usd, spent.cost_source) == (2, 5, 0.5, TABLE)


def test_it_is_known_and_costs() -> None:
    """At a vendor's own address its cost is known; at another nobody says it."""
    assert registry.LOOP in registry.KNOWN_CLIS
    assert registry.costs("builtin", {}) == "reported"
    assert registry.costs("builtin", {"base_url": "http://127.0.0.1:1"}) == "uncounted"


def test_the_remedy_for_a_missing_key_names_that_of_each_vendor() -> None:
    """A model of `openai:` is not sent to the key of another vendor."""
    for vendor, keys in builtin.KEYS.items():
        assert "-" in vendor or f"{vendor}: {' or '.join(keys)}" in builtin.ABOUT.login
