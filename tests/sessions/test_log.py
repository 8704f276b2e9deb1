"""The log of a session: read from its newest part, written by whoever has the place, durable together with others."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.model.usage import Usage
from harness.sessions import log
from harness.sessions.log import Result, Syncs, Writer
from harness.sessions.on_files import FileStore
from harness.sessions.state import AgentState
from harness.sessions.store import keys

OF = keys("alice", "s")
STATE = AgentState(user="alice", session="s", agent="helper", created="")


def written(folder: Path) -> tuple[FileStore, Writer]:
    """A log with two parts and a call in each."""
    store = FileStore(str(folder))
    writer = Writer(store, OF.log, 0)
    for number in (1, 2):
        begins = writer.part(number, {"calls": number - 1, "turns": number - 1}, [])
        writer.add({"call": number, "at": "then", "agent": "helper", "message": f"message {number}", "place": number})
        writer.add(log.result_row(Result(call=number, outcome="ok", reply=f"reply {number}", turns=[number, number])))
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
