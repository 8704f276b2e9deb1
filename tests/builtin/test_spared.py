"""What a vendor's client sends is not changed by what it is spared."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.builtin.talking import WIRES, Bench, address, calling, serving, steps

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
    replies: list[Any] = ["echo ä", calling("read_file", {"path": "a.png"}), calling("fly", {})]
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
