"""The log of a session: read from its newest part, written by whoever has the place, durable together with others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import BrokenFile, VersionConflict
from harness.builtin.loop import message_text, turns
from harness.builtin.sessions import _session, log, recall, rule_changes
from harness.builtin.sessions.keys import session_keys
from harness.builtin.sessions.log import CallRecord, LogWriter
from harness.builtin.sessions.state import AgentState
from harness.builtin.tools.tool import ALWAYS
from harness.mission.usage import Usage
from harness.stores import gate
from harness.stores.disk import DiskStore
from harness.stores.memory import MemoryStore
from harness.stores.store import ANY, Store
from harness.workspace.rules import ToolRules
from tests.agents.modelserver import Reply as Answer
from tests.agents.modelserver import serving
from tests.agents.wires import Exchange
from tests.builtin.sessions import talking
from tests.builtin.sessions.talking import SESSION, USER, home, said
from tests.builtin.talking import calling
from tests.crash import TORTURE

OF = session_keys("alice", "s")
STATE = AgentState(user="alice", session="s", agent="helper", created="")

pytestmark = pytest.mark.on_disk


@pytest.fixture(params=["memory", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Each store, empty."""
    return MemoryStore() if request.param == "memory" else DiskStore(str(tmp_path / "sessions"))


def written(store: Store) -> tuple[LogWriter, AgentState]:
    """A log with two parts and a call in each, and the state that has seen it."""
    writer, begins = LogWriter(store, OF.log, 0, 0), 0
    for number in (1, 2):
        begins = writer.part(number, {"calls": number - 1, "turns": number - 1}, [])
        writer.add({"call": number, "at": "then", "agent": "helper", "message": f"message {number}", "place": number})
        writer.add(
            log.result_row(CallRecord(call=number, outcome="ok", reply=f"reply {number}", turns=[number, number]))
        )
    writer.write()
    state = STATE.replace(part=begins, rows=writer.rows)
    store.put(OF.state, state.dumped(), ANY)
    return writer, state


def test_only_the_newest_part_is_read(store: Store) -> None:
    """From the position that the state has; all of it where that is asked."""
    writer, state = written(store)
    found = log.read(store, OF, state)
    assert ([*found.calls], found.parts, found.end, found.rows) == ([2], 2, writer.end, writer.rows)
    assert [one.reply for one in log.whole(store, OF).calls.values()] == ["reply 1", "reply 2"]


def test_a_log_without_the_row_that_the_state_names_is_broken(store: Store) -> None:
    """So is one that has no part where the state says."""
    _, state = written(store)
    for wrong in (state.replace(rows=7), state.replace(part=10_000)):
        with pytest.raises(BrokenFile, match=r"the last one that .* has seen"):
            log.read(store, OF, wrong)


def test_nothing_is_written_once_the_place_is_lost(store: Store) -> None:
    """Neither by whoever comes too late, nor by a writer that does not know the end."""
    writer, _ = written(store)
    late = LogWriter(store, OF.log, writer.end, writer.rows)
    writer.place = gate.enter(store, OF.gate)
    writer.add({"call": 3, "at": "then", "agent": "helper", "message": "3", "place": 3})
    store.delete(OF.gate, ANY)
    with pytest.raises(gate.LostPlace):
        writer.write()
    writer.place = None
    writer.write()
    late.add({"call": 4, "at": "then", "agent": "helper", "message": "4", "place": 4})
    with pytest.raises(VersionConflict):
        late.write()
    assert [*log.whole(store, OF).calls] == [1, 2, 3]


def test_what_all_calls_used_adds_up() -> None:
    """Unknown counts are none."""
    one = log.added({}, Usage(turns=1, input=100, output=5))
    two = log.added(one, Usage(turns=2, input=50, cost_usd=0.25))
    assert two == {"turns": 3, "input": 150, "output": 5, "cost_usd": 0.25}


NEW: list[Any] = [..., None, -1, "x", [], {"a": 5}]


def spots(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The way to each value in a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(spot for key, one in inner for spot in spots(one, (*path, key)))]


def damaged(row: dict[str, Any], path: tuple[str | int, ...], new: object) -> dict[str, Any]:
    """The row with another value there; without it where that is `...`."""
    made = at = json.loads(json.dumps(row))
    for key in path[:-1]:
        at = at[key]
    if new is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = new
    return made  # type: ignore[no-any-return]  # it is what JSON has


def test_a_damaged_row_is_65_with_its_line_whatever_is_damaged(tmp_path: Path) -> None:
    """A value of another kind or none, in each place of each row of a conversation with tools, rules and a plan; in the suite two
    of six values for each place."""

    def brain(exchange: Exchange) -> Answer:
        todo = {"todos": [{"content": "a", "status": "pending"}]}
        uses = [("todo_write", todo), ("write_file", {"path": "a", "content": "x"}), ("plan_enter", {})]
        return calling(*uses[len(exchange.results)]) if len(exchange.results) < len(uses) else Answer("done")

    with serving(brain) as server:
        said(tmp_path, server, "go", "on", rules=ToolRules(ask=["write_file"]), ask=lambda question, stopped: ALWAYS)
    of, known, path = session_keys(USER, SESSION), talking.store(tmp_path), home(tmp_path) / "log.jsonl"
    lines, found = path.read_bytes().split(b"\n")[:-1], set[str]()
    for number, line in enumerate(lines):
        row = json.loads(line)
        for at, spot in enumerate([spot for spot in spots(row) if 0 < len(spot) < 4], number):
            for new in NEW if TORTURE else NEW[at % 3 :: 3]:
                made = damaged(row, spot, new)
                if spot[0] == "value" and NEW.index(new) % 2:  # as if it had been written so
                    made["put"] = turns.digest_of(made["value"])
                path.write_bytes(b"\n".join([*lines[:number], json.dumps(made).encode(), *lines[number + 1 :], b""]))
                if len(spot) == 2 and spot[0] == "value":
                    recall.search(known, USER, "go", 5)
                try:
                    _session.load(known, of, "")
                    rule_changes.known(known, of)
                    whole = log.whole(known, of)
                    assert [message_text.estimate(whole.turns.request(one), "") for one in whole.turns.turns]
                    assert [one.turns[1] for one in whole.calls.values() if one.turns]
                except BrokenFile as fault:
                    assert fault.line and fault.path == str(path), fault
                    found.add(next(iter(row)))
    assert {"part", "put", "turn", "answer", "call", "ended"} <= found


@pytest.mark.parametrize(
    "fault",
    [
        '"used":{"turns":"x"}',
        '"part":1000000000000000000000000000000',
        '"part":-1',
        '"todo":[5]',
        '"permissions":{"allow":["write_file({a"]}',
    ],
)
def test_a_damaged_state_is_65(tmp_path: Path, fault: str) -> None:
    """Also deep in what tools keep."""
    with serving(talking.echo) as server:
        said(tmp_path, server, "go")
    path, name = home(tmp_path) / "state.json", fault.partition(":")[0].strip('"')
    row = json.loads(path.read_bytes())
    path.write_text(json.dumps({**row, name: json.loads("{" + fault + "}")[name]}))
    with pytest.raises(BrokenFile, match=r"state\.json"):
        _session.load(talking.store(tmp_path), session_keys(USER, SESSION), "")
