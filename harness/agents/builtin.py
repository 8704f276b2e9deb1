"""The built-in agent: the harness's own loop in a child process, `harness/builtin`, with a model of any vendor or
server. It is a Cli like the others, but not confined itself: its tools' programs, which are confined like an agent,
cannot reach its keys and records.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from harness.agents._answer_state import AnswerState, clean, mapping
from harness.agents.base import LOOP, LOOP_KEYS, AgentEvent, AgentFailure, AgentSuccess, ExecutionContext, Settings
from harness.agents.program import Cli, CliFacts, ProgramAgent
from harness.base import encoding
from harness.base.errors import BrokenFile, Unavailable
from harness.mission import runs
from harness.mission.usage import TABLE, UNKNOWN
from harness.process.confine import Confinement
from harness.process.variables import is_key
from harness.state import documents, files

LIBRARIES = ("pydantic_ai", "pathspec")
EXTRA = "pydantic-ai-slim[openai,anthropic,google,mcp]>=2.68"
KEYS = {
    "anthropic": ["ANTHROPIC_API_KEY"],
    "openai": ["OPENAI_API_KEY"],
    "openai-chat": ["OPENAI_API_KEY"],
    "openai-responses": ["OPENAI_API_KEY"],
    "google": ["GOOGLE_API_KEY", "GEMINI_API_KEY"],
}
OUTPUT_TOKENS = 8000  # of one answer, unless set
SUGGESTED = "anthropic:claude-opus-5"
NO_EXTRA = (
    "The built-in agent needs more packages: {python} -m pip install '{extra}' pathspec ripgrep==14.1.0 "
    "(from a checkout: make setup)"
)
FAILED = (*(f"exit {digit}" for digit in range(1, 10)), "signal ")  # how the result of a failed command begins
FORM = 'Write model = "anthropic:NAME", with one of {vendors} before the colon'


def installed() -> bool:
    """Whether its required packages are installed."""
    return all(find_spec(library) for library in LIBRARIES)


def tried() -> str:
    """The version of its library; "" without it."""
    from importlib.metadata import PackageNotFoundError, version  # 20 ms: only doctor and records need it

    try:
        return version(EXTRA.partition("[")[0])
    except PackageNotFoundError:
        return ""


def no_model() -> str:
    """How to set a model in config.toml, in words."""
    return FORM.format(vendors=", ".join(KEYS))


def unknown(model: str) -> str:
    """The fault of a person's text for a model; "" if it is valid."""
    return f"invalid model '{model}'. Name one such as anthropic:NAME, with one of {', '.join(KEYS)} before the colon."


def is_model(text: str) -> bool:
    """Whether a text names a model of the built-in agent: vendor, colon, name."""
    vendor, _, name = text.partition(":")
    return vendor in KEYS and name.strip() != ""


def bounded(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a model with the limit of an answer that a server of one's own needs; vendors have theirs."""
    return {"max_output_tokens": OUTPUT_TOKENS, **parameters} if parameters.get("base_url") else parameters


def argv(settings: Settings, context: ExecutionContext) -> list[str]:
    """The child's command line with its order; see harness/builtin/_order.py."""
    table, run = settings.table, os.path.dirname(context.prompt_path)
    asked = {"model": settings.model, **_given(table, "base_url", "temperature", "max_output_tokens")}
    order = {
        "parameters": bounded(asked),
        "key_env": key_names(settings),
        "hidden": [*filter(is_key, table.get("env", {}))],
        "directory": context.directory,
        "project": settings.project,
        "state": os.path.dirname(os.path.dirname(run)),
        "run": os.path.basename(run),
        "role": settings.role,
        "feature": settings.feature,
        "stable_bytes": context.stable_bytes,
        "cost_left": context.cost_left_usd,
        "tokens_left": context.tokens_left,
        "prices": settings.prices,
        "confinement": _glass(context.confinement),
        **_given(table, "max_steps", "request_seconds"),
    }
    return ["-I", program(), encoding.compact(order)]


def _given(table: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: table[key] for key in keys if key in table}


def program() -> str:
    """The child's script."""
    return os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "builtin", "__main__.py")


def key_names(settings: Settings) -> list[str]:
    """The variables that may hold its key."""
    return keys_of(settings.model, settings.table)


def keys_of(model: str, table: dict[str, Any]) -> list[str]:
    """The variables that may hold the key for this model under this table; without a model those of all vendors."""
    if named := table.get("api_key_env"):
        return [str(named)]
    return KEYS.get(model.partition(":")[0], ABOUT.keys)


def _glass(known: Confinement | None) -> dict[str, Any] | None:
    return None if known is None else {**known.asdict(), "glass": known.glass.asdict()}


