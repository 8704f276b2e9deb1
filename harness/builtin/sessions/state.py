"""state.json: what a session is besides its log, with a version. It is a checkpoint: what the log has behind it counts on top."""

from __future__ import annotations

import json
from typing import Any

from harness.base import encoding, schema
from harness.base.errors import BrokenFile, UsageFault
from harness.base.record import Record
from harness.base.schema import Whole
from harness.builtin.loop.turns import STATE as TOOL_STATE
from harness.builtin.sessions.store import Item, Keys, Store, keys
from harness.mission.usage import Usage

FORMAT = 1
LONGEST_LOG = 2**62  # bytes
NAMED = ("permissions", "plan", "todo")  # what tools keep that people ask for; the rest is `tools`
REMEDY = "Nothing was changed. Restore it from a copy, or move the session's folder away: the next call then begins a new one."


class AgentState(Record):
    """A session. `agent`: who speaks in it; `part`: the byte of the log where the part with its context begins; `length`: how far
    the log is in this; `calls` and `turns`: how many there were; `compactions`: how often it was summed up; `summary`: what came
    of that last; `kept`: what tools keep, by their keys; `used`: tokens and cost of all calls; `fence`: the place in the queue of
    whoever wrote this."""

    user: str
    session: str
    agent: str
    created: str
    part: int = 0
    length: int = 0
    calls: int = 0
    turns: int = 0
    compactions: int = 0
    summary: str = ""
    kept: dict[str, Any] = {}
    used: dict[str, Any] = {}
    fence: int = 0

    def dumped(self) -> bytes:
        """As JSON, with its format."""
        row = {name: value for name, value in self.asdict().items() if name != "kept"}
        named = {name: self.kept[name] for name in NAMED if name in self.kept}
        rest = {name: value for name, value in self.kept.items() if name not in NAMED}
        return encoding.dump_json({"format": FORMAT, **row, **named, "tools": rest})


class _File(Record):
    """The file, as it is written."""

    format: int
    user: str
    session: str
    agent: str
    created: str
    part: Whole
    length: Whole
    calls: Whole
    turns: Whole
    compactions: Whole
    summary: str
    used: Usage
    fence: Whole
    tools: dict[str, Any]
    permissions: dict[str, Any] = {}
    plan: dict[str, Any] = {}
    todo: list[Any] = []


def load(store: Store, of: Keys) -> tuple[AgentState | None, str]:
    """The state and its version; (None, "") where there is no session. Raises BrokenFile for anything that is no state of this
    session: torn, of a newer version, of another session, or gone while its log is there."""
    item = store.get(of.state)
    if item is None:
        if store.length(of.log):
            raise BrokenFile(store.where(of.state), "it is gone, and the log beside it is not", remedy=REMEDY)
        return None, ""
    return parse(item, store.where(of.state), of), item.version


def parse(item: Item, path: str, of: Keys) -> AgentState:
    """The state in a file; raises BrokenFile."""
    try:
        row = json.loads(item.data)
    except (ValueError, RecursionError):
        raise BrokenFile(path, "it is torn, or no JSON", remedy=REMEDY) from None
    number = row.get("format") if isinstance(row, dict) else None
    if type(number) is int and number > FORMAT:
        newer = f"it has format {number}, of a newer harness; this one knows {FORMAT}"
        raise BrokenFile(path, newer, remedy="Nothing was changed. Use the newer harness.")
    found = schema.faults(row, "the state of a session", _File)
    if found or number != FORMAT:
        raise BrokenFile(path, "; ".join(found) or "it has no format", remedy=REMEDY)
    if max(row["part"], row["length"]) > LONGEST_LOG:
        raise BrokenFile(path, "it names a byte that no log has", remedy=REMEDY)
    if (row["user"], row["session"]) != (of.user, of.session):
        raise BrokenFile(path, f"it is of session {row['session']} of {row['user']}", remedy=REMEDY)
    named = {name: row[name] for name in NAMED if name in row}
    if not TOOL_STATE.fits({**row["tools"], **named}):
        raise BrokenFile(path, "what its tools keep is of another kind", remedy=REMEDY)
    same = {name: row[name] for name in AgentState.fields if name != "kept"}
    return AgentState(**same, kept={**row["tools"], **named})


def named(item: Item) -> Keys | None:
    """The keys of the session that a state says it is of; None where it cannot be read."""
    try:
        row = json.loads(item.data)
        return keys(str(row["user"]), str(row["session"]))
    except (ValueError, RecursionError, KeyError, TypeError, UsageFault):
        return None


def agent_of(item: Item) -> str:
    """Who speaks in the session of a state; "" where it cannot be read."""
    try:
        row = json.loads(item.data)
    except (ValueError, RecursionError):
        return ""
    return str(row.get("agent", "")) if isinstance(row, dict) else ""
