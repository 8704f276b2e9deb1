"""Leads to a worker of Dask, as `ssh` leads to a machine: `_dask.py ADDRESS WORD …` starts the words on a worker with a free
`lane`, and passes bytes between that process and standard input and output. A program of its own: its class travels by value, so
neither the scheduler nor a worker imports it."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import tempfile
import threading
from contextlib import suppress
from typing import Any

from distributed import Client, Future, get_worker

LANE = "lane"  # the resource of a worker: so many lanes at once
CHUNK_BYTES = 1 << 20
WAIT_SECONDS = 15  # for the scheduler, and for a worker to start


class Desk:
    """An actor on a worker: one process, and the bytes to it and from it."""

    has_lane = False

    async def start(self, words: list[str]) -> str:
        """Start the process; returns "", or the address of the worker if all its lanes are taken. A worker has threads, so that
        nothing is forked there."""
        here = get_worker()
        taken = sum(getattr(one, "has_lane", False) for one in here.state.actors.values())
        if taken >= here.state.total_resources[LANE]:
            return str(here.address)
        self.has_lane, self.said = True, tempfile.TemporaryFile()  # noqa: SIM115  # it ends with the actor
        program, *rest = words
        self.process = await asyncio.create_subprocess_exec(
            os.path.expanduser(program),
            *rest,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self.said,
            start_new_session=True,
            limit=CHUNK_BYTES,
        )
        return ""

    async def send(self, data: bytes) -> None:
        """Write to the process; b"" ends its input."""
        assert self.process.stdin
        if not data:
            self.process.stdin.close()
            return
        self.process.stdin.write(data)
        await self.process.stdin.drain()

    async def receive(self) -> bytes:
        """What the process has written next; b"" at its end, when its lane is free."""
        assert self.process.stdout
        if not (data := await self.process.stdout.read(CHUNK_BYTES)):
            await self.process.wait()
            self.has_lane = False
        return data

    async def last_words(self) -> bytes:
        """The standard error of the process."""
        return os.pread(self.said.fileno(), CHUNK_BYTES, 0)


def found(client: Client, words: list[str]) -> Any:
    """The desk of a process on a worker; raises LookupError without a free lane. A resource that nobody has, or that others hold,
    would be waited for without an end."""
    known = client.scheduler_info(n_workers=-1)["workers"]
    free = [address for address, one in known.items() if one["resources"].get(LANE)]
    if not free:
        raise LookupError(f"none of its {len(known)} processes has the resource {LANE} (docs/machines.md)")
    while free:
        made: Future[Any] = client.submit(Desk, actor=True, resources={LANE: 1}, workers=free, pure=False, retries=0)
        desk: Any = made.result(timeout=WAIT_SECONDS)
        if not (full := desk.start(words).result()):
            return desk
        free.remove(full)
    raise LookupError(f"all lanes of its {len(known)} processes are taken")


def feed(desk: Any) -> None:
    """Pass standard input on until it ends; whoever reads the output sees the end of the worker."""
    with suppress(OSError, RuntimeError):
        while data := os.read(0, CHUNK_BYTES):
            desk.send(data).result()
        desk.send(b"").result()


def serve(address: str, words: list[str]) -> None:
    """Pass bytes until the process there ends; raises OSError, RuntimeError or LookupError with the reason if it cannot."""
    client = Client(address, timeout=WAIT_SECONDS)  # type: ignore[no-untyped-call]  # the package has no type for it
    desk = found(client, words)
    threading.Thread(target=feed, args=[desk], daemon=True).start()
    while data := desk.receive().result():
        while data:
            data = data[os.write(1, data) :]
    os.write(2, desk.last_words().result())


if __name__ == "__main__":
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # the reason below is enough
    try:
        serve(sys.argv[1], sys.argv[2:])
    except (OSError, RuntimeError, LookupError, TypeError) as fault:  # TypeError: of TLS without certificates
        os.write(2, str(fault or type(fault)).encode())
    os._exit(0)  # closing waits for a scheduler that may be gone
