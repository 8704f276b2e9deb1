"""The log of a session: read from its newest part, written by whoever has the place, durable together with others."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import BrokenFile
from harness.builtin.loop import message_text, turns
from harness.builtin.sessions import _session, log, recall, rule_changes
from harness.builtin.sessions._disk_store import FileStore
from harness.builtin.sessions.log import CallRecord, LogWriter, Syncs
from harness.builtin.sessions.state import AgentState
from harness.builtin.sessions.store import keys
from harness.builtin.tools.tool import ALWAYS
from harness.mission.usage import Usage
from harness.workspace.rules import ToolRules
from tests.agents.modelserver import Reply as Answer
from tests.agents.modelserver import serving
from tests.agents.wires import Exchange
from tests.builtin.sessions import talking
from tests.builtin.sessions.talking import SESSION, USER, home, said
from tests.builtin.talking import calling

OF = keys("alice", "s")
STATE = AgentState(user="alice", session="s", agent="helper", created="")


def written(folder: Path) -> tuple[FileStore, LogWriter]:
    """A log with two parts and a call in each."""
    store = FileStore(str(folder))
    writer = LogWriter(store, OF.log, 0)
    for number in (1, 2):
        begins = writer.part(number, {"calls": number - 1, "turns": number - 1}, [])
        writer.add({"call": number, "at": "then", "agent": "helper", "message": f"message {number}", "place": number})
        writer.add(
            log.result_row(CallRecord(call=number, outcome="ok", reply=f"reply {number}", turns=[number, number]))
        )
    writer.write()
    assert begins > 0
    return store, writer


def test_only_the_newest_part_is_read(tmp_path: Path) -> None:
    """From the byte that the state has; all of it where that is asked."""
    store, writer = written(tmp_path)
    begins = store.tail(OF.log).index(b'{"part":2')
    found = log.read(store, OF, STATE.replace(part=begins, length=begins))
    assert ([*found.calls], found.parts, found.length) == ([2], 2, writer.length)
    assert [one.reply for one in log.whole(store, OF).calls.values()] == ["reply 1", "reply 2"]


def test_a_log_that_ends_before_what_the_state_has_seen_is_broken(tmp_path: Path) -> None:
    """So is one that has no part where the state says, and a line that is none, by its number in the file."""
    store, writer = written(tmp_path)
    with pytest.raises(BrokenFile, match="has seen 99999"):
        log.read(store, OF, STATE.replace(length=99999))
    whole = Path(store.where(OF.log))
    begins = whole.read_bytes().index(b'{"part":2')
    whole.write_bytes(whole.read_bytes() + b"no row\n")
    with pytest.raises(BrokenFile, match="line 7") as fault:
        log.read(store, OF, STATE.replace(part=begins))
    assert fault.value.line == 7
    with pytest.raises(BrokenFile):
        log.read(store, OF, STATE.replace(part=writer.length + 7))


def test_appends_of_many_are_made_durable_together(tmp_path: Path) -> None:
    """A failure is told to whoever waits for that file, and to no other."""

    class Watched(FileStore):
        """Counts, and fails for one."""

        done: list[str] = []

        def sync(self, key: str) -> None:
            """As the store, or as a broken disk."""
            self.done.append(key)
            if key.startswith("bad"):
                raise OSError(5, "broken")
            super().sync(key)

    store = Watched(str(tmp_path))
    for name in ("one", "two"):
        store.append(f"u/{name}/log", b"x\n")

    async def synced() -> list[object]:
        syncs = Syncs(store)
        names = ["u/one/log", "u/two/log", "bad/log", "u/one/log"]
        return list(await asyncio.gather(*(syncs.sync(name) for name in names), return_exceptions=True))

    one, two, bad, again = asyncio.run(synced())
    assert (one, two, again) == (None, None, None) and isinstance(bad, OSError)
    assert sorted(store.done) == ["bad/log", "u/one/log", "u/two/log"]


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
    """A value of another kind or none, in each place of each row of a conversation with tools, rules and a plan."""

    def brain(exchange: Exchange) -> Answer:
        todo = {"todos": [{"content": "a", "status": "pending"}]}
        uses = [("todo_write", todo), ("write_file", {"path": "a", "content": "x"}), ("plan_enter", {})]
        return calling(*uses[len(exchange.results)]) if len(exchange.results) < len(uses) else Answer("done")

    with serving(brain) as server:
        said(tmp_path, server, "go", "on", rules=ToolRules(ask=["write_file"]), ask=lambda question, stopped: ALWAYS)
    of, known, path = keys(USER, SESSION), talking.store(tmp_path), home(tmp_path) / "log.jsonl"
    lines, found = path.read_bytes().split(b"\n")[:-1], set[str]()
    for number, line in enumerate(lines):
        row = json.loads(line)
        for spot in [spot for spot in spots(row) if 0 < len(spot) < 4]:
            for new in NEW:
                made = damaged(row, spot, new)
                if spot[0] == "value" and NEW.index(new) % 2:  # as if it had been written so
                    made["put"] = turns.digest_of(made["value"])
                path.write_bytes(b"\n".join([*lines[:number], json.dumps(made).encode(), *lines[number + 1 :], b""]))
                if len(spot) == 2 and spot[0] == "value":
                    recall.search(known, of, "go", 5)
                try:
                    _session.load(known, of, "")
                    rule_changes.known(known, of)
                    whole = log.whole(known, of)
                    assert [message_text.estimate(whole.turns.request(one), "") for one in whole.turns.turns]
                    assert [one.turns[1] for one in whole.calls.values() if one.turns]
                except BrokenFile as fault:
                    assert (fault.line or "it ends at byte" in fault.fault) and fault.path == str(path), fault
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
        _session.load(talking.store(tmp_path), keys(USER, SESSION), "")
