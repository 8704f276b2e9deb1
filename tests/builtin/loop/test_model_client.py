"""The wire: prices are those of the vendor's address, which needs a key, and every vendor counts the same."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from harness.base import encoding
from harness.builtin.loop.exchange import ModelFault, Request
from tests.agents.modelserver import Handler, Reply
from tests.agents.wires import Exchange
from tests.builtin.sessions.talking import said
from tests.builtin.talking import MODELS, WIRES, Bench, address, calling, serving, steps


def body(parameters: dict[str, Any], request: Request) -> bytes:
    """What would be sent."""
    from harness.builtin.loop.model_client import ModelClient

    async def made() -> bytes:
        wire = ModelClient(parameters, "key", 5.0)
        try:
            return (await wire.body(request))[1]
        finally:
            await wire.close()

    return asyncio.run(made())


def test_a_vendors_address_needs_a_key_and_another_none() -> None:
    """Before anything is sent."""
    request = Request(system="s", tools=[], messages=[{"role": "user", "text": "t"}], parameters={})
    from harness.builtin.loop.model_client import ModelClient

    with pytest.raises(ModelFault) as found:
        ModelClient({"model": "openai-chat:gpt-5"}, "", 5.0)
    assert found.value.outcome == "auth"
    assert body({"model": "openai-chat:gpt-5", "base_url": "http://127.0.0.1:9/v1"}, request)


def test_white_space_around_a_key_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that it was copied from may have it; the server gets the key alone."""

    def refuse(handler: Handler, _: Exchange) -> bool:
        if wrong := handler.headers["Authorization"] != "Bearer a-key":
            handler.send_json(401, {"error": {"message": "no such key"}})
        return wrong

    with serving(lambda _: Reply("Hello.")) as server:
        server.trouble = refuse
        monkeypatch.setenv("OPENAI_API_KEY", " a-key\n")
        (reply,) = said(tmp_path, server, "hello", api_key="")
        monkeypatch.setenv("OPENAI_API_KEY", "another")
        (refused,) = said(tmp_path, server, "hello", session="t", api_key="")
    assert (reply.outcome, refused.outcome) == ("ok", "auth")


def test_what_may_pass_by_itself_is_a_limit(tmp_path: Path) -> None:
    """Nobody listens, a name is unknown, a server does not speak TLS."""
    with serving(lambda _: Reply("Hello.")) as server:
        tls = server.url.replace("http:", "https:")
        for at, url in enumerate(("http://127.0.0.1:9", "http://no-such-host.invalid", tls)):
            assert [one.outcome for one in said(tmp_path, server, "hello", session=f"s{at}", base_url=url)] == ["limit"]


def asked(parameters: dict[str, Any], **message: Any) -> ModelFault:
    """The fault of a request that is sent."""
    from harness.builtin.loop.model_client import ModelClient

    async def ask() -> None:
        wire = ModelClient(parameters, "key", 5.0)
        try:
            told = {"role": "user", "text": "t", **message}
            request = Request(system="", tools=[], messages=[told], parameters=parameters)
            await wire.ask(request, lambda _: None, lambda _: None)
        finally:
            await wire.close()

    with pytest.raises(ModelFault) as found:
        asyncio.run(ask())
    return found.value


