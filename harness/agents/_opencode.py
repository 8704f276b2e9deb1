"""OpenCode: `opencode run --format json`. It reports usage per step, so it is summed; its exit is the only end signal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from harness.agents._answer_state import AnswerState, count, mapping, outcome_of
from harness.agents._configs import config_names, in_project, known, parsed, switched_off
from harness.agents.base import AgentEvent, AgentFailure, AgentSuccess, ExecutionContext, Settings
from harness.agents.program import Cli
from harness.mission.usage import plus

RULES = '{"*":"allow","external_directory":"deny","question":"deny"}'
NAMES = ["opencode.json", "opencode.jsonc", "config.json", ".opencode/opencode.json", ".opencode/opencode.jsonc"]
FOLDERS = ("$XDG_CONFIG_HOME/opencode/", "$HOME/.config/opencode/", "$HOME/.opencode/", "$OPENCODE_CONFIG_DIR/")
CONFIGS = ["$OPENCODE_CONFIG", *(at + name for at in (*FOLDERS, "", ".opencode/") for name in NAMES[:3])]
CANNOT = {"workspace": "no sandbox: it only refuses some outside paths that it sees in a command"}


def argv(settings: Settings, context: ExecutionContext) -> list[str]:
    """No questions to a person."""
    return ["run", "--format", "json", *(["--auto"] if settings.trust == "full" else [])]


def environment(settings: Settings, context: ExecutionContext) -> dict[str, str]:
    """Its permissions, and the MCP servers of its configurations disabled, which works by name only."""
    env = known(settings, context)
    own = {} if settings.trust == "full" else {"OPENCODE_PERMISSION": env.get("OPENCODE_PERMISSION", RULES)}
    content = parsed(env.get("OPENCODE_CONFIG_CONTENT", ""))
    if not settings.mcp:
        content = switched_off(content, "mcp", config_names(settings, context, CONFIGS, "mcp"))
    if context.told:  # this variable hides its configuration in the project, too
        own, content = own | {"OPENCODE_DISABLE_PROJECT_CONFIG": "true"}, in_project(context, NAMES) | content
    return own | {"OPENCODE_CONFIG_CONTENT": json.dumps({**content, "autoupdate": False})}


def read(row: dict[str, Any], answer: AnswerState) -> Iterator[AgentEvent | AgentSuccess | AgentFailure]:
    """Translate one row; the verdict follows the program's exit."""
    kind, part = row.get("type"), mapping(row.get("part"))
    answer.knows(session=row.get("sessionID"))
    if kind == "text":
        yield answer.says(str(part["text"]))
    elif kind == "tool_use":
        state, call = mapping(part.get("state")), part.get("callID")
        failed, code = state.get("status") == "error", mapping(state.get("metadata")).get("exit")
        yield answer.does(str(part.get("tool")), state.get("input"), call)
        yield answer.ran(call, failed or code not in (0, None), state.get("error") or state.get("output"), code)
    elif kind == "step_finish":
        answer.given_up = part.get("reason") == "tool-calls"  # a step must follow a tool call
        yield _used(part, answer)
    elif kind == "error":
        yield _error(mapping(row.get("error")), answer)


def _error(fault: dict[str, Any], answer: AnswerState) -> AgentFailure:
    data = mapping(fault.get("data"))
    status = data.get("statusCode") or (503 if data.get("isRetryable") is True else None)  # no server answered
    answer.set_retry_after(mapping(data.get("responseHeaders")).get("retry-after"))
    broke = fault.get("name") == "ProviderAuthError" or '"insufficient_quota"' in str(data.get("responseBody"))
    outcome = "auth" if broke else outcome_of(status)
    return answer.failed(outcome, f"{fault.get('name', 'error')}: {data.get('message', '')}")


def _used(part: dict[str, Any], answer: AnswerState) -> AgentEvent:
    tokens, before = mapping(part.get("tokens")), answer.usage
    cache = mapping(tokens.get("cache"))
    sums = {key: plus(getattr(before, key), count(tokens.get(key))) for key in ("input", "reasoning")}
    sums |= {f"cache_{key}": plus(getattr(before, f"cache_{key}"), count(cache.get(key))) for key in ("read", "write")}
    sums["output"] = plus(before.output, plus(count(tokens.get("output")), count(tokens.get("reasoning"))))
    cost = plus(before.cost_usd, count(part.get("cost"), "cost_usd") or None)
    return answer.used({"last step": part, "sum": sums}, **sums, cost_usd=cost, turns=plus(before.turns, 1))


CLI = Cli("opencode", argv, read, at_exit=AnswerState.by_exit, environment=environment, costs=True, cannot=CANNOT)
