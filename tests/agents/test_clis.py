"""The known programs: one table, short adapters, and their caveats before they start."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.agents import registry
from harness.agents.clis import ABOUT, CLIS
from harness.base.errors import Unavailable
from harness.process.variables import passing
from tests.agents.agent_desk import settings

VENDORS = [name for name in CLIS if name != registry.LOOP]  # programs of others
FOLDER = Path(registry.__file__).parent
DOCS = Path(__file__).resolve().parents[2] / "docs" / "agents.md"


def test_one_table_has_them_all() -> None:
    """Their names, their command lines, and what is known of them."""
    assert set(registry.KNOWN_CLIS) == CLIS.keys() == ABOUT.keys()


@pytest.mark.parametrize("name", ["text", *VENDORS])
def test_each_shape_of_events_serves_any_program(name: str, tmp_path: Path) -> None:
    """By `format`."""
    registry.make("mine", settings(tmp_path, command=["true"], format=name))


@pytest.mark.parametrize("name", VENDORS)
def test_an_adapter_is_short(name: str) -> None:
    """Its command line and its events; the rest is shared."""
    assert len((FOLDER / f"_{name}.py").read_text().split("\n")) - 1 <= 85


@pytest.mark.parametrize("name", VENDORS)
def test_a_program_that_is_missing_is_named(name: str, tmp_path: Path) -> None:
    """Before the run starts."""
    with pytest.raises(Unavailable, match="is not installed"):
        registry.make(name, settings(tmp_path, path=str(tmp_path / "missing")).replace(trust="full"))


def test_the_caveats_of_a_program_are_listed_for_each_trust(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No sandbox, a sandbox with missing requirements, and a program that refuses root."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert CLIS["claude"].caveats("workspace") == [
        "unconfined, no sandbox without bwrap and socat: its commands may write anywhere"
    ]
    assert CLIS["gemini"].caveats("workspace") == ["no sandbox: its commands may write anywhere"]
    assert CLIS["codex"].caveats("workspace") == []
    assert CLIS["gemini"].caveats("full") == []


FOLDERS = {
    "claude": [".claude"],
    "codex": [".codex"],
    "gemini": [".gemini"],
    "opencode": [".config/opencode", ".local/share/opencode", ".cache/opencode", ".local/state/opencode"],
}
MOVED = {
    "claude": ({"CLAUDE_CONFIG_DIR": "/own/claude"}, ["/own/claude"]),
    "codex": ({"CODEX_HOME": "/own/codex"}, ["/own/codex"]),
    "gemini": ({"GEMINI_CLI_HOME": "/own"}, ["/own/.gemini"]),
    "opencode": (
        {"XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d", "XDG_CACHE_HOME": "/e", "XDG_STATE_HOME": "/f"},
        ["/c/opencode", "/d/opencode", "/e/opencode", "/f/opencode"],
    ),
}


@pytest.mark.parametrize("name", VENDORS)
def test_a_program_writes_in_its_own_folders_below_home(name: str) -> None:
    """An empty variable is as good as none."""
    home = {"HOME": "/home/me", **dict.fromkeys(MOVED[name][0], "")}
    assert list(ABOUT[name].writes_in(home)) == [f"/home/me/{folder}" for folder in FOLDERS[name]]


@pytest.mark.parametrize("name", VENDORS)
def test_a_program_whose_folder_is_moved_writes_there(name: str) -> None:
    """By the variable that it reads itself; a path that is not absolute is in the working folder anyway."""
    moved, expected = MOVED[name]
    assert list(ABOUT[name].writes_in({"HOME": "/home/me", **moved})) == expected
    assert ABOUT[name].writes_in({"HOME": "/home/me", **dict.fromkeys(moved, "below")}) == ()


def test_the_folders_of_an_agent_follow_its_table_and_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variables of its table come first."""
    monkeypatch.setenv("CODEX_HOME", "/of/the/shell")
    mine = settings(tmp_path, path="/bin/true").replace(trust="full")
    assert registry.make("codex", mine).writable == ("/of/the/shell",)
    table = {"path": "/bin/true", "env": {"CODEX_HOME": "/of/the/table"}}
    assert registry.make("codex", mine.replace(table=table)).writable == ("/of/the/table",)


