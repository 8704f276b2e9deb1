"""Runs a command on a worker of Dask, as `ssh` does on a machine: `_dask.py ADDRESS WORD …` starts the words on a worker with a
free `lane`, and connects standard input and output to that process. It is a separate program, so its class is pickled by value,
and neither the scheduler nor a worker imports it."""

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

LANE = "lane"  # the resource of a worker: its number of lanes
CHUNK_BYTES = 1 << 20
WAIT_SECONDS = 15  # for the scheduler, and for a worker to start


class WorkerProcess:
    """An actor on a worker: one process and its standard input and output."""

    has_lane = False

    async def start(self, words: list[str]) -> str:
        """Start the process; returns "", or the address of the worker if all its lanes are taken. A worker has threads, so
        nothing may fork there."""
        here = get_worker()
        taken = sum(getattr(one, "has_lane", False) for one in here.state.actors.values())
        if taken >= here.state.total_resources[LANE]:
            return str(here.address)
        self.has_lane, self.said = True, tempfile.TemporaryFile()  # noqa: SIM115  # it is closed with the actor
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
        """The next output of the process; b"" at its end, which frees its lane."""
        assert self.process.stdout
        if not (data := await self.process.stdout.read(CHUNK_BYTES)):
            await self.process.wait()
            self.has_lane = False
        return data

    async def stderr_text(self) -> bytes:
        """The standard error of the process."""
        return os.pread(self.said.fileno(), CHUNK_BYTES, 0)


def start_process(client: Client, words: list[str]) -> Any:
    """Start a process on a worker; raises LookupError without a free lane. Dask itself would wait forever for a resource that
    no worker has or that others hold."""
    known = client.scheduler_info(n_workers=-1)["workers"]
    free = [address for address, one in known.items() if one["resources"].get(LANE)]
    if not free:
        raise LookupError(f"none of its {len(known)} processes has the resource {LANE} (docs/machines.md)")
    while free:
        made: Future[Any] = client.submit(
            WorkerProcess, actor=True, resources={LANE: 1}, workers=free, pure=False, retries=0
        )
        process: Any = made.result(timeout=WAIT_SECONDS)
        if not (full := process.start(words).result()):
            return process
        free.remove(full)
    raise LookupError(f"all lanes of its {len(known)} processes are taken")


def forward_input(process: Any) -> None:
    """Forward standard input until it ends. The reader of the output notices the end of the worker."""
    with suppress(OSError, RuntimeError):
        while data := os.read(0, CHUNK_BYTES):
            process.send(data).result()
        process.send(b"").result()


def serve(address: str, words: list[str]) -> None:
    """Forward bytes until the process there ends. Raises OSError, RuntimeError or LookupError with the reason."""
    client = Client(address, timeout=WAIT_SECONDS)  # type: ignore[no-untyped-call]  # the package has no type for it
    process = start_process(client, words)
    threading.Thread(target=forward_input, args=[process], daemon=True).start()
    while data := process.receive().result():
        while data:
            data = data[os.write(1, data) :]
    os.write(2, process.stderr_text().result())


if __name__ == "__main__":
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # the reason below is enough
    try:
        serve(sys.argv[1], sys.argv[2:])
    except (OSError, RuntimeError, LookupError, TypeError) as fault:  # TypeError: for TLS without certificates
        os.write(2, str(fault or type(fault)).encode())
        if str(getattr(fault, "filename", "")).endswith(sys.argv[2].lstrip("~")):
            os._exit(127)  # as a shell without the program
    os._exit(0)  # closing waits for a scheduler that may be gone
