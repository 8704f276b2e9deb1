"""Gemini CLI: `gemini -o stream-json`. Messages arrive in pieces (`delta`), and the prompt is echoed as a user message;
exit 0 without a result is not a success."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from harness.agents._answer_state import AnswerState, count, mapping, outcome_of
from harness.agents.base import AgentEvent, AgentFailure, AgentSuccess, ExecutionContext, Settings
from harness.agents.program import Cli
from harness.process.supervise import ChildEnd

NOBODY = "no-server-has-this-name"
EXITS = {41: "auth", 42: "config", 44: "config", 52: "config"}  # from its documentation
UNREACHED = "exception TypeError: fetch failed"  # its message for an unreachable server
CODE = re.compile(r'"code":\s*(\d{3})')  # the status is in JSON inside the error message


def argv(settings: Settings, context: ExecutionContext) -> list[str]:
    """No questions to a person; the prompt on standard input. Unattended, only `yolo` lets it run commands."""
    words = ["-o", "stream-json", "--approval-mode", "yolo", "--skip-trust"]
    return [*words, *([] if settings.mcp else ["--allowed-mcp-server-names", NOBODY])]


def read(row: dict[str, Any], answer: AnswerState) -> Iterator[AgentEvent | AgentSuccess | AgentFailure]:
    """Translate one row; pieces of a message count as one."""
    kind = row.get("type")
    if kind == "message":
        answer.adds(str(row.get("content", "")) if row.get("role") == "assistant" else "")
        return
    yield from answer.joined_pieces()
    if kind == "init":
        answer.knows(model=row.get("model"), session=row.get("session_id"))
    elif kind == "tool_use":
        yield answer.does(str(row.get("tool_name")), row.get("parameters"))
    elif kind == "tool_result":  # `success` is that of the tool: a command may have failed
        told = mapping(row.get("error")).get("message") or row.get("output")
        yield answer.ran(row.get("tool_id"), row.get("status") == "error" or None, told)
    elif kind == "result":
        yield from _result(row, answer)


def _result(row: dict[str, Any], answer: AnswerState) -> Iterator[AgentEvent | AgentSuccess | AgentFailure]:
    if stats := mapping(row.get("stats")):
        whole, prompt, answered = (count(stats.get(f"{key}_tokens")) for key in ("total", "input", "output"))
        thought = None if whole is None or answered is None else max(0, whole - (prompt or 0) - answered)
        output = None if answered is None else answered + (thought or 0)
        counts = {"input": stats.get("input"), "cache_read": stats.get("cached")}
        yield answer.used(stats, **counts, output=output, reasoning=thought)
    if row.get("status") == "success":
        yield answer.finished()
    else:
        message = str(mapping(row.get("error")).get("message", "an error without a message"))
        answer.error, status = message, CODE.search(message)
        if status or UNREACHED in message:
            yield answer.failed(outcome_of(int(status[1])) if status else "limit", message)


def at_exit(answer: AnswerState, ended: ChildEnd) -> AgentSuccess | AgentFailure:
    """The outcome of an exit without a result, or with an error without a code: by its own exit codes, or a status
    minus 256."""
    code = ended.exit or 0
    outcome = EXITS.get(code) or (outcome_of(code + 256) if 400 <= code + 256 < 512 else "")
    message = answer.error or answer.last_words
    return answer.failed(outcome, f"exit {code}: {message}") if outcome else answer.without_result(ended)


CLI = Cli("gemini", argv, read, at_exit=at_exit, cannot={"workspace": "no sandbox: its commands may write anywhere"})
