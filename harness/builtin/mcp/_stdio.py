"""A server that is a program: messages go over its standard streams, a line of JSON each.

Like a command it is a supervised child: confined as commands are, and nothing of it outlives this process, however that ends.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream as Receiving
from anyio.streams.memory import MemoryObjectSendStream as Sending
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from harness.base.record import Record
from harness.process import spawn
from harness.process.confine import Confinement
from harness.process.supervise import Child
from harness.state import files

Streams = tuple[Receiving[SessionMessage | Exception], Sending[SessionMessage]]

CLOSE_SECONDS = 1.0  # to end by itself once its input is closed
GRACE_SECONDS = 1.0  # from TERM to KILL
KEPT_CHARS = 2000  # of what it says on its standard error
LONGEST_LINE = 64 * 1024 * 1024


class Program(Record):
    """How the server is started, its newest words on standard error, and how it `ended`."""

    argv: list[str]
    folder: str
    environment: Mapping[str, str]
    confinement: Confinement | None = None
    said: str = ""
    ended: str = ""

    @property
    def last_words(self) -> str:
        """How it ended, and what it said last; "" for nothing."""
        return ": ".join(filter(None, [self.ended, self.said.strip().split("\n")[-1].strip()]))


@asynccontextmanager
async def connected(program: Program) -> AsyncIterator[Streams]:
    """Start it; the streams of messages from it and to it. Raises Unavailable where it cannot be started."""
    theirs, ours = spawn.pipe()
    try:
        child = await anyio.to_thread.run_sync(_started, program, theirs)
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    received, receiving = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sending, sent = anyio.create_memory_object_stream[SessionMessage](0)
    ended = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_receive, child, program, received, ended)
        tasks.start_soon(_send, ours, sent)
        try:
            yield receiving, sending
        finally:
            with anyio.CancelScope(shield=True):
                receiving.close()
                sending.close()
                with anyio.move_on_after(CLOSE_SECONDS):
                    await ended.wait()
                child.stop()
                await ended.wait()
            tasks.cancel_scope.cancel()


def _started(program: Program, stdin: int) -> Child:
    return Child(
        program.argv,
        cwd=program.folder,
        env={**program.environment, "PWD": program.folder},
        stdin=stdin,
        wall_seconds=spawn.FOREVER_SECONDS,
        grace_seconds=GRACE_SECONDS,
        confine=program.confinement,
    )


async def _receive(
    child: Child, program: Program, received: Sending[SessionMessage | Exception], ended: anyio.Event
) -> None:
    """Pass on what it writes, until it has ended."""
    lines: list[bytes] = []

    def pump() -> None:
        begun = bytearray()
        for stream, chunk in child.output():
            if stream == "stderr":
                program.said = (program.said + chunk.decode("utf-8", "replace"))[-KEPT_CHARS:]
            elif chunk:
                begun += chunk
                if b"\n" not in chunk and len(begun) < LONGEST_LINE:
                    continue
                *whole, rest = begun.split(b"\n")
                begun[:] = rest if len(rest) < LONGEST_LINE else b""
                lines[:] = [bytes(line) for line in whole if line.strip()]
                anyio.from_thread.run(passed)
        if child.ended is not None and child.ended.cause == "exit":
            exit_code = child.ended.exit
            program.ended = f"signal {child.ended.signal}" if exit_code is None else f"exit {exit_code}"

    async def passed() -> None:
        for line in lines:
            try:
                await received.send(_message(line))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return  # nobody listens any more

    try:
        await anyio.to_thread.run_sync(pump)
    finally:
        ended.set()
        received.close()


def _message(line: bytes) -> SessionMessage | Exception:
    """A message, or why the line is none: the session says what becomes of it."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as fault:
        return fault


async def _send(pipe: int, sent: Receiving[SessionMessage]) -> None:
    try:
        async with sent:
            async for one in sent:
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                await anyio.to_thread.run_sync(files.write_all, pipe, text.encode() + b"\n")
    except OSError:
        pass  # it has ended, which its output shows
    finally:
        os.close(pipe)
