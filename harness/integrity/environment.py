"""The environment variables of the processes of a run: the user's own, without keys and what is ours."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping

from harness.integrity import home_layer
from harness.integrity.inside import INSIDE
from harness.model.check_environment import CheckEnvironment
from harness.process.supervise import TAG
from harness.store.layout import Layout

UNATTENDED = {
    "CI": "1",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
}
OURS = ("FEATURE_ID", "TRIGGER", "REASON", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
NESTED_MARKERS = (  # agents and git set these for their children; logins and settings of the user stay
    *("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_CHILD_SESSION"),
    *(
        "CLAUDE_CODE_EXECPATH",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_EFFORT",
        "CODEX_SANDBOX",
        "CODEX_SANDBOX_NETWORK_DISABLED",
    ),
    *("GEMINI_CLI", "GEMINI_CLI_NO_RELAUNCH", "GEMINI_CLI_TRUST_WORKSPACE", "OPENCODE", "OPENCODE_PID"),
    *("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX"),
)
SECRETS = ("KEY", "TOKEN", "SECRET", "PASSWORD")  # the last word of a variable's name, in any case
SOCKETS = ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST")  # not there for a confined program


def withheld(base: Mapping[str, str], passed: Collection[str] = (), needs: Collection[str] = ()) -> list[str]:
    """The sorted names of the variables in `base` that look like keys and are withheld: all but those in `passed` and in
    `needs`, which holds names, and endings such as `*_API_KEY`."""
    endings = tuple(need[1:] for need in needs if need.startswith("*"))
    kept = {*passed, *needs}
    return sorted(name for name in base if _is_key(name) and name not in kept and not name.endswith(endings))


def _is_key(name: str) -> bool:
    return name.upper().rpartition("_")[2] in SECRETS and not _is_ours(name)


def _is_ours(name: str) -> bool:
    """Whether no process gets it, whatever its value: one of our variables, or one that leads a child astray."""
    return name.startswith("HARNESS_") or name in OURS or name in NESTED_MARKERS


def plain(base: Mapping[str, str], tag: str, passed: Collection[str] = ()) -> dict[str, str]:
    """The environment of a check. Of our variables it has only the tag, which identifies left-over processes; of the
    user's keys those in `passed`."""
    return _unattended(base, tag, passed)


def of_person(base: Mapping[str, str]) -> dict[str, str]:
    """The environment of a person's own program: theirs whole, without our variables."""
    return {key: value for key, value in base.items() if not _is_ours(key) and key != TAG}


def _unattended(
    base: Mapping[str, str], tag: str, passed: Collection[str], needs: Collection[str] = ()
) -> dict[str, str]:
    gone = {*withheld(base, passed, needs), *(name for name in SOCKETS if name not in passed)}
    kept = {key: value for key, value in base.items() if not _is_ours(key) and key not in gone}
    own = os.path.join(sys.prefix, "bin") if sys.prefix != sys.base_prefix else ""
    path = [folder for folder in kept.get("PATH", os.defpath).split(os.pathsep) if folder != own]
    return {**kept, **UNATTENDED, "PATH": os.pathsep.join(path), TAG: tag}


def of_check(base: Mapping[str, str], place: CheckEnvironment) -> dict[str, str]:
    """The environment of a check, a service or setup in `place`."""
    env = plain(base, place.tag, place.passed)
    if place.git:
        env = {key: value for key, value in env.items() if not key.startswith("GIT_CONFIG")}
        env |= {"GIT_CONFIG_GLOBAL": place.git, "GIT_CONFIG_NOSYSTEM": "1"}
    return home_layer.variables(env, place.home, os.path.expanduser("~")) if place.home else env


def of_agent(
    base: Mapping[str, str],
    tag: str,
    layout: Layout,
    run_id: str,
    passed: Collection[str] = (),
    needs: Collection[str] = (),
) -> dict[str, str]:
    """The environment of an agent: that of a check, plus the keys that it `needs`, the harness command on PATH and the id
    of its run."""
    env = _unattended(base, tag, passed, needs)
    env["PATH"] = os.path.dirname(layout.shim) + os.pathsep + env["PATH"]
    return {**env, INSIDE: run_id}
