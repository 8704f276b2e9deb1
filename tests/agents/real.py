"""Real agent CLIs: how to install each, point it at a model server on loopback, and start it unattended.

A table, CLIS. `install` puts one into a throw-away prefix, `configure` writes its files into a throw-away home, `settings`
gives the lines of config.toml for a mission. Texts may hold {url}, {home}, {prefix}, {python} and {program}.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

NODE = "node@22.23.3"  # installs a Node of its own, for CLIs that need a newer one than the machine has
OPENCODE_CONFIG = {
    "model": "fake/fake-model",
    "small_model": "fake/fake-model",
    "provider": {
        "fake": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "fake",
            "options": {"baseURL": "{url}/v1", "apiKey": "key"},
            "models": {"fake-model": {"name": "Fake", "limit": {"context": 100_000, "output": 8_000}}},
        }
    },
}
CODEX_CONFIG = """model = "fake-model"
model_provider = "fake"

[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
"""
SHELL_TOOL = """import subprocess


def bash(command: str) -> str:
    "Run a command with bash in the working folder; gives its output and its exit status."
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return f"{done.stdout}{done.stderr}\\nexit {done.returncode}"
"""
LLM_MODEL = """- model_id: fake
  model_name: fake-model
  api_base: {url}/v1
  supports_tools: true
"""
PI_MODEL = {"id": "fake-model", "name": "Fake", "reasoning": False, "input": ["text"], "contextWindow": 100_000}
PI_PRICES = {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 0}
PI_MODELS = {
    "providers": {
        "fake": {
            "baseUrl": "{url}/v1",
            "api": "openai-completions",
            "apiKey": "key",
            "models": [{**PI_MODEL, "cost": PI_PRICES, "maxTokens": 8_000}],
        }
    }
}
MINI = (
    "import json,sys; print(json.dumps({'run': {'task': sys.stdin.read()}}))"  # its task from a file, never from argv
)


@dataclass(frozen=True)
class Cli:
    """One CLI at the tested version. `built_in`: the harness has an adapter of that name, else `argv` starts it
    with the prompt on stdin. `quick`: variables that shorten its own retries. `full`: variables that it needs
    for full trust as root. `writes`: its own folders, where no adapter names them."""

    name: str
    manager: str
    packages: tuple[str, ...]
    program: str
    argv: tuple[str, ...]
    format: str = "text"
    built_in: bool = False
    env: dict[str, str] = field(default_factory=dict)
    quick: dict[str, str] = field(default_factory=dict)
    full: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    writes: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """The tested version."""
        return self.packages[0].replace("==", "@").rsplit("@", 1)[1]


CODEX = Cli(
    name="codex",
    manager="npm",
    packages=("@openai/codex@0.169.0",),
    program="codex",
    built_in=True,
    format="codex",
    argv=(
        *("{program}", "exec", "--json", "--skip-git-repo-check", "-s", "workspace-write"),
        *("-c", "sandbox_workspace_write.network_access=true", "-"),
    ),
    env={"CODEX_HOME": "{home}/.codex", "FAKE_KEY": "key"},
    files={".codex/config.toml": CODEX_CONFIG},
)
CLAUDE = Cli(
    name="claude",
    manager="npm",
    packages=("@anthropic-ai/claude-code@2.1.197",),
    program="claude",
    built_in=True,
    format="claude",
    argv=(
        *("{program}", "-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits"),
        *("--allowedTools", "Bash", "--strict-mcp-config"),
    ),
    env={"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "key"},
    quick={"CLAUDE_CODE_MAX_RETRIES": "1"},
    full={"IS_SANDBOX": "1"},
    files={
        ".claude/settings.json": '{"sandbox":{"enabled":true}}',
        ".claude/backups/.claude.json.backup.1700000000000": "{}",
    },
)
OPENCODE = Cli(
    name="opencode",
    manager="npm",
    packages=("opencode-ai@1.18.33",),
    program="opencode",
    built_in=True,
    format="opencode",
    argv=("{program}", "run", "--format", "json"),
    env={
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_PERMISSION": '{"*":"allow","external_directory":"deny","question":"deny"}',
        "XDG_CONFIG_HOME": "{home}/.config",
        "XDG_DATA_HOME": "{home}/.local/share",
        "XDG_CACHE_HOME": "{home}/.cache",
        "XDG_STATE_HOME": "{home}/.local/state",
    },
    files={".config/opencode/opencode.json": json.dumps(OPENCODE_CONFIG)},
)
GEMINI = Cli(
    name="gemini",
    manager="npm",
    packages=("@google/gemini-cli@0.61.0",),
    program="gemini",
    built_in=True,
    format="gemini",
    argv=(
        *("{program}", "-o", "stream-json", "--skip-trust", "--approval-mode", "yolo"),
        *("--allowed-mcp-server-names", "no-server-has-this-name"),
    ),
    env={"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "key", "GEMINI_CLI_HOME": "{home}"},
    files={".gemini/settings.json": '{"security":{"auth":{"selectedType":"gemini-api-key"}}}'},
)
QWEN = Cli(
    name="qwen",
    manager="npm",
    packages=("@qwen-code/qwen-code@0.15.10", NODE),
    program="qwen",
    format="claude",
    argv=(
        *("{program}", "-o", "stream-json", "--approval-mode", "yolo"),
        *("--allowed-mcp-server-names", "no-server-has-this-name"),
    ),
    env={
        "OPENAI_BASE_URL": "{url}/v1",
        "OPENAI_API_KEY": "key",
        "OPENAI_MODEL": "fake-model",
        "QWEN_HOME": "{home}/.qwen",
    },
    writes=("{home}/.qwen",),
    files={".qwen/settings.json": '{"security":{"auth":{"selectedType":"openai"}}}'},
)
AIDER = Cli(
    name="aider",
    manager="pip",
    packages=("aider-chat==0.86.2",),
    program="aider",
    format="edits",
    argv=(
        *("{program}", "--model", "openai/fake-model", "--message-file", "/dev/stdin", "--yes-always", "--no-stream"),
        *(
            "--no-pretty",
            "--no-check-update",
            "--no-show-release-notes",
            "--no-show-model-warnings",
            "--no-detect-urls",
        ),
        *("--no-suggest-shell-commands", "--no-git", "--analytics-disable"),
        *("--map-tokens", "0", "--edit-format", "diff"),
        *("--chat-history-file", "/dev/null", "--input-history-file", "/dev/null"),
    ),
    env={"OPENAI_API_BASE": "{url}/v1", "OPENAI_API_KEY": "key", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
)
LLM = Cli(
    name="llm",
    manager="pip",
    packages=("llm==0.36",),
    program="llm",
    argv=(
        "{program}",
        "prompt",
        "-m",
        "fake",
        "--key",
        "key",
        "-u",
        "--functions",
        "{home}/shell.py",
        "--chain-limit",
        "0",
    ),
    env={"LLM_USER_PATH": "{home}/.llm"},
    writes=("{home}/.llm",),
    files={".llm/extra-openai-models.yaml": LLM_MODEL, "shell.py": SHELL_TOOL},
)
MINI_SWE_AGENT = Cli(
    name="mini-swe-agent",
    manager="pip",
    packages=("mini-swe-agent==2.4.6", "mcp==2.3.0"),
    program="mini",
    argv=(
        "bash",
        "-c",
        '"$1" -c "$2" > "$TMPDIR/task.yaml" && "$0" -c mini.yaml -c "$TMPDIR/task.yaml" "${@:3}" </dev/null 1>&2; exit $?',
        *("{program}", "{python}", MINI, "-y", "--exit-immediately", "-m", "openai/fake-model", "-l", "0"),
        *("-o", "/tmp/trajectory.json"),
    ),
    writes=("{home}/mini",),
    env={
        "OPENAI_API_BASE": "{url}/v1",
        "OPENAI_API_KEY": "key",
        "MSWEA_CONFIGURED": "true",
        "MSWEA_COST_TRACKING": "ignore_errors",
        "MSWEA_SILENT_STARTUP": "1",
        "MSWEA_GLOBAL_CONFIG_DIR": "{home}/mini",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    },
)
PI = Cli(
    name="pi",
    manager="npm",
    packages=("@mariozechner/pi-coding-agent@0.73.1", NODE),
    program="pi",
    argv=("{program}", "-p", "--no-session", "--provider", "fake", "--model", "fake-model"),
    env={"PI_CODING_AGENT_DIR": "{home}/.pi/agent", "PI_OFFLINE": "1"},
    writes=("{home}/.pi",),
    files={".pi/agent/models.json": json.dumps(PI_MODELS)},
)
COPILOT = Cli(
    name="copilot",
    manager="npm",
    packages=("@github/copilot@1.0.102", NODE),
    program="copilot",
    argv=(
        "{program}",
        "-s",
        "--no-ask-user",
        "--allow-all-tools",
        "--allow-all-paths",
        "--disable-builtin-mcps",
        "--no-auto-update",
    ),
    env={
        "COPILOT_PROVIDER_BASE_URL": "{url}/v1",
        "COPILOT_PROVIDER_API_KEY": "key",
        "COPILOT_MODEL": "fake-model",
        "COPILOT_OFFLINE": "true",
        "COPILOT_HOME": "{home}/.copilot",
    },
    writes=("{home}/.copilot",),
)
CLIS = {cli.name: cli for cli in (CODEX, CLAUDE, OPENCODE, GEMINI, QWEN, AIDER, LLM, MINI_SWE_AGENT, PI, COPILOT)}


def folder(cli: Cli, prefix: Path) -> Path:
    """The folder of its programs, below the prefix that all CLIs share."""
    return prefix / cli.name / ("node_modules/.bin" if cli.manager == "npm" else "bin")


def installed(cli: Cli, prefix: Path) -> bool:
    """Whether it is installed."""
    return (folder(cli, prefix) / cli.program).exists()


def install(cli: Cli, prefix: Path) -> None:
    """Install it with its registry's client, unless it is installed; raises CalledProcessError."""
    if installed(cli, prefix):
        return
    place = prefix / cli.name
    if cli.manager == "npm":
        words = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(place)]
        subprocess.run([*words, *cli.packages], check=True)
    else:
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        pip = [str(place / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *cli.packages], check=True)


