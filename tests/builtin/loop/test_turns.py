"""Every request is rebuilt byte for byte from turns.jsonl, and the file grows by what is new."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from pathlib import Path

import pytest

from harness.base.encoding import digest
from harness.base.errors import BrokenFile
from harness.builtin.loop import turns
from tests.agents.modelserver import Reply
from tests.builtin.talking import WIRES, Bench, address, calling, serving, slow, steps


@pytest.mark.parametrize("wire", WIRES)
def test_every_request_is_rebuilt_as_it_was_received(tmp_path: Path, wire: str) -> None:
    """Byte for byte, from the file alone, by a wire that has not seen the conversation."""
    from harness.builtin.loop.model_client import ModelClient

    bench = Bench(tmp_path, wire=wire)
    (bench.folder / "a.txt").write_text("some text\nmäß\n")
    with serving(steps("echo 'ä \"b\"'", calling("read_file", {"path": "a.txt"}), calling("fly", {}))) as server:
        talk = bench.talk(address(server, wire))
        received = [one.body for one in server.seen if one.body]

    async def rebuilt() -> list[bytes]:
        made = []
        for number in sorted(talk.log.turns):
            wire_now = ModelClient(talk.log.request(number).parameters, "another key", 5.0)
            sent, body = await wire_now.body(talk.log.request(number))
            assert (sent.digest, sent.bytes) == (talk.log.turns[number].row["digest"], len(body))
            made.append(body)
            await wire_now.close()
        return made

    assert len(received) == 4
    assert asyncio.run(rebuilt()) == received
    assert [turn.row["digest"] for turn in talk.log.turns.values()] == [digest(body) for body in received]


def test_a_hundred_turns_take_less_than_twice_their_last_request(tmp_path: Path) -> None:
    """A request shares all but what is new with the one before it."""
    bench = Bench(tmp_path)
    (bench.folder / "a.txt").write_text("a line of a file as a program has it\n" * 20)
    with serving(steps(*[calling("read_file", {"path": "a.txt"})] * 99)) as server:
        talk = bench.talk(f"{server.url}/v1")
        last = len(server.seen[-1].body)
    size = (talk.folder / "turns.jsonl").stat().st_size
    assert max(talk.log.turns) == 100
    assert size < 2 * last
    assert all(len(turn.context) - turn.keeps <= 2 for turn in talk.log.turns.values())


def test_the_stable_part_comes_first_and_stays(tmp_path: Path) -> None:
    """Each request begins with the messages of the one before it, and tools, system and parameters are the same: what a prompt
    cache needs."""
    bench = Bench(tmp_path)
    with serving(steps("echo a", "echo b")) as server:
        bench.talk(f"{server.url}/v1")
        found = [json.loads(one.body) for one in server.seen]
    for before, after in pairwise(found):
        assert after["messages"][: len(before["messages"])] == before["messages"]
        assert {**after, "messages": 0} == {**before, "messages": 0}


@slow
def test_vendors_are_told_what_to_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anthropic by breakpoints behind tools, system and the conversation; OpenAI, at its own address, by a key for the same
    prefix."""
    for wire in ("messages", "responses"):
        bench = Bench(tmp_path, wire=wire)
        with serving(steps("echo a")) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", address(server, "responses"))  # as its own
            bench.talk(address(server, wire) if wire == "messages" else "", run=f"{wire}-1")
            body = json.loads(server.seen[-1].body)
        if wire == "messages":
            assert "cache_control" in body["tools"][-1]
            assert ["cache_control" in one for one in body["system"]] == [True, False]
            assert body["system"][0]["text"] == "You are a test." and "Where you work" in body["system"][1]["text"]
            assert body["cache_control"]["type"] == "ephemeral"
        else:
            assert body["prompt_cache_key"] == digest(b"You are a test.")[:32]


def test_a_line_that_is_no_row_is_named(tmp_path: Path) -> None:
    """With its number; a last line that a kill cut off is left out."""
    path = tmp_path / "turns.jsonl"
    assert turns.read(str(path)) is None
    row = json.dumps(turns.put({"role": "user", "text": "a"}))
    path.write_text(f'{row}\n{{"put": "ab')
    log = turns.read(str(path))
    assert log is not None and len(log.context) == 1
    path.write_text(f'{row}\n{{"put": "ab\n{row}\n')
    with pytest.raises(BrokenFile, match="line 2"):
        turns.read(str(path))


def test_a_file_of_turns_is_for_its_owner_alone(tmp_path: Path) -> None:
    """It has whatever the tools returned."""
    with serving(lambda _: Reply("Done.")) as server:
        talk = Bench(tmp_path).talk(f"{server.url}/v1")
    assert (talk.folder / "turns.jsonl").stat().st_mode & 0o777 == 0o600
