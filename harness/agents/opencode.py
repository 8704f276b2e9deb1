"""OpenCode: `opencode run --format json`. Usage and cost come a step and are summed; most versions tell no end, so the exit
does."""

from __future__ import annotations

from harness.agents.base import Desk, Event, Failed, Finished, Settings
from harness.agents.driven import Answer, Cli, outcome_of
from harness.usage import plus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from harness.process import Ended


def argv(settings: Settings, desk: Desk) -> list[str]:
    """Nobody to ask; the prompt on standard input."""
    words = ["run", "--format", "json"]
    return [*words, *(["-m", settings.model] if settings.model else [])]


def read(row: dict[str, Any], answer: Answer) -> Iterator[Event | Finished | Failed]:
    """What one event means."""
    kind, part = row.get("type"), row.get("part") or {}
    answer.usage = answer.usage.replace(session=str(row.get("sessionID", "")))
    if kind == "text":
        yield answer.says(str(part.get("text", "")))
    elif kind == "tool_use":
        yield answer.does(str(part.get("tool")), (part.get("state") or {}).get("input"))
    elif kind == "step_finish":
        yield _used(part, answer)
    elif kind == "error":
        fault = row.get("error") or {}
        data = fault.get("data") or {}
        outcome = "auth" if fault.get("name") == "ProviderAuthError" else outcome_of(int(data.get("statusCode") or 0))
        yield answer.failed(outcome, f"{fault.get('name', 'error')}: {data.get('message', '')}"[:400])
    elif kind == "done":
        answer.denied = [str(one) for one in row.get("rejected") or []]


def _used(part: dict[str, Any], answer: Answer) -> Event:
    """Steps are summed; its output tokens are without the reasoning."""
    tokens, cache, before = part.get("tokens") or {}, (part.get("tokens") or {}).get("cache") or {}, answer.usage
    return answer.used(
        {"steps": [*(before.raw[0]["block"]["steps"] if before.raw else []), part]},
        turns=plus(before.turns, 1),
        input=plus(before.input, tokens.get("input")),
        cache_read=plus(before.cache_read, cache.get("read")),
        cache_write=plus(before.cache_write, cache.get("write")),
        output=plus(before.output, plus(tokens.get("output"), tokens.get("reasoning"))),
        reasoning=plus(before.reasoning, tokens.get("reasoning")),
        cost_usd=plus(before.cost_usd, part.get("cost")),
    )


def at_exit(answer: Answer, ended: Ended) -> Finished | Failed:
    """A clean exit after a message is its end; one without a word is what a refused permission looks like."""
    if ended.exit == 0 and answer.said:
        return answer.finished()
    if ended.exit == 0:
        return answer.failed("config", "it ended without a word: a permission was refused; see trust in config.toml")
    return answer.failed("agent_error", f"exit {ended.exit}: {answer.error or answer.last_words}")


CLI = Cli(program="opencode", argv=argv, read=read, at_exit=at_exit, costs=True)
