"""config.toml: optional, a closed set of keys. Every key stands in docs/contract.md; a test holds the two together."""

from __future__ import annotations

import re

from harness.base import schema
from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.store import documents, files
from harness.store.layout import Layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TOP = {
    "agent": "any",
    "trust": "str",
    "mcp": "bool",
    "check_seconds": "int",
    "sweep_seconds": "int",
    "curate_after": "int",
}
TABLES = {"limits": "dict", "roles": "dict", "agents": "dict", "prices": "dict"}
LIMITS = {
    "max_runs": "int",
    "max_hours": "number",
    "stall_after": "int",
    "max_cost_usd": "number",
    "max_tokens": "int",
    "max_log_mb": "int",
}
ROLE = {"agent": "any", "model": "str", "minutes": "number", "idle_minutes": "number"}
AGENT = {"path": "str", "args": "strs", "env": "texts", "model": "str", "command": "strs", "format": "str"}
PRICE = {"input": "number", "output": "number"}
CACHE_PRICE = {"cache_read": "number", "cache_write": "number"}
ENDLESS = float("inf")
MOST = 1e15
TRUSTS = ("workspace", "full")


class Config(Record):
    """What config.toml says, with its defaults. Times in seconds where the name says so; None means no limit.
    `prices`: USD per million tokens, by model."""

    agent: list[str] = []
    trust: str = ""
    mcp: bool = False
    check_seconds: int = 600
    sweep_seconds: int = 300
    curate_after: int = 20
    max_runs: int = 200
    max_hours: float = 48
    stall_after: int = 8
    max_cost_usd: float | None = None
    max_tokens: int | None = None
    max_log_mb: int = 64
    roles: dict[str, dict[str, Any]] = {}
    agents: dict[str, dict[str, Any]] = {}
    prices: dict[str, dict[str, float]] = {}


def load(layout: Layout) -> Config:
    """The mission's configuration; the defaults where there is no file; BrokenFile names file, line and remedy."""
    text = files.read_text(layout.config)
    if text is None:
        return Config()

    def parsed(text: str) -> dict[str, Any]:
        return parse(text, layout.config).asdict()

    return Config(**documents.cached(layout.cache, "config", text, parsed, Config.fields))


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
        line = line_of(text, found[0])
        raise BrokenFile(path, "; ".join(found), line=line, remedy="The keys stand in docs/contract.md.")
    return _config(value)


def _faults(value: dict[str, Any]) -> list[str]:
    found = schema.faults(value, "config.toml", {}, {**TOP, **TABLES})
    if found:
        return found
    tables = {"[limits]": (value.get("limits", {}), LIMITS)}
    for kind, keys in (("roles", ROLE), ("agents", AGENT)):
        tables |= {f"[{kind}.{name}]": (table, keys) for name, table in value.get(kind, {}).items()}
    for where, (table, keys) in tables.items():
        found += schema.faults(table, where, {}, keys)
    found += _price_faults(value.get("prices", {}))
    if found:
        return found
    if value.get("trust", "full") not in TRUSTS:
        found.append(f"'trust' must be one of {', '.join(TRUSTS)}")
    for where, table in {"config.toml": value, **{where: table for where, (table, _) in tables.items()}}.items():
        if not schema.fits([table.get("agent", "")], "strs") and not schema.fits(table["agent"], "strs"):
            found.append(f"{where}: 'agent' must be a name or a list of names")
        below = [key for key, number in table.items() if schema.fits(number, "number") and not 0 < number < MOST]
        found += [f"{where}: '{key}' must be above 0, and a number with an end" for key in below]
    return found


def _price_faults(prices: dict[str, Any]) -> list[str]:
    found: list[str] = []
    for model, table in prices.items():
        where = f"[prices.{model}]"
        wrong = schema.faults(table, where, PRICE, CACHE_PRICE)
        odd = [key for key, price in ({} if wrong else table).items() if not 0 <= price < ENDLESS]
        found += wrong + [f"{where}: '{key}' must be a price, 0 or above" for key in odd]
    return found


def line_of(text: str, fault: str) -> int | None:
    """The 1-based line of the key that a fault names (`[table]: 'key' …`), in its table; where it stands elsewhere
    (`a.b = 1`), its first line; None where it stands nowhere."""
    where, named = re.match(r"\[(.+?)\]", fault), re.search(r"'([^']+)'", fault)
    table = where[1] if where else ""
    word = named[1] if named and " lacks " not in fault else table.partition(".")[2] or table
    inside, first = "", None
    for number, line in enumerate(text.split("\n"), start=1):
        if header := re.match(r"\s*\[+([^\]]+)\]", line):
            inside = re.sub(r"[\"'\s]", "", header[1])
        if re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", line.partition("#")[0]):
            if inside in (table, word) or inside.startswith(word + "."):
                return number
            first = first or number
    return first


def _config(value: dict[str, Any]) -> Config:
    flat = {key: value[key] for key in TOP if key in value} | value.get("limits", {})
    flat["agent"] = names(value.get("agent"))
    return Config(**flat, **{name: value.get(name, {}) for name in ("roles", "agents", "prices")})


def names(agent: object) -> list[str]:
    """One agent's name or a list of them, as a list."""
    if not agent:
        return []
    return [agent] if isinstance(agent, str) else [str(name) for name in agent] if isinstance(agent, list) else []
