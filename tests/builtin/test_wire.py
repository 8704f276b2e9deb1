"""The wire: what a vendor's client sends is not changed by what it is spared, and prices are those of the vendor's address."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.builtin.exchange import ModelFault, Request
from tests.builtin.talking import WIRES, Bench, address, calling, serving, steps


def body(parameters: dict[str, Any], request: Request) -> bytes:
    """What would be sent."""
    from harness.builtin.wire import Wire

    async def made() -> bytes:
        wire = Wire(parameters, "key", 5.0)
        try:
            return (await wire.body(request))[1]
        finally:
            await wire.close()

    return asyncio.run(made())


HOME = Path(__file__).resolve().parent.parent.parent
UNSPARED = """
import asyncio, sys
from harness.builtin import spared, turns
spared.search = spared.fields = lambda *_: None
from harness.builtin.wire import Wire
log = turns.read(sys.argv[1])
async def made():
    for turn in log.turns:
        request = log.request(turn)
        print((await Wire(request.parameters, "key", 5.0).body(request))[0].digest)
asyncio.run(made())
"""  # in a process of its own: what a client is spared is not given back to it


@pytest.mark.parametrize("wire", [wire for wire in ("chat", "responses", "gemini") if wire in WIRES])
def test_a_body_is_the_same_with_and_without_what_a_client_is_spared(tmp_path: Path, wire: str) -> None:
    """Byte for byte, over texts, calls, failures and an image."""
    bench = Bench(tmp_path, wire=wire)
    (bench.folder / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    replies = ["echo ä", calling("read_file", {"path": "a.png"}), calling("fly", {})]
    replies += [] if wire == "gemini" else [calling("execute", "{no")]  # there a call has no text that could be broken
    with serving(steps(*replies)) as server:
        talk = bench.talk(address(server, wire))
    words = [sys.executable, "-c", UNSPARED, str(talk.folder / "turns.jsonl")]
    unspared = subprocess.run(words, capture_output=True, text=True, check=True, cwd=HOME).stdout
    assert unspared.split() == [turn.row["digest"] for turn in talk.log.turns.values()]


@pytest.mark.skipif("gemini" not in WIRES, reason="the vendor's client takes seconds to import")
def test_googles_objects_are_not_gone_over_for_one_of_their_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither to find it nor before they are made; and what is in one of them is what was without that."""
    from google.genai import _common, types

    from harness.builtin import spared

    spared.fields()
    looks = list[object]()
    monkeypatch.setattr(_common, "get_origin", looks.append)

    class Looked(types.Blob):
        def __iter__(self) -> Any:
            looks.append(self)
            return super().__iter__()

    made = types.Blob(mime_type="text/plain")
    one = Looked.model_construct(mime_type="text/plain")
    assert made.mime_type == "text/plain" and "mime_type" not in one and not looks
    assert ("mime_type", "text/plain") in one and ("mime_type", "") not in one


def test_a_vendors_address_needs_a_key_and_another_none() -> None:
    """Before anything is sent."""
    request = Request(system="s", tools=[], messages=[{"role": "user", "text": "t"}], parameters={})
    from harness.builtin.wire import Wire

    with pytest.raises(ModelFault) as found:
        Wire({"model": "openai-chat:gpt-5"}, "", 5.0)
    assert found.value.outcome == "auth"
    assert body({"model": "openai-chat:gpt-5", "base_url": "http://127.0.0.1:9/v1"}, request)


def test_the_librarys_prices_hold_at_a_vendors_own_address_alone() -> None:
    """A million tokens of a model that it knows cost something; at another address nobody says what."""
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.usage import RequestUsage

    from harness.builtin.wire import Wire

    answer = ModelResponse(
        parts=[TextPart("a")],
        usage=RequestUsage(input_tokens=1_000_000, output_tokens=1_000_000),
        model_name="gpt-5",
        provider_name="openai",
        finish_reason="stop",
        provider_details={"finish_reason": "stop"},
    )
    own = Wire({"model": "openai-chat:gpt-5"}, "key", 5.0)._answer(answer).usage
    other = Wire({"model": "openai-chat:gpt-5", "base_url": "http://127.0.0.1:9/v1"}, "key", 5.0)._answer(answer).usage
    assert own.cost_usd and own.cost_source == "table"
    assert (other.cost_usd, other.cost_source, other.input) == (None, "unknown", 1_000_000)


@pytest.mark.parametrize("wire", WIRES)
def test_the_same_counts_come_from_every_vendor(tmp_path: Path, wire: str) -> None:
    """Input without what the cache served; output with the reasoning."""
    with serving(steps()) as server:
        used = Bench(tmp_path, wire=wire).talk(address(server, wire)).used
    written = 100 if wire == "messages" else 0  # the others count what is written as input
    assert (used.input, used.cache_read, used.cache_write, used.output) == (600 - written, 400, written, 50)