@pytest.mark.parametrize("wire", WIRES)
def test_what_fails_before_a_connection_is_for_a_person(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any address that is none, an image of no kind, and any value of a header that is none: never worth another try. The
    setting is named, its value is not shown. A server that nobody can reach is worth one."""
    here = {"model": MODELS[wire], "base_url": "http://127.0.0.1:9/v1"}
    assert (asked(here).outcome, asked(here).again) == ("limit", True)
    addresses = (
        "ftp://me:secret@h/v1",
        "foo",
        "http://",
        "https://[::1",
        "unix:///run/x",
        "http://h/\0",
        "http://xn--\xff/",
    )
    faults = [asked({**here, "base_url": url}) for url in addresses]
    assert all("base_url" in fault.reason for fault in faults), faults
    if wire != "gemini":
        faults.append(asked(here, images=[["nonsense", "aaaa"]]))
    if wire in ("chat", "responses"):
        for character in (*map(chr, range(1, 32)), "\x7f", "é", "\udcff"):
            monkeypatch.setenv("OPENAI_ORG_ID", f"sec{character}ret")
            faults.append(asked(here))
            assert "OPENAI_ORG_ID" in faults[-1].reason
    assert {(fault.outcome, fault.again) for fault in faults} == {("config", False)}, faults
    assert not [fault for fault in faults if "sec" in fault.reason or "ret" in fault.reason]


def test_the_librarys_prices_hold_at_a_vendors_own_address_alone() -> None:
    """A million tokens of a model that it knows cost something; at another address nobody says what."""
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.usage import RequestUsage

    from harness.builtin.loop.model_client import ModelClient

    answer = ModelResponse(
        parts=[TextPart("a")],
        usage=RequestUsage(input_tokens=1_000_000, output_tokens=1_000_000),
        model_name="gpt-5",
        provider_name="openai",
        finish_reason="stop",
        provider_details={"finish_reason": "stop"},
    )
    own = ModelClient({"model": "openai-chat:gpt-5"}, "key", 5.0)._answer(answer).usage
    other = (
        ModelClient({"model": "openai-chat:gpt-5", "base_url": "http://127.0.0.1:9/v1"}, "key", 5.0)
        ._answer(answer)
        .usage
    )
    assert own.cost_usd and own.cost_source == "table"
    assert (other.cost_usd, other.cost_source, other.input) == (None, "unknown", 1_000_000)


@pytest.mark.parametrize("wire", WIRES)
def test_the_same_counts_come_from_every_vendor(tmp_path: Path, wire: str) -> None:
    """Input without what the cache served; output with the reasoning."""
    with serving(steps()) as server:
        used = Bench(tmp_path, wire=wire).talk(address(server, wire)).used
    written = 100 if wire == "messages" else 0  # the others count what is written as input
    assert (used.input, used.cache_read, used.cache_write, used.output) == (600 - written, 400, written, 50)


LIMITED = {"chat": "max_tokens", "responses": "max_output_tokens", "messages": "max_tokens"}


@pytest.mark.parametrize("wire", WIRES)
def test_the_most_tokens_of_an_answer_are_in_each_request(wire: str) -> None:
    """As each vendor calls them, of two names the one that every server knows; one that was made without is made again so."""
    from harness.builtin.loop.model_client import ModelClient

    async def body(**more: int) -> dict[str, Any]:
        parameters = {"model": MODELS[wire], "base_url": "http://127.0.0.1:9/v1", **more}
        client = ModelClient(parameters, "key", 5.0)
        request = Request(system="", tools=[], messages=[{"role": "user", "text": "x"}], parameters=parameters)
        found: dict[str, Any] = json.loads((await client.body(request))[1])
        await client.close()
        return found.get("generationConfig", {}) if wire == "gemini" else found

    name = LIMITED.get(wire, "maxOutputTokens")
    assert asyncio.run(body(max_output_tokens=900))[name] == 900
    assert asyncio.run(body()).get(name) != 900


@pytest.mark.parametrize("wire", MODELS)
def test_each_request_is_made_again_byte_for_byte(tmp_path: Path, wire: str) -> None:
    """From the record, at every turn: over texts, calls, failures, an image, broken arguments."""
    from harness.builtin.loop.model_client import ModelClient

    bench = Bench(tmp_path, wire=wire)
    (bench.folder / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    kinds: list[Any] = ["echo ä", calling("read_file", {"path": "a.png"}), calling("fly", {})]
    kinds += [] if wire == "gemini" else [calling("execute", "{no")]  # there a call has no text that could be broken
    with serving(steps(*kinds)) as server:
        log = bench.talk(address(server, wire)).log
        sent = [encoding.digest(one.body) for one in server.seen]

    async def digests() -> list[str]:
        again = ModelClient(log.request(1).parameters, "key", 5.0)
        try:
            return [(await again.body(log.request(turn)))[0].digest for turn in log.turns]
        finally:
            await again.close()

    assert asyncio.run(digests()) == [turn.row["digest"] for turn in log.turns.values()] == sent
