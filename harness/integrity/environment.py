"""The environment variables of the processes of a run: the user's own, without our virtual environment and our variables."""

from __future__ import annotations

import os
import sys

from harness.integrity.inside import INSIDE
from harness.process.supervise import TAG
from harness.store.layout import Layout

FOLDERS_OF_TOOLS = (
    *(f"XDG_{name}_HOME" for name in ("CACHE", "CONFIG", "DATA", "STATE")),
    *("CARGO_HOME", "RUSTUP_HOME", "GOPATH", "GOMODCACHE", "GOCACHE", "CCACHE_DIR", "GRADLE_USER_HOME", "NVM_DIR"),
    *("PIP_CACHE_DIR", "UV_CACHE_DIR", "PYENV_ROOT", "npm_config_cache", "NPM_CONFIG_CACHE", "YARN_CACHE_FOLDER"),
    *("BUN_INSTALL", "DENO_DIR", "GEM_HOME", "COMPOSER_HOME", "PNPM_HOME", "HF_HOME", "TF_PLUGIN_CACHE_DIR"),
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.model.check_environment import CheckEnvironment

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


def plain(base: Mapping[str, str], tag: str, passed: object = ()) -> dict[str, str]:
    """The environment of a check. Of our variables it has only the tag, which identifies left-over processes."""
    kept = {
        key: value
        for key, value in base.items()
        if not key.startswith("HARNESS_") and key not in (*OURS, *NESTED_MARKERS)
    }
    own = os.path.join(sys.prefix, "bin") if sys.prefix != sys.base_prefix else ""
    path = [folder for folder in kept.get("PATH", os.defpath).split(os.pathsep) if folder != own]
    return {**kept, **UNATTENDED, "PATH": os.pathsep.join(path), TAG: tag}


def of_check(base: Mapping[str, str], place: CheckEnvironment) -> dict[str, str]:
    """The environment of a check, a service or setup in `place`."""
    return at_home(plain(base, place.tag, place.passed), place.home)


def at_home(env: dict[str, str], home: str) -> dict[str, str]:
    """`env` with another HOME, and with the folders of tools that lay below the old one below it; `home` "": unchanged."""
    old = env.get("HOME", "").rstrip("/") + "/"
    if not home or old == "/":
        return env
    moved = {
        name: home + "/" + env[name].removeprefix(old) for name in FOLDERS_OF_TOOLS if env.get(name, "").startswith(old)
    }
    return {**env, **moved, "HOME": home}


def of_agent(base: Mapping[str, str], tag: str, layout: Layout, run_id: str, passed: object = (), needs: object = ()) -> dict[str, str]:
    """The environment of an agent: that of a check, plus the harness command on PATH and the id of its run."""
    env = plain(base, tag)
    env["PATH"] = os.path.dirname(layout.shim) + os.pathsep + env["PATH"]
    return {**env, INSIDE: run_id}
