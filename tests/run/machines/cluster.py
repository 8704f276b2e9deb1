"""A Dask scheduler and workers on the loopback, each with a HOME of its own, for tests, the bench and the demo."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
START_SECONDS = 60
LOCAL = ("--host", "127.0.0.1", "--no-dashboard")
QUIET = {"DASK_DISTRIBUTED__ADMIN__LOG_LENGTH": "0", "PYTHONWARNINGS": "ignore"}


class Cluster:
    """Processes that end with the context; `address` is what `run.sh --on` takes."""

    def __init__(self, folder: Path, protocol: str = "tcp") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.workers, self.lanes = folder, dict[str, subprocess.Popen[bytes]](), dict[str, int]()
        self.file, self.protocol = folder / "scheduler.json", protocol
        self.scheduler = self.start("scheduler", "--port", "0", "--scheduler-file", str(self.file))

    @property
    def address(self) -> str:
        """dask:tcp://…, or dask:tls://…"""
        return "dask:" + str(json.loads(self.file.read_text())["address"])

    def home(self, name: str) -> Path:
        """The HOME of a worker."""
        return self.folder / name

    def add(self, name: str, lanes: int = 1) -> None:
        """Start a worker with so many lanes, 0 for one without the resource."""
        self.lanes[name] = lanes
        more = ["--resources", f"lane={lanes}"] if lanes else []
        words = ["--scheduler-file", str(self.file), "--no-nanny", "--nthreads", "1", "--name", name, *more]
        self.workers[name] = self.start("worker", *words, "--memory-limit", "0", "--local-directory", str(self.folder))

    def start(self, kind: str, *words: str) -> subprocess.Popen[bytes]:
        """A process, with a HOME of its own and the harness on its PATH."""
        home = self.home(words[words.index("--name") + 1] if "--name" in words else kind)
        if not (home / "bin").is_dir():
            (home / "bin").mkdir(parents=True)
            (home / "bin" / "harness").symlink_to(CHECKOUT / "run.sh")
        env = {name: value for name, value in os.environ.items() if not name.startswith(("HARNESS_", "XDG_"))}
        env |= {**QUIET, "HOME": str(home), "PATH": f"{home}/bin:{env['PATH']}"}
        program = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *LOCAL, "--protocol", self.protocol, *words]
        with (home / "log").open("wb") as log:
            return subprocess.Popen(program, env=env, stdout=log, stderr=log, start_new_session=True)

    def await_workers(self) -> None:
        """Wait until the scheduler knows all."""
        until = time.monotonic() + START_SECONDS
        for name, worker in self.workers.items():
            while b"Registered to" not in (self.home(name) / "log").read_bytes():
                assert worker.poll() is None and time.monotonic() < until, (self.home(name) / "log").read_text()
                time.sleep(0.05)

    def restart(self) -> None:
        """End all, and start them again at the same address, as a person would after a power cut."""
        port = self.address.rpartition(":")[2]
        self.end()
        self.scheduler = self.start("scheduler", "--port", port, "--scheduler-file", str(self.file))
        for name, lanes in self.lanes.items():
            self.add(name, lanes)
        self.await_workers()

    def end(self) -> None:
        """End all at once."""
        for one in (*self.workers.values(), self.scheduler):
            one.kill()
            one.wait()


@contextlib.contextmanager
def cluster(folder: Path, names: dict[str, int], protocol: str = "tcp") -> Iterator[Cluster]:
    """A scheduler with a worker of each name, and its number of lanes."""
    made = Cluster(folder, protocol)
    try:
        for name, lanes in names.items():
            made.add(name, lanes)
        made.await_workers()
        yield made
    finally:
        made.end()
