"""Claude Code: `claude -p` with stream-json. Its input tokens exclude the cache; its cost is an estimate at list prices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.agents._answer_state import AnswerState, mapping, mappings, outcome_of, plain, sums, when
from harness.agents.base import AgentEvent, AgentFailure, AgentSuccess, ExecutionContext, Settings
from harness.agents.program import STABLE, Cli

SANDBOX = '{"sandbox":{"enabled":true,"autoAllowBashIfSandboxed":true,"network":{"allowedDomains":["*"]}}}'
NO_SANDBOX = '{"sandbox":{"enabled":false}}'  # inside ours its own fails, and every command with it
WORKSPACE = ["--permission-mode", "acceptEdits", "--allowedTools", "Bash,WebFetch,WebSearch"]
KINDS = {"authentication_failed": "auth", "billing_error": "auth", "server_error": "limit"}
KINDS |= {"error_max_budget_usd": "killed"}
NEEDS = ("bwrap", "socat")
OF_MESSAGE = {"input": "input_tokens", "output": "output_tokens"}
OF_MESSAGE |= {"cache_read": "cache_read_input_tokens", "cache_write": "cache_creation_input_tokens"}
OF_MODEL = {"input": "inputTokens", "output": "outputTokens"}
OF_MODEL |= {"cache_read": "cacheReadInputTokens", "cache_write": "cacheCreationInputTokens"}


def argv(settings: Settings, context: ExecutionContext) -> list[str]:
    """No questions to a person; the stable part of the prompt is a separate block, for its prompt cache."""
    words = ["-p", "--output-format", "stream-json", "--verbose", *([] if settings.mcp else ["--strict-mcp-config"])]
    words += ["--dangerously-skip-permissions"] if settings.trust == "full" else WORKSPACE
    if context.confinement or settings.trust != "full":
        words += ["--settings", NO_SANDBOX if context.confinement else SANDBOX]
    words += [] if context.cost_left_usd is None else ["--max-budget-usd", f"{context.cost_left_usd:.4f}"]
    return [*words, *(["--append-system-prompt-file", context.prompt_path + STABLE] if context.stable_bytes else [])]


def read(row: dict[str, Any], answer: AnswerState) -> Iterator[AgentEvent | AgentSuccess | AgentFailure]:
    """Translate one row of stream-json; `result` is the verdict."""
    kind, info = row.get("type"), mapping(row.get("rate_limit_info"))
    if kind == "system" and row.get("subtype") == "init":
        answer.knows(model=row.get("model"), session=row.get("session_id"))
    elif kind == "system" and row.get("subtype") == "api_retry":
        yield from answer.waits(f"{row.get('error')} ({row.get('error_status')})")
        if row.get("error") == "authentication_failed":  # it would retry ten times, for three minutes
            yield answer.failed("auth", "the vendor refused its key or login")
    elif kind == "assistant":
        answer.memory["error"] = row.get("error")  # without a login or a network it is the only cause given
        yield from _message(mapping(row.get("message")), answer)
    elif kind == "user":
        for block in mappings(mapping(row.get("message")).get("content")):
            yield answer.ran(block.get("tool_use_id"), block.get("is_error") is True, block.get("content"))
    elif kind == "rate_limit_event" and info.get("status") == "rejected":
        answer.until = when(info.get("resetsAt"))
        yield answer.failed("limit", f"{info.get('rateLimitType', 'usage')} limit")
    elif kind == "result":
        yield from _result(row, answer)


def _message(message: dict[str, Any], answer: AnswerState) -> Iterator[AgentEvent]:
    """Texts and tools of one message; each of its blocks repeats its usage, so each id counts once."""
    for block in mappings(message.get("content")):
        if block.get("type") == "text":
            yield answer.says(str(block.get("text", "")))
        elif block.get("type") == "tool_use":
            yield answer.does(str(block.get("name")), block.get("input"), block.get("id"))
    summed = answer.summed(message.get("id"), plain(mapping(message.get("usage"))), OF_MESSAGE)
    yield answer.used_so_far({"messages": len(answer.counted), "sum": summed}, **summed)


def _result(row: dict[str, Any], answer: AnswerState) -> Iterator[AgentEvent | AgentSuccess | AgentFailure]:
    usage, models, text = mapping(row.get("usage")), mapping(row.get("modelUsage")), str(row.get("result") or "")
    counted = bool(usage.get("input_tokens") or usage.get("output_tokens"))
    counts = sums(models.values(), OF_MODEL) if models else sums([plain(usage)], OF_MESSAGE) if counted else {}
    if counts or row.get("total_cost_usd"):
        yield answer.used({"usage": usage, "modelUsage": models}, **counts, cost_usd=row.get("total_cost_usd"))
    answer.denied = [str(one.get("tool_name")) for one in mappings(row.get("permission_denials"))]
    if row.get("is_error"):  # regardless of `subtype`, which is usually success
        kind = str(answer.memory.get("error") or row.get("subtype"))
        outcome = KINDS.get(kind) or outcome_of(row.get("api_error_status"))
        yield answer.failed(outcome, text or str(row.get("errors") or kind).strip("[]'"))
    elif usage.get("input_tokens") == 0 and not counted:  # one dialect reports a refused key like this
        yield answer.failed("config", f"it reported success but reached no model: {text}")
    else:
        yield answer.finished(text or None)


CLI = Cli("claude", argv, read, model_flag="--model", splits=True, costs=True, sandbox_needs=NEEDS, refuses_root=True)
