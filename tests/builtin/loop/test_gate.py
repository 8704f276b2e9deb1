"""Whatever anybody said, a conversation that has it can go on."""

from __future__ import annotations

import asyncio
import json
import math
from base64 import b64encode
from pathlib import Path
from random import Random
from typing import Any

import pytest

from harness.builtin.loop import _gate
from harness.builtin.loop._text_calls import RESULT
from harness.builtin.loop.exchange import RULES, Message, Request
from tests.agents.modelserver import Handler, Reply, serving
from tests.agents.strict import faults, strict
from tests.agents.wires import Exchange
from tests.builtin.loop.misbehaving import played, says
from tests.builtin.loop.streams import Text, Thought, Tool
from tests.builtin.sessions.talking import agent, log_of, said
from tests.builtin.talking import MODELS, WIRES, Bench, address, bodies, calling, slow, steps

HALF, BYTES = "half \ud800", "a byte \udce4"
TEXTS = ("hello", "", " \n", HALF, BYTES)
IDS = ("call-1", "call-2", "functions.look:0", "", "x" * 70, "é")
NAMES = ("look", "functions.look", "", "é", "x" * 80)
ARGUMENTS = ('{"a": 1}', "", "{no", "[]", {"a": 1}, None)
PNG = ["image/png", b64encode(b"\x89PNG\r\n\x1a\n" + bytes(9)).decode()]
THOUGHTS: tuple[dict[str, Any], ...] = (
    {},
    {"signature": "c2ln", "provider_name": "anthropic"},
    {"id": "rs_1", "signature": "c2ln", "provider_name": "openai"},
    {"id": "reasoning_content", "provider_name": "openai"},
)
LOOK = {"name": "look", "description": "d", "parameters": {"type": "object", "properties": {}}}


def odd_part(dice: Random) -> dict[str, Any]:
    """A part of an answer, as models and servers of any format give them."""
    kind = dice.choice(("text", "thinking", "tool-call"))
    if kind == "text":
        return {"part_kind": kind, "content": dice.choice(TEXTS)}
    if kind == "thinking":
        return {"part_kind": kind, "content": dice.choice(TEXTS), **dice.choice(THOUGHTS)}
    call = {"tool_name": dice.choice(NAMES), "args": dice.choice(ARGUMENTS), "tool_call_id": dice.choice(IDS)}
    return {"part_kind": kind, **call}


def odd_message(dice: Random) -> Message:
    """A message that may stand anywhere in a record."""
    images = {"images": [PNG]} if dice.random() < 0.2 else {}
    role = dice.choice(("user", "assistant", "assistant", "tool", "tool"))
    if role == "assistant":
        vendor = dice.choice(("openai", "anthropic", "google"))
        return {"role": role, "parts": [odd_part(dice) for _ in range(dice.randrange(4))], "provider_name": vendor}
    text = {"role": role, "text": dice.choice(TEXTS), **images}
    if role == "user":
        return text
    return {**text, "id": dice.choice(IDS), "name": dice.choice(NAMES), "failed": dice.random() < 0.5}


VENDORS = {"chat": "openai-chat:gpt-4o", "responses": "openai-responses:gpt-5", "messages": MODELS["messages"],
           "gemini": "google:gemini-3-pro"}  # fmt: skip


@pytest.mark.parametrize("wire", VENDORS)
def test_no_record_makes_a_request_that_its_vendor_refuses(wire: str) -> None:
    """Messages of any format in any order, with what models, persons, tools and servers said; and it is the same made again."""
    from harness.builtin.loop.model_client import ModelClient

    async def refused() -> list[Any]:
        parameters = {"model": VENDORS[wire], "base_url": "http://127.0.0.1:9/v1", "rules": RULES, "stable_chars": 3}
        client, found = ModelClient(parameters, "key", 5.0), []
        for seed in range(40):
            dice = Random(seed)
            messages = [odd_message(dice) for _ in range(dice.randrange(7))]
            request = Request(system="You are.", tools=[LOOK], messages=messages, parameters=parameters)
            body = (await client.body(request))[1]
            wrong = [*faults(wire, json.loads(body))]
            wrong += [] if (await client.body(request))[1] == body else ["it is another one when it is made again"]
            found += [(seed, messages, wrong)] if wrong else []
        await client.close()
        return found

    assert asyncio.run(refused()) == []


@pytest.mark.parametrize("wire", WIRES)
def test_a_session_goes_on_whatever_its_model_answers(tmp_path: Path, wire: str) -> None:
    """Ids twice and with signs that vendors refuse, a name that is none, a thought alone, a tool that says nothing."""

    def quiet() -> str:
        """Say nothing."""
        return ""

    twice = Tool("quiet", "{}", id="functions.quiet:0")
    play = played(
        says(Text(("I look.",)), twice),
        says(Tool("functions.fly now", "{}", id="functions.quiet:0"), twice),
        says(Thought("hm", "")),
        says(Text(("It was quiet.",))),
    )

    def trouble(handler: Handler, exchange: Exchange) -> bool:
        return strict(handler, exchange) or play(handler, exchange)

    with serving(lambda _: Reply("no")) as server:
        server.trouble = trouble
        given: dict[str, Any] = {"model": MODELS[wire], "base_url": address(server, wire), "tools": [quiet]}
        replies = said(tmp_path, server, "listen", "and now?", **given)
        system = [b"You are an agent" in one.body for one in server.seen]
    assert [(one.outcome, one.reason) for one in replies] == [("ok", ""), ("ok", "")]
    assert [one.text for one in replies] == ["It was quiet.", "Done."] and all(system)
    assert [one["text"] for one in log_of(tmp_path, "s").turns.messages() if one["role"] == "tool"][::2] == ["", ""]


