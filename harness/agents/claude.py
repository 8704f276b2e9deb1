"""Claude Code: `claude -p` with stream-json. Its input tokens are without what its cache gave or took; its cost is an
estimate at list prices, also under a subscription. `subtype` says success in every failure: `is_error` counts."""

from __future__ import annotations

from harness.agents.base import Desk, Event, Failed, Finished, Settings
from harness.agents.driven import STABLE, Answer, Cli, outcome_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

SANDBOX = '{"sandbox":{"enabled":true,"autoAllowBashIfSandboxed":true,"network":{"allowedDomains":["*"]}}}'
NO_SANDBOX = "without bwrap and socat on the PATH its commands may write anywhere; with them they reach no server here"
COUNTS = {
    "input": "input_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
    "output": "output_tokens",
}


def argv(settings: Settings, desk: Desk) -> list[str]:
    """Nobody to ask; the stable part of the prompt as a block of its own, which is what its cache keeps."""
    words = ["-p", "--output-format", "stream-json", "--verbose"]
    if settings.trust == "full":
        words += ["--dangerously-skip-permissions"]
    else:
        words += [
            "--permission-mode",
            "acceptEdits",
            "--allowedTools",
            "Bash,WebFetch,WebSearch",
            "--settings",
            SANDBOX,
        ]
    words += [] if settings.mcp else ["--strict-mcp-config"]
    words += ["--append-system-prompt-file", desk.prompt_path + STABLE] if desk.stable_bytes else []
    return [*words, *(["--model", settings.model] if settings.model else [])]


def read(row: dict[str, Any], answer: Answer) -> Iterator[Event | Finished | Failed]:
    """What one event means."""
    kind, info = (row.get("type"), row.get("subtype")), row.get("rate_limit_info") or {}
    if kind == ("system", "init"):
        answer.usage = answer.usage.replace(model=str(row.get("model", "")), session=str(row.get("session_id", "")))
    elif kind == ("system", "api_retry"):
        answer.waits(f"{row.get('error')} ({row.get('error_status')})")
        if row.get("error") == "authentication_failed":  # it would try ten times more, for three minutes
            yield answer.failed("auth", "not logged in, or its key is refused; log in by hand: claude")
    elif row.get("type") == "assistant":
        yield from _message(row.get("message") or {}, answer)
    elif row.get("type") == "rate_limit_event" and info.get("status") == "rejected":
        answer.until = int(info.get("resetsAt") or 0)
        yield answer.failed("limit", f"{info.get('rateLimitType', 'usage')} limit")
    elif row.get("type") == "result":
        yield from _result(row, answer)


def _message(message: dict[str, Any], answer: Answer) -> Iterator[Event]:
    """Texts and tools of one message; its usage comes again with each of its blocks, so each id counts once."""
    for block in message.get("content") or []:
        if block.get("type") == "text":
            yield answer.says(str(block["text"]))
        elif block.get("type") == "tool_use":
            yield answer.does(str(block.get("name")), block.get("input"))
    answer.memory[str(message.get("id"))] = message.get("usage") or {}
    yield _used({key: sum(one.get(key) or 0 for one in answer.memory.values()) for key in COUNTS.values()}, answer)


def _used(block: dict[str, Any], answer: Answer, **more: Any) -> Event:
    return answer.used(block, **{ours: block.get(theirs) for ours, theirs in COUNTS.items()}, **more)


def _result(row: dict[str, Any], answer: Answer) -> Iterator[Event | Finished | Failed]:
    if row.get("usage"):
        yield _used(row["usage"], answer, cost_usd=row.get("total_cost_usd"), turns=row.get("num_turns"))
    answer.denied = [str(one.get("tool_name")) for one in row.get("permission_denials") or []]
    said, status = str(row.get("result") or row.get("errors") or ""), int(row.get("api_error_status") or 0)
    if row.get("is_error"):
        yield answer.failed(outcome_of(status), f"{row.get('subtype')}: {said}"[:400])
    else:
        yield answer.finished(said or None)


CLI = Cli(program="claude", argv=argv, read=read, splits=True, costs=True, cannot={"workspace": NO_SANDBOX})
