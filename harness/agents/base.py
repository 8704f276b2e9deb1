"""The interface of every agent: one verb, `think`, that yields events and ends with AgentSuccess or AgentFailure."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from typing import Protocol

from harness.base.record import Json, Record
from harness.mission.usage import Usage
from harness.process.confine import Confinement
from harness.process.supervise import ChildEnd
from harness.process.timeouts import Timeouts

Thinking = Generator["AgentEvent | AgentSuccess | AgentFailure", None, None]

PLAYED_BACK = "HARNESS_RECORDING"  # variable: path of a recording that replaces every agent
LOOP = "builtin"  # the agent whose loop is part of the harness
LOOP_KEYS = (
    *("base_url", "api_key_env", "temperature", "max_output_tokens", "max_steps", "request_seconds"),
    *("curate", "plans", "placement", "scope", "shared", "sandbox_limits", "store"),
)
LIMITS = {"wall": "ran out of time", "idle": "was idle: no output, no change in the folder, no CPU use"}


def installed(program: str) -> bool:
    """Whether a program can be started: a path, or a name on the PATH. (Importing `shutil` costs 5 ms.)"""
    folders = [""] if "/" in program else os.environ.get("PATH", os.defpath).split(os.pathsep)
    paths = [os.path.join(folder, program) for folder in folders]
    return any(os.path.isfile(path) and os.access(path, os.X_OK) for path in paths)


def how(ended: ChildEnd) -> str:
    """How a child ended, in words."""
    if ended.cause in LIMITS:
        return LIMITS[ended.cause]
    return f"ended with exit {ended.exit}" if ended.exit is not None else f"ended with signal {ended.signal}"


class Settings(Record):
    """The inputs of an agent: its table in config.toml, its role and feature. `attempt` is 1-based; `trust` is
    workspace, full, or "" if unset; `mcp`: whether MCP servers of the user's own configuration are allowed; `prices`:
    those of config.toml. `allow` and `deny`: tools, by tools.json; `allow` None: all that are not denied. `held`: {path
    in the project: effective bytes, None for no file} instead of what runs wrote there."""

    project: str
    config_path: str
    role: str
    feature: str
    attempt: int
    table: dict[str, Json]
    trust: str = ""
    model: str = ""
    mcp: bool = False
    prices: Mapping[str, Mapping[str, float]] = {}
    allow: list[str] | None = None
    deny: list[str] = []
    held: Mapping[str, bytes | None] = {}


class ExecutionContext(Record):
    """The execution context of an agent: working folder, the prompt as a file, time left in seconds, environment, and lock
    descriptors for its guardian. `idle_seconds`: without a sign of life; `startup_seconds`: without a first event; 0 is no
    limit. `after_result_seconds`: from its result to its exit. `stable_bytes`: length of the prompt's prefix that is the same
    from run to run. `cost_left_usd`, `tokens_left`: what it may still use, None for no cap. `withheld`: the names of
    the user's variables that `environment` lacks. `confinement`: of the agent, None for none. `told`: the prompt has
    the project's instructions, so the agent's program must not read them by itself."""

    directory: str
    prompt_path: str
    seconds: float
    environment: Mapping[str, str]
    keep: list[int]
    idle_seconds: float = 0.0
    startup_seconds: float = 0.0
    after_result_seconds: float = 10.0
    stable_bytes: int = 0
    cost_left_usd: float | None = None
    tokens_left: int | None = None
    confinement: Confinement | None = None
    withheld: list[str] = []
    told: bool = False

    def timeouts(self) -> Timeouts:
        """The timeouts of a process in this context."""
        return Timeouts(
            idle_seconds=self.idle_seconds,
            startup_seconds=self.startup_seconds,
            after_result_seconds=self.after_result_seconds,
            folder=self.directory,
        )


class AgentEvent(Record):
    """An event: `said` (a message of the agent), `saying` (a piece of a message in progress), `whole` (such a message, once
    complete), `did` (an action, in a few words), `result` (of an action: one line, then its output), `output` (of a program that
    it ran, or its stderr), `waits` (output while its vendor is unreachable), `usage` (the vendor's counts so far, a Usage as
    JSON), `raw` (a vendor's event, unchanged), or `tick` (nothing new; a chance to redraw)."""

    kind: str
    text: str = ""


class AgentSuccess(Record):
    """The agent ended by itself. `reply`: its last message; `usage`: its vendor's counts (None: unknown); `late`: it had
    to be ended after its result; `remark`: a note for the result, such as a tool that it was not allowed to use; `failing`:
    the first line of output with which all its commands failed, "" if one did not, or if its events do not say."""

    reply: str
    usage: Usage | None = None
    late: bool = False
    remark: str = ""
    failing: str = ""


class AgentFailure(Record):
    """The agent failed: `outcome` is one of runs.OUTCOMES, `reason` one sentence. `until`: unix seconds when its vendor
    accepts requests again, 0 if not stated."""

    outcome: str
    reason: str
    usage: Usage | None = None
    until: int = 0


class Agent(Protocol):
    """An agent that answers prompts. `needs`: required variables, names and patterns such as `*_API_KEY`; `writable`: folders
    outside the working folder that its program must write; `readable`: files there that it reads, including programs."""

    needs: tuple[str, ...]
    writable: tuple[str, ...]
    readable: tuple[str, ...]

    def think(self, prompt: str, context: ExecutionContext) -> Thinking:
        """Work on the prompt in this context; the last item is an AgentSuccess or AgentFailure. Closing the generator
        ends everything."""
