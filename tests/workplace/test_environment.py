"""What a check and an agent see of the environment: what passes of the user's own, unattended, without harness variables."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from harness.process.confine import BUBBLEWRAP, Confinement, Glass
from harness.state.layout import Layout
from harness.workplace import environment

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


def test_what_passes_is_the_users_own() -> None:
    """A check may need the user's language, home and programs; what is not in the table does not pass."""
    own = {key: BASE[key] for key in ("HOME", "LANG", "PATH")}
    seen = environment.plain(BASE, "m/1")
    assert seen.items() >= own.items()
    assert "EDITOR" not in seen


OTHERS = ("DEPLOY_KEY", "client_secret", "DATABASE_URL", "SSH_AUTH_SOCK", "DOCKER_HOST", "CARGO_REGISTRY_TOKEN")


@pytest.mark.parametrize("name", OTHERS)
def test_what_does_not_pass_is_passed_by_its_name(name: str) -> None:
    """Only by the whole name."""
    base = {**BASE, name: "private"}
    assert environment.plain(base, "m/1") == environment.plain(BASE, "m/1")
    assert environment.plain(base, "m/1", [name]) == {**environment.plain(BASE, "m/1"), name: "private"}
    assert name not in environment.plain(base, "m/1", [name[1:], f"{name}S"])


def test_an_agent_gets_what_it_needs_and_nothing_else() -> None:
    """By name, or by a pattern; `passed` counts as for a check."""
    base = {**BASE, **dict.fromkeys([*OTHERS, "A_API_KEY", "B_API_KEY"], "private")}

    def seen(passed: list[str], needs: list[str]) -> set[str]:
        return environment.of_agent(base, "m/1", Layout("/p"), "1-worker", passed, needs).keys() & (base.keys() - BASE)

    assert seen([], []) == set()
    assert seen([], ["A_API_KEY"]) == {"A_API_KEY"}
    assert seen(["DATABASE_URL"], ["*_API_KEY"]) == {"A_API_KEY", "B_API_KEY", "DATABASE_URL"}


NOISE = [
    "SHLVL",
    "PWD",
    "OLDPWD",
    "_",
    "LS_COLORS",
    "HISTFILE",
    "SSH_TTY",
    "DBUS_SESSION_BUS_ADDRESS",
    "WINDOWID",
    "CI",
    "PORT",
]


def test_what_does_not_pass_is_named_in_order() -> None:
    """No value, and nothing that every shell and desktop has, that we set, or that is ours."""
    noise = dict.fromkeys([*NOISE, "DISPLAY", "NO_COLOR", "PAGER", "HARNESS_KEY"], "x")
    base = {**BASE, **OURS, **PYTHONS, **NESTED, **GIT, **noise, "B_TOKEN": "1", "A_URL": "2", "C_API_KEY": "3"}
    assert environment.withheld(base) == ["A_URL", "B_TOKEN", "C_API_KEY"]
    assert environment.withheld(base, ["B_TOKEN"], ["*_API_KEY"]) == ["A_URL"]
    assert environment.withheld(BASE) == []
    assert environment.not_passed(["A", "B"]) == "not passed on: A, B; see [env] pass"
    assert environment.not_passed([*"ABCD"]) == "not passed on: A, B and 2 more; see [env] pass"
    assert environment.not_passed([]) == ""


def test_an_output_tells_what_its_program_lacked() -> None:
    """Whole names; also of a desktop, which the start does not name."""
    base = {**BASE, "DATABASE_URL": "x", "DISPLAY": ":0", "DATABASE": "y", "SHLVL": "1"}
    said = "KeyError: 'DATABASE_URL'; cannot open $DISPLAY at level SHLVL, LANG is C"
    assert environment.mentioned(said, base) == "not passed on: DATABASE_URL, DISPLAY; see [env] pass"
    assert environment.mentioned(said, base, ["DATABASE_URL"], ["DISPLAY"]) == ""


def test_an_output_tells_which_hidden_path_its_program_lacked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first one; in a folder that a run has of its own only what the host has there: the run may have made the rest."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(environment, "OWN_FOLDERS", ("/run/",))  # pytest's own folder may be below another
    known = Confinement(glass=Glass(readable=["/usr"], hidden=[str(tmp_path)]), tier=BUBBLEWRAP)

    def told(said: str) -> str:
        return environment.mentioned(said, {"A_URL": "x"}, known=known)

    assert told(f"cat: {tmp_path}/a.txt: No such file or directory\ncat: {tmp_path}/b") == (
        f"its confinement hides {tmp_path}/a.txt: runs see only a list of your home folder; "
        'to show it, write into config.toml: [home] show = ["a.txt"]'
    )
    assert told(f"A_URL: (at {tmp_path}/x/y.py:3).").startswith(
        f"not passed on: A_URL; see [env] pass; its confinement hides {tmp_path}/x/y.py: "
    )
    quiet = (
        "/run/no-such",
        f"HOME is {tmp_path}",
        "see https://x.org/run/x",
        "in /usr/bin/env",
        "a/run/x",
        f"{tmp_path}",
    )
    assert [told(said) for said in quiet] == [""] * len(quiet)
    assert environment.mentioned(f"{tmp_path}/a.txt", {}) == ""


@pytest.mark.parametrize("gone", [OURS, PYTHONS, NESTED, GIT], ids=["ours", "python", "nested agents", "git"])
def test_what_would_lead_a_child_astray_is_gone(gone: dict[str, str]) -> None:
    """Neither our variables, nor our interpreter's, nor markers of a nested agent; listed or not."""
    assert environment.plain({**BASE, **gone}, "m/1", gone) == environment.plain(BASE, "m/1")
    made = environment.of_agent(
        {**BASE, **gone}, "m/1", Layout("/p"), "1", [], ["CLAUDE_*", "CODEX_*", "GEMINI_*", "GIT_*"]
    )
    assert made == environment.of_agent(BASE, "m/1", Layout("/p"), "1")


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
