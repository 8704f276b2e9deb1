"""config.toml: optional, a closed set of keys. Every key stands in docs/contract.md; a test holds the two together."""

from __future__ import annotations

import re

from harness import documents, files, shape
from harness.errors import BrokenFile
from harness.layout import Layout
from harness.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TOP = {"agent": "any", "trust": "str", "check_seconds": "int", "sweep_seconds": "int", "curate_after": "int"}
TABLES = {"limits": "dict", "roles": "dict", "agents": "dict"}
LIMITS = {
    "max_runs": "int",
    "max_hours": "number",
    "stall_after": "int",
    "max_cost_usd": "number",
    "max_tokens": "int",
}
ROLE = {"agent": "any", "model": "str", "minutes": "number", "idle_minutes": "number"}
AGENT = {"path": "str", "args": "strs", "env": "dict", "model": "str", "command": "strs", "format": "str"}
TRUSTS = ("workspace", "full")


class Config(Record):
    """What config.toml says, with its defaults. Times in seconds where the name says so; None means no limit."""

    agent: list[str] = []
    trust: str = ""
    check_seconds: int = 600
    sweep_seconds: int = 300
    curate_after: int = 20
    max_runs: int = 200
    max_hours: float = 48
    stall_after: int = 8
    max_cost_usd: float | None = None
    max_tokens: int | None = None
    roles: dict[str, dict[str, Any]] = {}
    agents: dict[str, dict[str, Any]] = {}


def load(layout: Layout) -> Config:
    """The mission's configuration; the defaults where there is no file; BrokenFile names file, line and remedy."""
    text = files.read_text(layout.config)
    if text is None:
        return Config()

    def parsed(text: str) -> dict[str, Any]:
        return parse(text, layout.config).asdict()

    return Config(**documents.cached(layout.cache, "config", text, parsed))


def parse(text: str, path: str) -> Config:
    """The configuration in a TOML text; raises BrokenFile."""
    import tomllib  # 10 ms: only when the file has changed

    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        place = re.search(r"line (\d+)", str(fault))
        bad = int(place[1]) if place else text.count("\n") + 1
        raise BrokenFile(path, f"not TOML ({fault})", line=bad, remedy="Mend that line.") from None
    found = _faults(value)
    if found:
        line = _line_of(text, found[0])
        raise BrokenFile(path, "; ".join(found), line=line, remedy="The keys stand in docs/contract.md.")
    return _config(value)


def _faults(value: dict[str, Any]) -> list[str]:
    found = shape.faults(value, "config.toml", {}, {**TOP, **TABLES})
    if found:
        return found
    found += shape.faults(value.get("limits", {}), "[limits]", {}, LIMITS)
    for kind, keys in (("roles", ROLE), ("agents", AGENT)):
        for name, table in value.get(kind, {}).items():
            found += shape.faults(table, f"[{kind}.{name}]", {}, keys)
    if value.get("trust", "full") not in TRUSTS:
        found.append(f"'trust' must be one of {', '.join(TRUSTS)}")
    agents = [value.get("agent", "")] + [table.get("agent", "") for table in value.get("roles", {}).values()]
    if not all(isinstance(agent, str) or shape.fits(agent, "strs") for agent in agents):
        found.append("'agent' must be a name or a list of names")
    numbers = {**value, **value.get("limits", {})}
    found += [
        f"'{key}' must be above 0" for key, number in numbers.items() if shape.fits(number, "number") and number <= 0
    ]
    return found


def _line_of(text: str, fault: str) -> int | None:
    named = re.search(r"'([^']+)'", fault)
    if named:
        for number, line in enumerate(text.split("\n"), start=1):
            if re.match(rf'\s*\[*"?{re.escape(named[1])}\b', line):
                return number
    return None


def _config(value: dict[str, Any]) -> Config:
    flat = {key: value[key] for key in TOP if key in value} | value.get("limits", {})
    flat["agent"] = names(value.get("agent"))
    return Config(**flat, roles=value.get("roles", {}), agents=value.get("agents", {}))


def names(agent: object) -> list[str]:
    """One agent's name or a list of them, as a list."""
    if not agent:
        return []
    return [agent] if isinstance(agent, str) else [str(name) for name in agent] if isinstance(agent, list) else []