def read(row: dict[str, Any], answer: AnswerState) -> Iterator[AgentEvent | AgentSuccess | AgentFailure]:
    """Translate one row of the child; `end` is the verdict."""
    kind = row.get("type")
    if kind == "begin":
        answer.knows(model=row.get("model"))
    elif kind == "continues":
        yield AgentEvent(kind="output", text=f"goes on with the conversation of {row.get('run')}\n")
    elif kind == "lacks":
        answer.lacks.append(clean(str(row.get("text", ""))).rstrip("."))
        yield AgentEvent(kind="output", text=f"{answer.lacks[-1]}\n")
    elif kind == "said":
        yield answer.says(str(row.get("text", "")))
    elif kind == "call":
        yield answer.does(str(row.get("name")), mapping(row.get("arguments")), row.get("id"))
    elif kind == "result":
        text = str(row.get("text", ""))
        yield answer.ran(row.get("id"), row.get("failed") is True or text.startswith(FAILED), text)
    elif kind == "waits":
        yield from answer.waits(str(row.get("why", "")))
    elif kind == "usage":
        yield _used(row, answer)
    elif kind == "end" and row.get("outcome") == "ok":
        yield answer.finished(str(row.get("reply", "")))
    elif kind == "end":
        answer.until = int(row.get("until", 0))
        outcome = str(row.get("outcome"))
        yield answer.failed(outcome if outcome in runs.OUTCOMES else "agent_error", str(row.get("reason", "")))


def _used(row: dict[str, Any], answer: AnswerState) -> AgentEvent:
    answer.knows(model=row.get("model"))
    counts = {
        name: row.get(name)
        for name in ("turns", "input", "cache_read", "cache_write", "output", "reasoning", "estimated")
    }
    source = TABLE if row.get("cost_source") == TABLE else UNKNOWN
    block = {name: value for name, value in row.items() if name not in ("type", "model")}
    return answer.used_so_far(block, **counts, cost_usd=row.get("cost_usd"), cost_source=source)


OF_VENDORS = ", ".join(f"{vendor}: {' or '.join(keys)}" for vendor, keys in KEYS.items() if "-" not in vendor)
CLI = Cli(sys.executable, argv, read, model_flag="", outside=True, costs=True)
ABOUT = CliFacts(
    tried="2.68.0",
    login=f"set the key of its model's vendor ({OF_VENDORS}), or the one that api_key_env names; see docs/builtin.md",
    keys=list(dict.fromkeys(key for keys in KEYS.values() for key in keys)),
    needs={
        "": ["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "GOOGLE_GEMINI_BASE_URL"]
    },
    obeys=True,
)


class Builtin(ProgramAgent):
    """The built-in agent of one run; raises BrokenFile for an invalid table, Unavailable without its packages."""

    def __init__(self, settings: Settings) -> None:
        check(settings)
        if not installed():
            raise Unavailable(NO_EXTRA.format(python=sys.executable, extra=EXTRA))
        super().__init__(LOOP, CLI, settings, about=ABOUT.replace(keys=key_names(settings)))


def check(settings: Settings) -> None:
    """Raise BrokenFile, with the line, for an invalid table."""
    if not is_model(settings.model):
        what, remedy = "[agents.builtin]: model is not set", f"{no_model()}, or, for `ask`: --model VENDOR:NAME."
        if settings.model:
            what, remedy = f"invalid model '{settings.model}'", f"{no_model()}."
        raise fault(settings, "model", what, remedy)
    for key, value in (("path", "path"), ("args", "args"), ("format", "format")):
        if settings.table.get(key):
            raise fault(settings, key, f"'{value}' is for agents that are programs", "Take it out.")
    if not 0 <= settings.table.get("temperature", 0) <= 2:
        raise fault(settings, "temperature", "'temperature' must be from 0 to 2", "Correct it.")


def misplaced(name: str, settings: Settings) -> BrokenFile:
    """The fault of a key of its table in that of another agent."""
    key = next(key for key in LOOP_KEYS if key in settings.table)
    return fault(settings, key, f"'{key}' is a key of [agents.{LOOP}] alone", "Take it out.", name)


def fault(settings: Settings, key: str, what: str, remedy: str, name: str = LOOP) -> BrokenFile:
    """The fault of a key of a table, with the line."""
    table = f"agents.{name}"
    text = files.read_text(os.path.join(settings.project, settings.config_path)) or ""
    line = documents.line_of_key(text, table, key) or documents.line_of_key(text, table)
    return BrokenFile(settings.config_path, f"[{table}] {what}", line=line, remedy=remedy)
