"""A hundred sessions of one HarnessAgent at once against one, with a model that answers after 200 ms; and what the library takes.

    python bench/sessions.py [--sessions 100] [--turns 6] [--latency 0.2] [--long 1000] [--profile]

The model is a process of its own on loopback. *One* is the wall time of one session of so many turns, *all* that of all sessions
at once, and the goal is all <= 1.5 x one. *Library* is the same requests by `pydantic_ai.direct` alone, with one client and
nothing kept, as the field uses it; what it takes is no doing of ours. `--long`: what loading and saving a session of so many
turns costs at its beginning and at its end."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))

from harness.sessions import log
from harness.sessions import session as sessions
from harness.sessions.agent import HarnessAgent
from harness.sessions.store import keys

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


async def serve(latency: float) -> None:
    """The model: the same answer after so many seconds; prints its port."""
    body = answer()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
                size = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:"))
                await reader.readexactly(size)
                await asyncio.sleep(latency)
                writer.write(head + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def timed(one: Callable[[str], Awaitable[None]], count: int) -> tuple[float, float]:
    """(wall, CPU seconds) of so many at once."""
    names = [f"{time.monotonic_ns()}-{number}" for number in range(count)]
    begun, cpu = time.monotonic(), time.process_time()
    await asyncio.gather(*map(one, names))
    return time.monotonic() - begun, time.process_time() - cpu


def library(url: str, turns: int) -> Callable[[str], Awaitable[None]]:
    """A conversation by the library alone."""
    import httpx2
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.tools import ToolDefinition

    from harness.tools import registry

    limits = httpx2.Limits(max_connections=1000, max_keepalive_connections=1000)
    client = httpx2.AsyncClient(timeout=60, limits=limits)
    model = OpenAIChatModel("fake-model", provider=OpenAIProvider(base_url=url, api_key="k", http_client=client))
    names = ("read_file", "write_file", "edit_file", "list_files", "glob_files", "grep_files", "todo_write")
    found = [registry.TOOLS[name] for name in names]
    tools = [
        ToolDefinition(name=one.name, description=one.description, parameters_json_schema=one.parameters)
        for one in found
    ]
    parameters = ModelRequestParameters(function_tools=tools)

    async def one(_: str) -> None:
        messages: list[ModelMessage] = []
        for _turn in range(turns):
            messages.append(ModelRequest(parts=[UserPromptPart(content=TEXT)], instructions=TEXT * 40))
            request = model_request_stream(model, messages, model_request_parameters=parameters)
            async with request as stream:
                async for _event in stream:
                    pass
            messages.append(stream.get())

    return one


def ours(agent: HarnessAgent, turns: int) -> Callable[[str], Awaitable[None]]:
    """A session, a call a turn."""

    async def one(name: str) -> None:
        for _ in range(turns):
            reply = await agent.call(TEXT, session_id=name, user_id=f"user {name}")
            assert reply.outcome == "ok", reply

    return one


async def compared(what: str, one: Callable[[str], Awaitable[None]], count: int, turns: int, profile: bool) -> None:
    """A row: the wall time of one, that of all, the ratio, and CPU a request."""
    await timed(one, 2)
    await timed(one, count)
    gc.collect()
    gc.freeze()
    single = statistics.median([(await timed(one, 1))[0] for _ in range(3)])
    rounds = [await timed(one, count) for _ in range(3)]
    wall = statistics.median([wall for wall, _ in rounds])
    cpu = statistics.median([cpu for _, cpu in rounds])
    best = min(wall for wall, _ in rounds)
    print(
        f"{what:<9} one {single:6.3f} s   all {wall:6.3f} s (best {best:.3f})   ratio {wall / single:5.2f}"
        f" (best {best / single:.2f})   CPU a request {1000 * cpu / count / turns:5.2f} ms",
        flush=True,
    )
    if profile:
        import cProfile
        import pstats

        profiler = cProfile.Profile()
        profiler.enable()
        await timed(one, count)
        profiler.disable()
        pstats.Stats(profiler).sort_stats("cumtime").print_stats(70)


async def memory(agent: HarnessAgent, count: int) -> None:
    """Bytes that a session takes while it is in memory."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    await timed(ours(agent, 2), count)
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    print(f"memory a session after 2 turns: {(after - before) / count / 1024:.0f} KiB")


def long(folder: str, url: str, turns: int) -> None:
    """What loading and a call cost in a long session, at its beginning and at its end."""
    print(
        f"\na session of {turns} turns, ms, the median of 20: a call besides its request, and loading it in a new process"
    )
    agent = HarnessAgent("bench", MODEL, base_url=url, api_key="k", workspace=folder)
    of = keys("long", "s")
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
                        sessions.load(agent.engine.store, of, "bench")
                        loads.append(time.monotonic() - begun)
                    call, load = statistics.median(found[-20:]), statistics.median(loads)
                    size = agent.engine.store.length(of.log)
                    print(f"turn {number:>5}: call {1000 * call:6.1f}   load {1000 * load:6.1f}   log {size:>9,} bytes")

    asyncio.run(all_turns())
    print(f"parts of the log: {log.whole(agent.engine.store, of).parts}")


def main() -> None:
    """All rows."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--long", type=int, default=0)
    parser.add_argument("--serve", action="store_true", help="be the model")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--no-library", action="store_true")
    asked = parser.parse_args()
    if asked.serve:
        asyncio.run(serve(asked.latency))
        return
    command = [sys.executable, __file__, "--serve", "--latency", str(asked.latency if not asked.long else 0)]
    model = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert model.stdout is not None
    url = f"http://127.0.0.1:{int(model.stdout.readline())}/v1"
    try:
        with tempfile.TemporaryDirectory(dir=HERE) as folder:
            if asked.long:
                long(folder, url, asked.long)
            else:
                asyncio.run(table(folder, url, asked))
    finally:
        model.kill()
        model.wait()


async def table(folder: str, url: str, asked: argparse.Namespace) -> None:
    """The rows of many sessions."""
    print(f"{asked.sessions} sessions of {asked.turns} turns, the model answers after {1000 * asked.latency:.0f} ms")
    if not asked.no_library:
        await compared("library", library(url, asked.turns), asked.sessions, asked.turns, False)
    async with HarnessAgent("bench", MODEL, base_url=url, api_key="k", workspace=folder) as agent:
        await compared("sessions", ours(agent, asked.turns), asked.sessions, asked.turns, asked.profile)
        await memory(agent, asked.sessions)


if __name__ == "__main__":
    main()
