"""What a check and an agent see of the environment: the user's own, unattended, without harness variables."""

from __future__ import annotations

import os
import sys

import pytest

from harness.integrity import environment
from harness.store.layout import Layout

BASE = {
    "HOME": "/home/somebody",
    "PATH": "/usr/bin:/bin",
    "LANG": "de_DE.UTF-8",
    "TERM": "xterm",
    "EDITOR": "vi",
}
OURS = {
    "HARNESS_HOME": "/h",
    "HARNESS_PROJECT": "/p",
    "HARNESS_INSIDE": "1-worker",
    "HARNESS_LOOP": "1",
    "HARNESS_ANYTHING": "x",
    "FEATURE_ID": "F-001",
    "TRIGGER": "leaving",
    "REASON": "because",
}
PYTHONS = {"PYTHONPATH": "/h", "PYTHONHOME": "/h", "VIRTUAL_ENV": "/h/.venv", "__PYVENV_LAUNCHER__": "/h"}
NESTED = {"CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli", "CODEX_SANDBOX": "x", "GEMINI_CLI": "1", "OPENCODE": "1"}
GIT = {"GIT_DIR": "/elsewhere/.git", "GIT_INDEX_FILE": "/i", "GIT_WORK_TREE": "/w", "GIT_OBJECT_DIRECTORY": "/o"}


def test_what_is_the_users_own_stays() -> None:
    """A check may need the user's language, home and settings."""
    own = {key: BASE[key] for key in ("HOME", "LANG", "EDITOR", "PATH")}
    assert environment.plain(BASE, "m/1").items() >= own.items()


KEYS = ("DEPLOY_KEY", "NPM_TOKEN", "client_secret", "Db_Password", "KEY", "token", "SECRET", "PASSWORD")
NO_KEYS = ("KEYBOARD", "MAX_TOKENS", "MONKEY", "AWS_ACCESS_KEY_ID", "PASSWORD_FILE", "OPENAI_BASE_URL", "TOKENIZER")
SOCKETS = ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST")


@pytest.mark.parametrize("name", [*KEYS, *SOCKETS])
def test_a_check_gets_no_key_and_no_socket_unless_it_is_passed(name: str) -> None:
    """By the last word of the name, in any case; only the whole name passes it."""
    base = {**BASE, name: "private"}
    assert environment.plain(base, "m/1") == environment.plain(BASE, "m/1")
    assert environment.plain(base, "m/1", [name]) == {**environment.plain(BASE, "m/1"), name: "private"}
    assert name not in environment.plain(base, "m/1", [name[1:], f"{name}S"])


@pytest.mark.parametrize("name", NO_KEYS)
def test_a_name_that_only_resembles_a_key_stays(name: str) -> None:
    """Addresses, counts and paths."""
    assert environment.plain({**BASE, name: "theirs"}, "m/1")[name] == "theirs"


def test_an_agent_gets_the_keys_that_it_needs_and_no_others() -> None:
    """By name, or by the end of the name; `passed` counts as for a check."""
    base = {**BASE, **dict.fromkeys([*KEYS, *SOCKETS, "A_API_KEY", "B_API_KEY"], "private")}

    def seen(passed: list[str], needs: list[str]) -> set[str]:
        return environment.of_agent(base, "m/1", Layout("/p"), "1-worker", passed, needs).keys() & (base.keys() - BASE)

    assert seen([], []) == set()
    assert seen([], ["A_API_KEY"]) == {"A_API_KEY"}
    assert seen(["token", "DOCKER_HOST"], ["*_API_KEY"]) == {"A_API_KEY", "B_API_KEY", "token", "DOCKER_HOST"}


def test_the_withheld_keys_are_named_in_order() -> None:
    """For messages: no value, no socket, and nothing that no process gets anyway."""
    base = {**BASE, **OURS, "HARNESS_KEY": "ours", "B_TOKEN": "1", "A_KEY": "2", "C_API_KEY": "3", "SSH_AUTH_SOCK": "4"}
    assert environment.withheld(base) == ["A_KEY", "B_TOKEN", "C_API_KEY"]
    assert environment.withheld(base, ["B_TOKEN"], ["*_API_KEY"]) == ["A_KEY"]
    assert environment.withheld(BASE) == []


@pytest.mark.parametrize("gone", [OURS, PYTHONS, NESTED, GIT], ids=["ours", "python", "nested agents", "git"])
def test_what_would_lead_a_child_astray_is_gone(gone: dict[str, str]) -> None:
    """Neither our variables, nor our interpreter's, nor markers that make an agent think it is nested."""
    assert environment.plain({**BASE, **gone}, "m/1") == environment.plain(BASE, "m/1")


def test_logins_and_settings_of_an_agent_stay() -> None:
    """They resemble the markers, but they belong to the user."""
    own = {
        "CLAUDE_CODE_EFFORT_LEVEL": "high",
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "OPENCODE_CONFIG": "c",
        "GEMINI_CLI_HOME": "h",
    }
    assert environment.plain({**BASE, **own}, "m/1").items() >= own.items()


def test_programs_are_told_that_nobody_watches() -> None:
    """No pager, no colour, no question, whatever the user's own terminal allows."""
    seen = environment.plain({**BASE, "PAGER": "less"}, "m/1")
    assert {key: seen[key] for key in environment.UNATTENDED} == {
        "CI": "1",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "DEBIAN_FRONTEND": "noninteractive",
    }


def test_every_process_carries_the_tag_of_its_run() -> None:
    """The next start uses the tag to find what a killed run left behind; it is not a HARNESS_ variable."""
    seen = environment.plain(BASE, "greet-1a2b3c/1777076234-worker-F-001")
    tagged = [key for key, value in seen.items() if value == "greet-1a2b3c/1777076234-worker-F-001"]
    assert len(tagged) == 1
    assert not tagged[0].startswith("HARNESS_")


def test_our_virtual_environment_is_not_on_the_path() -> None:
    """`python` in a check is the project's or the user's, never the one that runs the harness."""
    assert sys.prefix != sys.base_prefix, "these tests run in the project's virtual environment"
    own = os.path.join(sys.prefix, "bin")
    seen = environment.plain({**BASE, "PATH": f"{own}:/opt/tools:{own}:/bin"}, "m/1")
    assert seen["PATH"] == "/opt/tools:/bin"


def test_without_a_path_there_is_the_systems_own() -> None:
    """An empty environment, as in cron, still finds programs."""
    assert environment.plain({}, "m/1")["PATH"] == os.defpath


def test_an_agent_finds_the_harness_command_first() -> None:
    """`harness note` works for an agent even if another program has that name, and knows its run."""
    layout = Layout("/srv/greet")
    seen = environment.of_agent({**BASE, **OURS}, "m/1", layout, "1777076234-worker-F-001")
    assert seen["PATH"] == "/srv/greet/.harness/bin:/usr/bin:/bin"
    assert {key: value for key, value in seen.items() if key.startswith("HARNESS_")} == {
        "HARNESS_INSIDE": "1777076234-worker-F-001"
    }


def test_the_given_environment_is_left_as_it_was() -> None:
    """The caller's dictionary never changes."""
    base = {**BASE, **OURS}
    before = dict(base)
    environment.of_agent(base, "m/1", Layout("/p"), "1-worker")
    assert base == before
