"""A call of a session: in its turn, whole on disk, and gone on with after a kill."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import BrokenFile
from harness.builtin.mcp import server_pool
from harness.builtin.sessions import log, turn_replay
from harness.builtin.sessions.keys import session_keys
from harness.commands import workspaces
from harness.state.layout import Layout
from harness.stores.disk import DiskStore
from harness.stores.gate import LostPlace
from harness.stores.store import Key
from tests.agents.modelserver import Handler, Reply, serving
from tests.agents.strict import strict
from tests.agents.wires import Exchange
from tests.builtin.mcp.serving import SERVED
from tests.builtin.sessions.talking import (
    SESSION,
    USER,
    agent,
    data,
    disk,
    echo,
    file_of,
    home,
    log_of,
    rows,
    said,
    state_of,
    store,
    texts,
    until,
)
from tests.builtin.talking import bodies, calling, steps
from tests.crash import TORTURE, end, start

BIG = {
    "command": sys.executable,
    "args": ["-S", "-E", SERVED],
    "env": {"THINGS": "70", "SAYS": "Look."},
    "confine": False,
}
ROUNDS = 100 if TORTURE else 4


def test_tools_that_were_loaded_are_there_in_the_next_process(tmp_path: Path) -> None:
    """The server's words are in the system text; every request can be made again byte for byte."""
    (tmp_path / "tools.json").write_text(json.dumps({"mcpServers": {"own": BIG}}))
    for one in workspaces.brought(Layout(str(tmp_path))):
        one.accept(Layout(str(tmp_path)))
    load, look = calling("find_tools", {"load": ["own_look"]}), calling("own_look", {"name": "NO"})
    with serving(steps(load, look)) as server:
        said(tmp_path, server, "hello")
        server_pool.shared().close()
        server.brain = lambda exchange: Reply("And again.")
        said(tmp_path, server, "again")
        server_pool.shared().close()
    offered = [[name for name in one.exchange.tools if "own_" in name] for one in server.seen if one.exchange]
    assert offered == [[], *[["own_look"]] * (len(offered) - 1)]
    assert server.seen[-1].exchange and "## own\n\n> Look." in server.seen[-1].exchange.text
    assert state_of(tmp_path).kept["loaded_tools"] == ["own_look"]
    made = [turn_replay.turn(store(tmp_path), session_keys(USER, SESSION), turn)[1] for turn in (1, 2, 3, 4)]
    assert len(offered) == 4 and all(one and one.equal for one in made)


def test_a_tool_that_a_vendor_refuses_is_named_with_the_way_to_do_without_it(tmp_path: Path) -> None:
    """What a schema lacks is added before the first request; what is refused all the same ends the call, with the remedy."""
    looks = {"type": "object", "properties": {"name": {"type": "array"}}}
    own = {**BIG, "env": {"SCHEMAS": json.dumps({"look": looks})}}
    refused = ("Invalid schema for function 'own_look': no.", "tools.{at}.custom.input_schema: no", "temperature: no")

    def talk(message: str, **more: Any) -> Any:
        (tmp_path / "tools.json").write_text(json.dumps({"mcpServers": {"own": own}, **more}))
        for one in workspaces.brought(Layout(str(tmp_path))):
            one.accept(Layout(str(tmp_path)))
        return said(tmp_path, server, message, session=f"{len(server.seen)}")[0]

    def trouble(handler: Handler, exchange: Exchange) -> bool:
        words = next((one for one in refused if one in exchange.text), "")
        if words and "own_look" in exchange.tools:
            error = {"message": words.format(at=[*exchange.tools].index("own_look")), "type": "invalid_request_error"}
            handler.send_json(400, {"error": error})
            return True
        return strict(handler, exchange)

    with serving(lambda _: Reply("Hello.")) as server:
        server.trouble = trouble
        assert talk("hello").outcome == "ok"
        for words in refused[:2]:
            reply = talk(words)
            assert reply.outcome == "config" and reply.reason.endswith(': "deny": ["own_look"])')
            assert reply.reason.startswith("status 400: ")
        assert talk(refused[2]).reason == "status 400: temperature: no"
        assert talk(refused[0], deny=["own_look"]).outcome == "ok"
        server_pool.shared().close()


@pytest.mark.on_disk
def test_two_processes_ask_in_one_session_at_once_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """Each call sees all that were before it; both answers are in the log, in the order of the queue."""
    with serving(echo) as server:
        said(tmp_path, server, "first")
        for number in range(ROUNDS):
            one, two = f"{number} a", f"{number} b"
            pids = [start(partial(said, tmp_path, server, text)) for text in (one, two)]
            assert [end(pid) for pid in pids] == [0, 0]
    expected = {f"{number} {who}" for number in range(ROUNDS) for who in ("a", "b")} | {"first"}
    assert sorted(texts(tmp_path)) == sorted(expected)
    found = log_of(tmp_path)
    assert [one.reply for one in found.calls.values()] == [f"answer {one}" for one in range(1, len(expected) + 1)]
    assert [one.outcome for one in found.calls.values()] == ["ok"] * len(expected)
    places = [row["place"] for row in rows(tmp_path) if "call" in row]
    assert places == sorted(places)