@pytest.mark.parametrize(
    ("name", "env", "needed", "others"),
    [
        ("claude", {}, ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"], ["AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY"]),
        ("claude", {"CLAUDE_CODE_USE_BEDROCK": "1"}, ["AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"], []),
        ("claude", {"CLAUDE_CODE_USE_FOUNDRY": "1"}, ["ANTHROPIC_FOUNDRY_API_KEY"], ["AWS_SECRET_ACCESS_KEY"]),
        ("codex", {}, ["CODEX_API_KEY", "OPENAI_API_KEY"], ["ANTHROPIC_API_KEY"]),
        ("gemini", {}, ["GEMINI_API_KEY", "GOOGLE_API_KEY"], ["GOOGLE_CLOUD_ACCESS_TOKEN"]),
        ("gemini", {"GOOGLE_GENAI_USE_GCA": "true"}, ["GOOGLE_CLOUD_ACCESS_TOKEN"], []),
        ("opencode", {}, ["*_API_KEY"], ["GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY"]),
    ],
)
def test_a_program_needs_the_keys_of_its_vendor_alone(
    name: str, env: dict[str, str], needed: list[str], others: list[str]
) -> None:
    """Those of a cloud only where a variable turns that cloud on."""
    found = ABOUT[name].needs_in(env)
    assert set(needed) <= set(found)
    assert not set(others) & set(found)


@pytest.mark.parametrize(
    ("name", "passes", "others"),
    [
        (
            "claude",
            "ANTHROPIC_BASE_URL CLAUDE_CODE_EFFORT_LEVEL DISABLE_TELEMETRY AWS_PROFILE",
            "CLAUDE_CODE_ENTRYPOINT",
        ),
        ("codex", "OPENAI_ORGANIZATION CODEX_HOME", "OPENAI_ADMIN_KEY CODEX_SANDBOX AWS_PROFILE"),
        ("gemini", "GEMINI_CLI_HOME GOOGLE_CLOUD_PROJECT", "GEMINI_CLI GOOGLE_CLIENT_SECRET"),
        ("opencode", "OPENCODE_CONFIG AWS_REGION GROQ_API_KEY", "OPENCODE_PID GITHUB_TOKEN DATABASE_URL"),
        ("builtin", "OPENAI_BASE_URL", "DATABASE_URL CLAUDE_CODE_EFFORT_LEVEL"),
    ],
)
def test_settings_of_a_program_pass_to_it(name: str, passes: str, others: str) -> None:
    """Its vendor's addresses and switches; logins of other things, and marks of a nested agent, do not."""
    base = dict.fromkeys([*passes.split(), *others.split()], "x")
    assert [*passing(base, [], ABOUT[name].needs_in(base))] == passes.split()


@pytest.mark.parametrize("name", VENDORS)
def test_a_key_that_shows_a_login_reaches_the_program(name: str) -> None:
    """Else `doctor agents` would name a login that no run has."""
    assert set(ABOUT[name].keys) <= set(ABOUT[name].needs_in({}))


def test_the_page_of_agents_lists_every_key_that_they_get() -> None:
    """docs/agents.md, Keys: each name, and each variable that turns some on."""
    section = DOCS.read_text().split("## Keys\n", 1)[1].split("\n## ", 1)[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.M))
    for name, about in ABOUT.items():
        secret = [key for key in about.keys if re.search(r"_(KEY|TOKEN)$", key)]
        listed = {*secret, *filter(None, about.needs), *(key for keys in about.needs.values() for key in keys)}
        assert set(re.findall(r"`([\w*]+)`", rows[name])) == listed
