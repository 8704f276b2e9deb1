"""OpenCode: `opencode run --format json`. Usage comes a step and is summed; no event tells the end, so the exit does."""

from __future__ import annotations

import json

from harness.agents.answer import Answer, count, mapping, outcome_of
from harness.agents.base import Desk, Event, Failed, Finished, Settings
from harness.agents.configs import config_names, known, parsed, switched_off
from harness.agents.driven import Cli
from harness.model.usage import plus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

RULES = '{"*":"allow","external_directory":"deny","question":"deny"}'
FOLDERS = ("$XDG_CONFIG_HOME/opencode/", "$HOME/.config/opencode/", "$HOME/.opencode/", "$OPENCODE_CONFIG_DIR/")
CONFIGS = [
    "$OPENCODE_CONFIG",
    *(at + name for at in (*FOLDERS, "", ".opencode/") for name in ("opencode.json", "opencode.jsonc", "config.json")),
]
CANNOT = {"workspace": "no sandbox: it refuses some paths outside that it sees in a command, no more"}


def argv(settings: Settings, desk: Desk) -> list[str]:
    """Nobody to ask."""
    return ["run", "--format", "json", *(["--auto"] if settings.trust == "full" else [])]


def environment(settings: Settings, desk: Desk) -> dict[str, str]:
    """What it may do, and the MCP servers of its configurations switched off, which goes by name only."""
    env = known(settings, desk)
    own = {} if settings.trust == "full" else {"OPENCODE_PERMISSION": env.get("OPENCODE_PERMISSION", RULES)}
    content = parsed(env.get("OPENCODE_CONFIG_CONTENT", ""))
    if not settings.mcp:
        content = switched_off(content, "mcp", config_names(settings, desk, CONFIGS, "mcp"))
    return own | {"OPENCODE_CONFIG_CONTENT": json.dumps({**content, "autoupdate": False})}


def read(row: dict[str, Any], answer: Answer) -> Iterator[Event | Finished | Failed]:
    """What one event means."""
    kind, part = row.get("type"), mapping(row.get("part"))
    answer.knows(session=row.get("sessionID"))
    if kind == "text":
        yield answer.says(str(part["text"]))
    elif kind == "tool_use":
        yield answer.does(str(part.get("tool")), (part.get("state") or {}).get("input"))
    elif kind == "step_finish":
        answer.given_up = part.get("reason") == "tool-calls"  # until the next step: no tool is left without an answer
        yield _used(part, answer)
    elif kind == "error":
        yield _error(mapping(row.get("error")), answer)


def _error(fault: dict[str, Any], answer: Answer) -> Failed:
    data = mapping(fault.get("data"))
    status = data.get("statusCode") or (503 if data.get("isRetryable") is True else None)  # it reached nobody
    answer.lets_in_after(mapping(data.get("responseHeaders")).get("retry-after"))
    broke = fault.get("name") == "ProviderAuthError" or '"insufficient_quota"' in str(data.get("responseBody"))
    outcome = "auth" if broke else outcome_of(status)
    return answer.failed(outcome, f"{fault.get('name', 'error')}: {data.get('message', '')}")


def _used(part: dict[str, Any], answer: Answer) -> Event:
    tokens, before = mapping(part.get("tokens")), answer.usage
    cache = mapping(tokens.get("cache"))
    told = {key: plus(getattr(before, key), count(tokens.get(key))) for key in ("input", "reasoning")}
    told |= {f"cache_{key}": plus(getattr(before, f"cache_{key}"), count(cache.get(key))) for key in ("read", "write")}
    told["output"] = plus(before.output, plus(count(tokens.get("output")), count(tokens.get("reasoning"))))
    cost = plus(before.cost_usd, count(part.get("cost"), "cost_usd") or None)
    return answer.used({"last step": part, "sum": told}, **told, cost_usd=cost, turns=plus(before.turns, 1))


CLI = Cli("opencode", argv, read, at_exit=Answer.by_exit, environment=environment, costs=True, cannot=CANNOT)
