"""Gemini CLI: `gemini -o stream-json`. Its messages come in pieces (`delta`); its stats give input with and without cache."""

from __future__ import annotations

from harness.agents.base import Desk, Event, Failed, Finished, Settings
from harness.agents.driven import Answer, Cli

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from harness.process import Ended

EXITS = {41: "auth", 42: "config", 44: "config", 52: "config"}  # its documented exit codes


def argv(settings: Settings, desk: Desk) -> list[str]:
    """Nobody to ask; the prompt on standard input."""
    words = ["-o", "stream-json", "--approval-mode", "yolo", "--skip-trust"]
    words += [] if settings.mcp else ["--allowed-mcp-server-names", "none"]
    return [*words, *(["-m", settings.model] if settings.model else [])]


def read(row: dict[str, Any], answer: Answer) -> Iterator[Event | Finished | Failed]:
    """What one event means."""
    kind = row.get("type")
    if kind == "message" and row.get("role") == "assistant":
        answer.memory["said"] = answer.memory.get("said", "") + str(row.get("content", ""))
        return
    if answer.memory.get("said"):
        yield answer.says(answer.memory.pop("said"))
    if kind == "init":
        answer.usage = answer.usage.replace(model=str(row.get("model", "")), session=str(row.get("session_id", "")))
    elif kind == "tool_use":
        yield answer.does(str(row.get("tool_name")), row.get("parameters"))
    elif kind == "result":
        yield from _result(row, answer)


def _result(row: dict[str, Any], answer: Answer) -> Iterator[Event | Finished | Failed]:
    stats = row.get("stats") or {}
    if stats:
        yield answer.used(
            stats,
            input=stats.get("input"),
            cache_read=stats.get("cached"),
            output=stats.get("output_tokens"),
        )
    if row.get("status") == "success":
        yield answer.finished()
    else:
        fault = row.get("error") or {}
        yield answer.failed("agent_error", f"{fault.get('type', 'error')}: {fault.get('message', '')}"[:400])


def at_exit(answer: Answer, ended: Ended) -> Finished | Failed:
    """An exit without a result: some of its codes say why."""
    return answer.failed(EXITS.get(ended.exit or 0, "agent_error"), f"exit {ended.exit}: {answer.last_words}")


CLI = Cli(program="gemini", argv=argv, read=read, at_exit=at_exit)