def test_calls_of_one_process_come_one_after_another_in_their_order(tmp_path: Path) -> None:
    """Tasks of one event loop, whatever the model takes."""
    with serving(echo) as server:

        async def at_once() -> list[str]:
            async with agent(tmp_path, server) as one:
                made = [one.call(f"message {number}", session_id="s", user_id=USER) for number in range(6)]
                return [reply.text for reply in await asyncio.gather(*made)]

        assert asyncio.run(at_once()) == [f"answer {number}" for number in range(1, 7)]
    assert texts(tmp_path) == [f"message {number}" for number in range(6)]


@pytest.mark.on_disk
def test_a_conversation_goes_on_after_a_kill_in_the_middle(tmp_path: Path) -> None:
    """kill -9 while the model thinks, after a call of a tool: the work is there, the cut call has its result, and it goes on."""
    hangs, go = threading.Event(), threading.Event()

    def brain(exchange: Exchange) -> Reply:
        if "carry on" in exchange.text:
            return Reply("Done.")
        if exchange.turns == 0:
            return calling("write_file", {"path": "a.txt", "content": "half"})
        hangs.set()
        go.wait(60)
        return Reply("too late")

    with serving(brain) as server:
        pid = start(lambda: said(tmp_path, server, "write two files"))
        assert hangs.wait(60)
        os.kill(pid, signal.SIGKILL)
        assert end(pid) == -signal.SIGKILL
        go.set()
        reply = said(tmp_path, server, "carry on")[0]
        sent = bodies(server)[-1]["messages"]
    assert (reply.text, reply.call) == ("Done.", 2)
    assert [one["role"] for one in sent] == ["system", "user", "assistant", "tool", "user"]
    assert file_of(tmp_path, "a.txt") == "half"
    cut, last = log_of(tmp_path).calls.values()
    assert (cut.outcome, last.outcome) == ("killed", "ok")
    in_flight = cut.usage["estimated"]  # the request that had no answer yet; that before it was counted by the vendor
    assert sum(cut.usage[name] for name in ("input", "cache_read", "output")) == 1050 + in_flight > 1550
    assert state_of(tmp_path).used["estimated"] == in_flight


@pytest.mark.on_disk
def test_a_call_that_a_kill_cut_off_is_told_as_one_whose_end_nobody_knows(tmp_path: Path) -> None:
    """It may have had effects; what had not begun is told so."""
    with serving(steps(calling("write_file", {"path": "a.txt", "content": "x"}))) as server:

        def dies() -> None:
            from harness.builtin.tools import _write_files

            _write_files.WRITE_TOOL.run = lambda bench, arguments: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment, return-value]  # in a fork that ends by it
            said(tmp_path, server, "write")

        assert end(start(dies)) == -signal.SIGKILL
        said(tmp_path, server, "what now?")
    results = [row["value"]["text"] for row in rows(tmp_path) if row.get("value", {}).get("role") == "tool"]
    assert len(results) == 1 and results[0].startswith("Nobody knows how it ended: the process ended")


def test_every_request_can_be_made_again_byte_for_byte(tmp_path: Path) -> None:
    """Also those of earlier processes, and after a kill."""
    with serving(steps(calling("list_files", {}))) as server:
        said(tmp_path, server, "look", "again")
        said(tmp_path, server, "and again")
        count = len(bodies(server))
    for number in range(1, count + 1):
        seen, made = turn_replay.turn(store(tmp_path), session_keys(USER, SESSION), number)
        assert made is not None and made.equal, seen
        assert seen.bytes == len(json.dumps({})) or seen.bytes > 100
    assert seen.turns == count


@pytest.mark.on_disk
def test_a_cancelled_call_leaves_a_conversation_that_goes_on(tmp_path: Path) -> None:
    """Its command is ended, its result is there, and its place in the queue is free."""
    brain = steps(calling("execute", {"command": "touch begun; sleep 60; touch never"}))
    with serving(lambda exchange: Reply("ok") if "and now" in exchange.text else brain(exchange)) as server:

        async def cancelled() -> None:
            from harness.builtin.sessions import _places
            from harness.state.layout import Layout

            here = Layout(str(tmp_path))
            async with agent(
                tmp_path,
                server,
                filesystem=lambda user, name: _places.of_folder(disk(tmp_path), here, session_keys(user, name)),
            ) as one:
                work = asyncio.ensure_future(one.call("run it", session_id="s", user_id=USER))
                await until((tmp_path / "begun").exists)
                begun = time.monotonic()
                work.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await work
                assert time.monotonic() - begun < 55
                assert (await one.call("and now?", session_id="s", user_id=USER)).text == "ok"

        asyncio.run(cancelled())
    assert [one.outcome for one in log_of(tmp_path).calls.values()] == [log.CANCELLED, "ok"]
    assert "stopped" in next(
        row["value"]["text"] for row in rows(tmp_path) if row.get("value", {}).get("role") == "tool"
    )
    assert not (tmp_path / "never").exists()


