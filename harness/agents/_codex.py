"""Codex: `codex exec --json`. Its input tokens include cache reads, its output tokens the reasoning; it reports no cost,
and no usage of a failed turn. An `error` event may be a reconnect; only turn.completed and turn.failed end a turn."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from harness.agents._answer_state import AnswerState, count, local_time, mapping, outcome_of
from harness.agents._configs import config_names, parsed
from harness.agents.base import AgentEvent, AgentFailure, AgentSuccess, ExecutionContext, Settings
from harness.agents.program import Cli

STATUS = re.compile(r"\bstatus:? (\d{3})\b")
SENTENCES = {  # an error event has no code, only a sentence that begins with one of these
    "Quota exceeded": "auth",
    "Missing environment variable": "auth",
    "You\u2019ve hit your usage limit": "limit",
    "We\u2019re currently experiencing high demand": "limit",
    "stream disconnected": "limit",
}
AGAIN = re.compile(r"try again at (?:(\w{3}) (\d+)\w\w, (\d{4}) )?(\d+:\d\d [AP]M)")  # local time
CONFIGS = ["$CODEX_HOME/config.toml", "$HOME/.codex/config.toml", ".codex/config.toml"]


def argv(settings: Settings, context: ExecutionContext) -> list[str]:
    """A new session, no questions to a person, the prompt on standard input."""
    words = ["exec", "--json", "--skip-git-repo-check"]
    if settings.trust == "full":
        words += ["--dangerously-bypass-approvals-and-sandbox"]
    else:
        words += ["-s", "workspace-write", "-c", "sandbox_workspace_write.network_access=true"]
    if not settings.mcp:
        names = config_names(settings, context, CONFIGS, "mcp_servers")  # they can only be disabled by name
        off = ",".join(f"{json.dumps(name)}={{enabled=false}}" for name in names)
        words += ["-c", f"mcp_servers={{{off}}}"] if off else []
    return words


def read(row: dict[str, Any], answer: AnswerState) -> Iterator[AgentEvent | AgentSuccess | AgentFailure]:
    """Translate one row; `turn.completed` and `turn.failed` are the verdict."""
    kind, item = row.get("type"), mapping(row.get("item"))
    if kind == "thread.started":
        answer.knows(session=row.get("thread_id"))
    elif kind == "error":
        yield from answer.waits(str(row.get("message", "")))
    elif kind == "item.started" and item.get("type") == "command_execution":
        yield answer.does("run", {"command": item.get("command")}, item.get("id"))
    elif kind == "item.completed" and item.get("type") == "command_execution":
        yield answer.ran(
            item.get("id"), item.get("exit_code") != 0, item.get("aggregated_output"), item.get("exit_code")
        )
    elif kind == "item.completed" and item.get("type") == "file_change":
        yield answer.does("edit", [one.get("path") for one in item.get("changes") or []])
    elif kind == "item.completed" and item.get("type") == "agent_message":
        yield answer.says(str(item.get("text", "")))
    elif kind == "turn.completed":
        yield _used(mapping(row.get("usage")), answer)
        yield answer.finished()
    elif kind == "turn.failed":
        message = str(mapping(row.get("error")).get("message", ""))
        status, again = STATUS.search(message), AGAIN.search(message)
        answer.until = local_time(*again.groups()) if again else 0
        known = [outcome for sentence, outcome in SENTENCES.items() if message.startswith(sentence)]
        if body := parsed(message):  # a refused request has the vendor's message but not its status, 400
            known, message = ["config"], str(mapping(body.get("error")).get("message") or body.get("detail") or message)
        yield answer.failed([*known, outcome_of(int(status[1]) if status else 0)][0], message)


def _used(block: dict[str, Any], answer: AnswerState) -> AgentEvent:
    whole, cached, written = (count(block.get(f"{key}input_tokens")) for key in ("", "cached_", "cache_write_"))
    uncached = None if whole is None else max(0, whole - (cached or 0) - (written or 0))
    counts = {"output": block.get("output_tokens"), "reasoning": block.get("reasoning_output_tokens")}
    return answer.used(block, input=uncached, cache_read=cached, cache_write=written, **counts)


CLI = Cli("codex", argv, read)