def test_a_result_without_its_call_is_a_text_and_a_call_without_a_result_has_one() -> None:
    """All that was said stays, but a thought at the end."""
    call = {"part_kind": "tool-call", "tool_name": "look", "args": "{}", "tool_call_id": "a"}
    result = {"role": "tool", "id": "b", "name": "look", "text": "seen", "failed": False}
    messages: list[Message] = [
        {"role": "user", "text": "t"},
        {"role": "assistant", "parts": [call, {"part_kind": "thinking", "content": "hm"}]},
        result,
    ]
    request = Request(system="", tools=[LOOK], messages=messages, parameters={"rules": RULES})
    found = _gate.passed(request)
    assert found[:3] == [messages[0], {"role": "assistant", "parts": [call]}, {**_gate.LOST, "id": "a", "name": "look"}]
    assert [(one["role"], one["text"]) for one in found[3:]] == [("user", RESULT.format(**result))]
    assert _gate.passed(request.replace(parameters={"rules": 2})) == messages


def test_what_can_be_sent_is_itself_and_the_rest_is_mended() -> None:
    """At any depth, names included; a byte that is no UTF-8 is as in files."""
    fine = {"a": ["ä", 1.5, None]}
    assert _gate.value(fine) is fine
    known = {HALF: [BYTES, {"n": math.nan, "m": 1.5}, math.inf]}
    assert _gate.value(known) == {r"half \ud800": [r"a byte \xe4", {"n": None, "m": 1.5}, None]}
    assert [_gate.name(one) for one in ("read_file", "a.b c", "", "x" * 70)] == [
        "read_file",
        "a_b_c",
        "_",
        "x" * 64,
    ]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("raw", ['{"todos": NaN}', '{"todos": 1e999}', '{"todos": "\\ud800"}', '{"a":' * 2000])
def test_a_model_is_told_of_arguments_that_no_vendor_takes_back(tmp_path: Path, wire: str, raw: str) -> None:
    """No number, half of a pair, too deep: nothing is carried out, and the conversation goes on."""
    if wire == "gemini":  # there arguments are an object of its JSON
        raw = {"todos": math.nan}  # type: ignore[assignment]  # a call takes both
    with serving(steps(calling("todo_write", raw))) as server:
        talk = Bench(tmp_path, wire=wire).talk(address(server, wire))
    assert (talk.end.outcome, talk.end.reply) == ("ok", "Done.")
    assert "no JSON object" in talk.results()[0]


@pytest.mark.parametrize("wire", WIRES)
def test_a_name_that_is_no_name_of_a_tool_does_not_end_the_conversation(tmp_path: Path, wire: str) -> None:
    """Vendors refuse a request with a call whose name they would not accept for a tool."""
    with serving(steps(calling("functions.list files", {}))) as server:
        assert Bench(tmp_path, wire=wire).talk(address(server, wire)).end.outcome == "ok"
        sent = server.seen[-1].body.decode()
    assert "functions_list_files" in sent and '"functions.list files"' not in sent


@pytest.mark.parametrize("wire", WIRES)
def test_text_that_is_no_unicode_does_not_end_a_session(tmp_path: Path, wire: str) -> None:
    """Of a person, as from a pipe, of the model, and of a server's tool: it is sent with the byte or the half written out."""

    def brain(exchange: object) -> Reply:
        return Reply(HALF)

    with (
        serving(brain) as server,
        agent(tmp_path, server, model=MODELS[wire], base_url=address(server, wire)) as one,
    ):
        found = [one.call_sync(text, session_id="s") for text in (BYTES, "and now?")]
        sent = json.loads(server.seen[-1].body)
    assert [reply.outcome for reply in found] == ["ok", "ok"]
    assert r"a byte \\xe4" in json.dumps(sent) and r"half \\ud800" in json.dumps(sent)


@pytest.mark.parametrize("wire", ["messages", *WIRES])
@pytest.mark.parametrize("command", ["", "echo a"])
def test_white_space_in_an_answer_does_not_end_a_session(tmp_path: Path, wire: str, command: str) -> None:
    """Alone, or beside a call: no later request has it."""
    with serving(lambda _: Reply("Done.") if server.seen else Reply(" \n", command)) as server:
        server.trouble = strict
        talk = Bench(tmp_path, wire=wire).talk(address(server, wire))
    assert (talk.end.outcome, talk.end.reply, len(server.seen)) == ("ok", "Done.", 2), talk.end


def test_a_key_for_the_cache_goes_to_the_vendors_own_address_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server may refuse a field that it does not know."""
    with serving(lambda _: Reply("Hello.")) as server:
        server.trouble = strict
        assert [one.outcome for one in said(tmp_path, server, "hello")] == ["ok"]
        monkeypatch.setenv("OPENAI_BASE_URL", address(server, "chat"))  # the vendor's own, as far as the agent knows
        (refused,) = said(tmp_path, server, "hello", session="t", base_url="")
        assert refused.outcome == "config"
        assert "prompt_cache_key" in bodies(server)[-1]


@slow
def test_an_answer_that_cannot_be_read_is_one_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Arguments that are no object where the format wants one; and nothing else is on standard error."""
    with serving(lambda _: calling("execute", "{no")) as server:
        end = Bench(tmp_path, wire="gemini").talk(address(server, "gemini")).end
    assert end.outcome == "agent_error" and end.reason.startswith("the answer cannot be read: ")
    assert "\n" not in end.reason and "asynchronous generator" not in capfd.readouterr().err