@pytest.mark.on_disk
def test_who_lost_its_place_writes_nothing_more(tmp_path: Path) -> None:
    """A person removed the gate; the log is as it was, and the next call goes on."""
    hangs, go = threading.Event(), threading.Event()

    def brain(exchange: Exchange) -> Reply:
        if "slow" in exchange.text and "next" not in exchange.text:
            hangs.set()
            go.wait(60)
        return Reply("an answer")

    with serving(brain) as server:

        async def fenced() -> bytes:
            async with agent(tmp_path, server) as one:
                work = asyncio.ensure_future(one.call("slow", session_id="s", user_id=USER))
                await asyncio.to_thread(hangs.wait, 60)
                (home(tmp_path) / "gate.json").unlink()
                before = (home(tmp_path) / "log.jsonl").read_bytes()
                go.set()
                with pytest.raises(LostPlace):
                    await work
                assert (home(tmp_path) / "log.jsonl").read_bytes() == before
                await one.call("next", session_id="s", user_id=USER)
                return before

        before = asyncio.run(fenced())
        assert (home(tmp_path) / "log.jsonl").read_bytes().startswith(before)
    assert [one.outcome for one in log_of(tmp_path).calls.values()] == ["killed", "ok"]


@pytest.mark.on_disk
@pytest.mark.parametrize("name", ["state.json", "log.jsonl"])
@pytest.mark.parametrize("fate", ["torn", "newer", "gone"])
def test_what_cannot_be_read_is_an_error_and_nothing_is_overwritten(tmp_path: Path, name: str, fate: str) -> None:
    """Never "no state": the file is named, and every byte stays."""
    with serving(echo) as server:
        said(tmp_path, server, "hello", "again")
        path = home(tmp_path) / name
        whole = path.read_bytes()
        if fate == "gone":
            path.rename(path.with_suffix(".away"))
        elif fate == "newer":
            path.write_bytes(
                whole.replace(b'"format":2', b'"format":3') if name == "state.json" else b"\x00\x01\n" + whole
            )
        else:
            path.write_bytes(
                whole[: len(whole) // 2] + (b"" if name == "state.json" else b"\n" + whole[len(whole) // 2 :])
            )
        before = {
            one: one.read_bytes() for one in home(tmp_path).iterdir() if one.is_file() and one.name != "gate.json"
        }
        with pytest.raises(BrokenFile) as fault:
            said(tmp_path, server, "more")
    assert fault.value.code == 65 and str(path) in str(fault.value) and "Nothing was changed" in str(fault.value)
    assert {
        one: one.read_bytes() for one in home(tmp_path).iterdir() if one.is_file() and one.name != "gate.json"
    } == before


@pytest.mark.on_disk
def test_a_torn_last_line_of_the_log_is_cut_off_and_it_goes_on(tmp_path: Path) -> None:
    """It is what a kill in the middle of a write leaves; nobody was told that it is kept."""
    with serving(echo) as server:
        said(tmp_path, server, "hello")
        path = home(tmp_path) / "log.jsonl"
        whole = path.read_bytes()
        path.write_bytes(whole + b'{"put":"12')
        assert said(tmp_path, server, "more")[0].text == "answer 2"
    assert path.read_bytes().startswith(whole + b'{"call":2')


@pytest.mark.on_disk
def test_a_full_disk_ends_the_call_with_nothing_torn(tmp_path: Path) -> None:
    """The error of the machine; what was there is there, and with room again the conversation goes on."""
    import resource

    with serving(echo) as server:
        said(tmp_path, server, "hello")
        size = len(data(tmp_path))

        def full() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 300, size + 300))
            said(tmp_path, server, "more " * 100)

        from tests.crash import RAISED

        assert end(start(full)) == RAISED
        assert (home(tmp_path) / "log.jsonl").read_bytes().endswith(b"\n")
        assert said(tmp_path, server, "and now?")[0].outcome == "ok"
    assert state_of(tmp_path).session == SESSION


def test_a_failing_model_is_an_outcome_and_the_message_stays(tmp_path: Path) -> None:
    """The next call says it again, in the same conversation."""
    with serving(echo) as server:
        server.fail("auth", 1)
        failed = said(tmp_path, server, "hello")[0]
        assert (failed.outcome, failed.text) == ("auth", "")
        assert said(tmp_path, server, "again")[0].text == "answer 1"
    assert texts(tmp_path) == ["hello", "again"]


@pytest.mark.on_disk
def test_what_cannot_be_written_does_not_go_out(tmp_path: Path) -> None:
    """A disk that is full where the request is recorded is an error of the machine, and none of the model; nothing was sent."""
    full = [False]

    class Disk(DiskStore):
        """Full where that is said."""

        def append(self, key: Key, data: bytes, at: int) -> int:
            """As the store, or as a full disk."""
            if full[0] and b'"turn"' in data:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().append(key, data, at)

    known = Disk(disk(tmp_path).root)
    with serving(echo) as server:
        said(tmp_path, server, "hello", store=known)
        full[0] = True
        with pytest.raises(OSError, match="No space left"):
            said(tmp_path, server, "more", store=known)
        assert len(bodies(server)) == 1
        full[0] = False
        assert said(tmp_path, server, "and now?", store=known)[0].text == "answer 2"