def below(cli: Cli, prefix: Path, home: Path) -> Path:
    """A prefix below a home that has it, as a person installs it; one from PyPI stays, since its programs name their place."""
    if cli.manager != "npm":
        return prefix
    (home / "tools").mkdir(parents=True, exist_ok=True)
    words = [str(prefix / cli.name), str(home / "tools" / cli.name)]
    if subprocess.run(["cp", "-al", *words], capture_output=True, check=False).returncode:  # on another disk
        shutil.rmtree(words[1], ignore_errors=True)
        subprocess.run(["cp", "-a", *words], check=True)
    return home / "tools"


def configure(cli: Cli, home: Path, url: str) -> None:
    """Write its files into a throw-away home."""
    for name, text in cli.files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("{url}", url))


def environment(cli: Cli, home: Path, url: str) -> dict[str, str]:
    """The variables that it needs beside the usual ones."""
    return {name: text.replace("{url}", url).replace("{home}", str(home)) for name, text in cli.env.items()}


def search_path(cli: Cli, prefix: Path, path: str) -> str:
    """A PATH that finds its program first, and its own Node if it brings one."""
    own = prefix / cli.name / "node_modules" / "node" / "bin"
    return os.pathsep.join([str(folder(cli, prefix)), *([str(own)] if own.exists() else []), path])


def command(cli: Cli, prefix: Path, home: Path) -> list[str]:
    """The tested command line, with the prompt on stdin and trust "workspace" as far as it supports that."""
    texts = {"{program}": str(folder(cli, prefix) / cli.program), "{python}": sys.executable, "{home}": str(home)}
    words = []
    for word in cli.argv:
        for name, text in texts.items():
            word = word.replace(name, text)
        words.append(word)
    return words


def settings(cli: Cli, prefix: Path, home: Path, url: str, trust: str = "workspace") -> str:
    """config.toml of a mission that it works on: its adapter if there is one, else a command with a format. The mission
    starts with `search_path` as its PATH."""
    env = environment(cli, home, url) | (cli.full if trust == "full" else {})
    lines = [f'agent = "{cli.name}"', f'trust = "{trust}"', "", f"[agents.{cli.name}]"]
    if not cli.built_in:
        lines += [f"command = {json.dumps(command(cli, prefix, home))}", f'format = "{cli.format}"']
        lines += [f"writable = {json.dumps([path.replace('{home}', str(home)) for path in cli.writes])}"]
    pairs = ", ".join(f"{name} = {json.dumps(text)}" for name, text in env.items())
    return "\n".join([*lines, f"env = {{ {pairs} }}", ""])
