"""OpenCode: `opencode run --format json`. Usage comes a step and is summed; a cost of 0 means that no price is known.
No event tells the end, so the exit does; while it tries again it is silent."""

from __future__ import annotations

import json
import time

from harness.agents.answer import Answer, outcome_of, when
from harness.agents.base import Desk, Event, Failed, Finished, Settings
from harness.agents.configs import config_names
from harness.agents.driven import Cli
from harness.usage import plus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any
RULES = '{"*":"allow","external_directory":"deny","question":"deny"}'
FOLDERS = ("$XDG_CONFIG_HOME/opencode/", "$HOME/.config/opencode/", "")
CONFIGS = [f"{folder}opencode.{ending}" for folder in FOLDERS for ending in ("json", "jsonc")]
NO_SANDBOX = "no sandbox: it refuses paths outside that it can see in a command, no more"


def argv(settings: Settings, desk: Desk) -> list[str]:
    """Nobody to ask."""
    return ["run", "--format", "json", *(["--auto"] if settings.trust == "full" else [])]


def environment(settings: Settings, desk: Desk) -> dict[str, str]:
    """What it may do, and the MCP servers of its configuration switched off, which goes by name only."""
    own = {"OPENCODE_DISABLE_AUTOUPDATE": "1"} | ({} if settings.trust == "full" else {"OPENCODE_PERMISSION": RULES})
    off = {name: {"enabled": False} for name in config_names(settings, desk, CONFIGS, "mcp")}
    return own if settings.mcp or not off else own | {"OPENCODE_CONFIG_CONTENT": json.dumps({"mcp": off})}


def read(row: dict[str, Any], answer: Answer) -> Iterator[Event | Finished | Failed]:
    """What one event means."""
    kind, part = row.get("type"), row.get("part") or {}
    answer.knows(session=row.get("sessionID"))
    if kind == "text":
        yield answer.says(str(part["text"]))
    elif kind == "tool_use":
        yield answer.does(str(part.get("tool")), (part.get("state") or {}).get("input"))
    elif kind == "step_finish":
        answer.given_up = part.get("reason") == "tool-calls"  # until the next step: no tool is left without an answer
        yield _used(part, answer)
    elif kind == "error":
        yield _error(row.get("error") or {}, answer)


def _error(fault: dict[str, Any], answer: Answer) -> Failed:
    data = fault.get("data") or {}
    if wait := when((data.get("responseHeaders") or {}).get("retry-after")):
        answer.until = int(time.time()) + wait
    broke = fault.get("name") == "ProviderAuthError" or '"insufficient_quota"' in str(data.get("responseBody"))
    outcome = "auth" if broke else outcome_of(data.get("statusCode"))
    return answer.failed(outcome, f"{fault.get('name', 'error')}: {data.get('message', '')}")


def _used(part: dict[str, Any], answer: Answer) -> Event:
    tokens, before = part.get("tokens") or {}, answer.usage
    cache = tokens.get("cache") or {}
    told = {key: plus(getattr(before, key), tokens.get(key)) for key in ("input", "reasoning")}
    told |= {f"cache_{key}": plus(getattr(before, f"cache_{key}"), cache.get(key)) for key in ("read", "write")}
    told["output"] = plus(before.output, plus(tokens.get("output"), tokens.get("reasoning")))
    cost = plus(before.cost_usd, part.get("cost") or None)
    return answer.used({"last step": part, "sum": told}, **told, cost_usd=cost, turns=plus(before.turns, 1))


CLI = Cli(
    "opencode",
    argv,
    read,
    at_exit=Answer.by_exit,
    environment=environment,
    costs=True,
    cannot={"workspace": NO_SANDBOX},
)
