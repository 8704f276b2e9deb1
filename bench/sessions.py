"""What a call and loading cost in a long session, at its beginning and at its end, with a model that answers at once.

    python bench/sessions.py [--turns 1000]

The model is a process of its own on loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))

from harness.builtin.sessions import _session as sessions
from harness.builtin.sessions import log
from harness.builtin.sessions.agent import AgentConfig, HarnessAgent
from harness.builtin.sessions.keys import session_keys
from harness.stores import log as logs

MODEL = "openai-chat:fake-model"
TEXT = "A few words, as people say them. " * 4


def chunk(value: dict[str, Any]) -> bytes:
    """An event of a stream."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def answer() -> bytes:
    """A whole streamed answer."""
    base = {"id": "c1", "created": 1, "model": "fake-model", "object": "chat.completion.chunk"}
    said = {"index": 0, "delta": {"role": "assistant", "content": TEXT}, "finish_reason": None}
    stop = {"index": 0, "delta": {}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 130}
    events = [{**base, "choices": [said]}, {**base, "choices": [stop]}, {**base, "choices": [], "usage": usage}]
    return b"".join(map(chunk, events)) + b"data: [DONE]\n\n"


async def serve() -> None:
    """The model: always the same answer; prints its port."""
    body = answer()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
                size = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:"))
                await reader.readexactly(size)
                writer.write(head + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def long(folder: str, url: str, turns: int) -> None:
    """What loading and a call cost in a long session, at its beginning and at its end."""
    print(
        f"a session of {turns} turns, ms, the median of 20: a call besides its request, and loading it in a new process"
    )
    agent = HarnessAgent("bench", MODEL, workspace=folder, config=AgentConfig(base_url=url, api_key="k"))
    of = session_keys("long", "s")
    found: list[float] = []

    async def all_turns() -> None:
        async with agent:
            for number in range(1, turns + 1):
                begun = time.monotonic()
                await agent.call(TEXT, session_id="s", user_id="long")
                found.append(time.monotonic() - begun)
                if number in (20, turns // 2, turns):
                    loads = []
                    for _ in range(20):
                        begun = time.monotonic()
                        sessions.load(agent.store, of, "bench")
                        loads.append(time.monotonic() - begun)
                    call, load = statistics.median(found[-20:]), statistics.median(loads)
                    size = logs.read(agent.store, of.log).end
                    print(f"turn {number:>5}: call {1000 * call:6.1f}   load {1000 * load:6.1f}   log {size:>9,} bytes")

    asyncio.run(all_turns())
    print(f"parts of the log: {log.whole(agent.store, of).parts}")


def main() -> None:
    """All rows."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--serve", action="store_true", help="be the model")
    asked = parser.parse_args()
    if asked.serve:
        asyncio.run(serve())
        return
    model = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    assert model.stdout is not None
    url = f"http://127.0.0.1:{int(model.stdout.readline())}/v1"
    try:
        with tempfile.TemporaryDirectory(dir=HERE) as folder:
            long(folder, url, asked.turns)
    finally:
        model.kill()
        model.wait()


if __name__ == "__main__":
    main()
