"""state.json: the session besides its log, and the number of the log's last row when it was written."""

from __future__ import annotations

import json
from collections.abc import Iterator

from harness.base import encoding, schema
from harness.base.errors import BrokenFile, UsageFault
from harness.base.record import Json, Record
from harness.base.schema import Whole
from harness.builtin.loop.turns import STATE as TOOL_STATE
from harness.builtin.sessions import keys as of_sessions
from harness.builtin.sessions.keys import SessionKeys, session_keys
from harness.mission.usage import Usage
from harness.stores import log as logs
from harness.stores.store import ABSENT, Store, Value

FORMAT = 2
MAX_POSITION = 2**62
WORDS_CHARS = 120  # of a message, in a list of sessions
NAMED = ("permissions", "plan", "todo")  # what tools keep that people ask for; the rest is `tools`
REMEDY = "Nothing was changed. `harness sessions repair SESSION --user USER` makes it from the log; or restore a copy."


class OtherFormat(BrokenFile):
    """A state that another version wrote."""


class AgentState(Record):
    """A session. `agent`: who answers in it; `part`: the position in the log where the part with its context begins; `rows`: the
    number of the last acknowledged row of the log; `calls` and `turns`: their numbers so far; `newest`: `ended`, `outcome` and
    `words` of the last call; `compactions`: their number, and `summary`: the last one; `kept`: state of the tools, by key;
    `used`: tokens and cost of all calls; `fence`: the number of the writer's place at the gate."""

    user: str
    session: str
    agent: str
    created: str
    part: int = 0
    rows: int = 0
    calls: int = 0
    turns: int = 0
    compactions: int = 0
    summary: str = ""
    kept: dict[str, Json] = {}
    used: dict[str, Json] = {}
    newest: dict[str, str] = {}
    fence: int = 0

    def to_json(self) -> str:
        """As the JSON of state.json."""
        return self.dumped().decode()

    @classmethod
    def from_json(cls, text: str) -> AgentState:
        """The state in such a JSON. Raises BrokenFile for what is none."""
        where = "The JSON of a state"
        row = encoding.parse_json(text.encode(), where)
        ids = [str(isinstance(row, dict) and row.get(name)) or "-" for name in ("user", "session")]
        return parse(Value(text.encode(), ABSENT), where, session_keys(*ids))

    def dumped(self) -> bytes:
        """As JSON."""
        row = {name: value for name, value in self.asdict().items() if name != "kept"}
        named = {name: self.kept[name] for name in NAMED if name in self.kept}
        rest = {name: value for name, value in self.kept.items() if name not in NAMED}
        return encoding.dump_json({"format": FORMAT, **row, **named, "tools": rest})


def newest(message: str, at: str, outcome: str) -> dict[str, str]:
    """Set what a list of sessions shows of the newest call."""
    return {"ended": at, "outcome": outcome, "words": " ".join(message.split())[:WORDS_CHARS]}


class _File(Record):
    """The file, as it is written."""

    format: int
    user: str
    session: str
    agent: str
    created: str
    part: Whole
    rows: Whole
    sum: str = ""  # the digest of that row, as earlier states have it: nothing reads it
    calls: Whole
    turns: Whole
    compactions: Whole
    summary: str
    used: Usage
    newest: dict[str, str]
    fence: Whole
    tools: dict[str, Json]
    permissions: dict[str, Json] = {}
    plan: dict[str, Json] = {}
    todo: list[Json] = []


def load(store: Store, keys: SessionKeys) -> tuple[AgentState | None, str]:
    """The state and its version; (None, ABSENT) if there is no session. Raises BrokenFile for an invalid state: torn, of a
    another format, of another session, or missing while its log exists."""
    known = store.get(keys.state)
    if known is None:
        if logs.exists(store, keys.log):
            raise BrokenFile(store.describe(keys.state), "it is gone, and the log beside it is not", remedy=REMEDY)
        return None, ABSENT
    return parse(known, store.describe(keys.state), keys), known.version


def parse(known: Value, path: str, keys: SessionKeys) -> AgentState:
    """The state in a value; raises BrokenFile."""
    try:
        row = json.loads(known.data)
    except (ValueError, RecursionError):
        raise BrokenFile(path, "it is torn, or no JSON", remedy=REMEDY) from None
    number = row.get("format") if isinstance(row, dict) else None
    if type(number) is int and number != FORMAT:
        fault = f"it has format {number}, and this harness reads format {FORMAT}"
        raise OtherFormat(path, fault, remedy="Nothing was changed. Use the version that wrote it.")
    found = schema.faults(row, "the state of a session", _File)
    if found:
        raise BrokenFile(path, "; ".join(found), remedy=REMEDY)
    if row["part"] > MAX_POSITION:
        raise BrokenFile(path, "it names a position that no log has", remedy=REMEDY)
    if (row["user"], row["session"]) != (keys.user, keys.session):
        raise BrokenFile(path, f"it is of session {row['session']} of {row['user']}", remedy=REMEDY)
    named = {name: row[name] for name in NAMED if name in row}
    if not TOOL_STATE.fits({**row["tools"], **named}):
        raise BrokenFile(path, "what its tools keep is of another kind", remedy=REMEDY)
    same = {name: row[name] for name in AgentState.fields if name != "kept"}
    return AgentState(**same, kept={**row["tools"], **named})


def agent_of(store: Store, keys: SessionKeys) -> str:
    """The agent of a session; "" if there is none, or if it cannot be read: loading it reports why."""
    known = store.get(keys.state)
    try:
        row = json.loads(known.data) if known else None
    except (ValueError, RecursionError):
        return ""
    return str(row.get("agent", "")) if isinstance(row, dict) else ""


def of_user(store: Store, user: str = "") -> list[AgentState]:
    """The states of the sessions of a user, or of all, the newest first: those that have a call and can be read, see `unread`."""
    found = [one for one in _listed(store, user) if isinstance(one, AgentState) and one.newest]
    return sorted(found, key=lambda one: one.newest["ended"], reverse=True)


def unread(store: Store, user: str = "") -> list[str]:
    """Why the states of other sessions of a user, or of all, cannot be read, a line each."""
    return [one for one in _listed(store, user) if isinstance(one, str)]


def _listed(store: Store, user: str) -> Iterator[AgentState | str]:
    for key in of_sessions.states(store, user):
        if known := store.get(key):
            try:
                row = json.loads(known.data)
                yield parse(known, store.describe(key), session_keys(str(row["user"]), str(row["session"])))
            except BrokenFile as broken:
                yield str(broken)
            except (UsageFault, ValueError, KeyError, TypeError, RecursionError):
                yield f"{store.describe(key)}: it is torn, or no state of a session. {REMEDY}"
