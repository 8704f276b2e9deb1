"""Interrupting a call: that runs, that begins, and that waits; by whoever, from wherever."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from harness.builtin.sessions import _places
from harness.builtin.sessions.keys import session_keys
from harness.state.layout import Layout
from harness.stores import gate
from tests.agents.modelserver import Reply, serving
from tests.agents.wires import Exchange
from tests.builtin.sessions.talking import USER, agent, disk, log_of, rows, said, store, texts, until
from tests.builtin.talking import bodies, calling, steps
from tests.crash import in_child

OF = session_keys(USER, "s")


@pytest.mark.on_disk
def test_an_interrupt_reaches_the_call_that_runs_and_those_that_wait_and_none_later(tmp_path: Path) -> None:
    """By another process; each ends as interrupted, with what was said kept, and the next call sees the words."""
    hangs, go = threading.Event(), threading.Event()

    def brain(exchange: Exchange) -> Reply:
        if "hurry" not in exchange.text:
            hangs.set()
            go.wait(60)
        return Reply("an answer")

    with serving(brain) as server:

        async def interrupted() -> list[str]:
            async with agent(tmp_path, server) as one:
                work = [asyncio.ensure_future(one.call(f"{n}", session_id="s", user_id=USER)) for n in range(3)]
                await asyncio.to_thread(hangs.wait, 60)
                await until(lambda: len(gate.waiting(store(tmp_path), OF.gate)) == 3)
                assert in_child(lambda: gate.stop(store(tmp_path), OF.gate, "hurry up") - 3) == 0
                found = [(await one_).outcome for one_ in work]
                go.set()
                later = await one.call("next", session_id="s", user_id=USER)
                assert (later.outcome, later.text) == ("ok", "an answer")
                return found

        assert asyncio.run(interrupted()) == ["interrupted"] * 3
        longest = max((body["messages"] for body in bodies(server)), key=len)
        sent = [one["content"] for one in longest if one["role"] == "user"]
    assert [text for text in sent if not text.startswith("[")] == ["0", "1", "2", "next"]
    assert sum("They say: hurry up" in text for text in sent) == 3
    ended = log_of(tmp_path).calls.values()
    assert [one.outcome for one in ended] == ["interrupted"] * 3 + ["ok"]
    assert ["estimated" in one.usage for one in ended] == [True, False, False, False]  # what went out counts


def test_an_interrupt_of_a_call_that_begins_is_not_lost(tmp_path: Path) -> None:
    """Its place is taken, and nothing else has happened: it ends before a model is asked."""
    with serving(lambda _: Reply("an answer")) as server:

        async def begun() -> str:
            async with agent(tmp_path, server) as one:
                await one.call("first", session_id="s", user_id=USER)
                work = asyncio.ensure_future(one.call("second", session_id="s", user_id=USER))
                await asyncio.sleep(0)  # it has its place now
                assert one.interrupt("s", USER, "no") == 1
                return (await work).outcome

        assert asyncio.run(begun()) == "interrupted"
        assert len(bodies(server)) == 1
    assert "second" in texts(tmp_path)


@pytest.mark.on_disk
def test_an_interrupt_ends_a_command_and_keeps_what_it_printed(tmp_path: Path) -> None:
    """The result has the output so far; a call of the same answer that had not begun is told so."""
    here = Layout(str(tmp_path))
    brain = steps(calling("execute", {"command": "echo so far; touch begun; sleep 60"}))
    with serving(brain) as server:

        async def interrupted() -> str:
            async with agent(
                tmp_path,
                server,
                filesystem=lambda user, name: _places.of_folder(disk(tmp_path), here, session_keys(user, name)),
            ) as one:
                work = asyncio.ensure_future(one.call("run", session_id="s", user_id=USER))
                await until((tmp_path / "begun").exists)
                one.interrupt("s", USER)
                return (await work).outcome

        assert asyncio.run(interrupted()) == "interrupted"
    result = next(row["value"] for row in rows(tmp_path) if row.get("value", {}).get("role") == "tool")
    assert "so far" in result["text"] and "stopped" in result["text"]
    assert texts(tmp_path)[-1] == "[A person interrupted here.]"


def test_without_a_call_there_is_nothing_to_interrupt(tmp_path: Path) -> None:
    """And nothing is left that could end a later one."""
    with serving(lambda _: Reply("an answer")) as server:
        said(tmp_path, server, "first")
        assert gate.stop(store(tmp_path), OF.gate, "stop") == 0
        assert said(tmp_path, server, "second")[0].outcome == "ok"
