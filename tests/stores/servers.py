"""Servers for the stores, each on a free port of loopback with a throw-away folder, and ended with its test process."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

DYING = ("setpriv", "--pdeathsig", "KILL")  # with the process of the tests
SECONDS = 60.0  # that a server may take to start
POSTGRES = "-c unix_socket_directories= -c listen_addresses=127.0.0.1 -c max_connections=50 -c log_min_messages=fatal"
MOTO = """import sys, threading
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
one, app = threading.Lock(), DomainDispatcherApplication(create_backend_app)
def alone(environ, start_response):
    with one:
        return app(environ, start_response)
run_simple("127.0.0.1", int(sys.argv[1]), alone, threaded=True)
"""  # one request at a time: it compares a version and stores an object in two steps, between which another thread may come
KEYS = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests"}


class Server:
    """A server that can be killed and started again, at one address with its data. `words`: its command, given port and folder;
    `is_up`: whether it answers at a port; `url`: with PORT for that."""

    def __init__(
        self, words: Callable[[int, Path], list[str]], is_up: Callable[[int], bool], folder: Path, url: str
    ) -> None:
        self.words, self.is_up, self.folder, self.port = words, is_up, folder, free_port()
        self.url = url.replace("PORT", str(self.port))
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers; again while what was killed is not gone."""
        self._launch()
        until = time.monotonic() + SECONDS
        while not self.is_up(self.port):
            assert time.monotonic() < until, (self.folder / "log").read_text()[-2000:]
            if self.process.poll() is not None:
                self._launch()
            time.sleep(0.02)

    def _launch(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.words(self.port, self.folder), stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd="/"
            )

    def kill(self) -> None:
        """Kill it with its children, as a power cut would end them."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for pid in [self.process.pid, *map(int, children.read_text().split() if children.exists() else [])]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def free_port() -> int:
    """A port of loopback that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _says(question: bytes, *answers: bytes) -> Callable[[int], bool]:
    """Whether what listens at a port answers a question so."""

    def is_up(port: int) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as connection:
                connection.sendall(question)
                return connection.recv(99).startswith(answers)
        except OSError:
            return False

    return is_up


def missing(name: str) -> str:
    """Why a store of this name cannot be tried here; "" where it can."""
    programs = {"redis": ["redis-server"], "postgres": ["postgres", "initdb"]}.get(name, [])
    packages = {"redis": ["redis"], "postgres": ["psycopg"], "s3": ["obstore", "moto"]}.get(name, [])
    lacking = [one for one in (*programs, "setpriv") if programs and not program(one)]
    lacking += [one for one in packages if not importlib.util.find_spec(one)]
    return f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not installed" if lacking else ""


def program(name: str) -> str | None:
    """Where a program is; Debian keeps those of PostgreSQL off the PATH."""
    places = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True)
    return shutil.which(name, path=os.pathsep.join([*places, os.environ.get("PATH", "")]))


@contextlib.contextmanager
def redis(folder: Path, *more: str) -> Iterator[Server]:
    """A Redis that loses nothing when it is killed. `more`: options."""
    durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]

    def words(port: int, folder: Path) -> list[str]:
        here = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
        return [*DYING, "redis-server", *here, *durable, *more]

    yield from _ended(Server(words, _says(b"PING\r\n", b"+PONG", b"-NOAUTH"), folder, "redis://127.0.0.1:PORT/0"))


@contextlib.contextmanager
def postgres(limit: int = 0, *more: str) -> Iterator[Server]:
    """A PostgreSQL cluster that loses nothing when it is killed; it never runs as root. `limit`: bytes that a file of it may
    have, 0 for any; `more`: options."""
    dying = [*DYING, *(["--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else [])]
    with tempfile.TemporaryDirectory(prefix="postgres-") as name:
        if os.geteuid() == 0:
            shutil.chown(name, "postgres", "postgres")
        made = [str(program("initdb")), "-D", f"{name}/data", "-U", "tests", "-A", "trust", "--no-sync", "--locale=C"]
        subprocess.run([*dying, *made], check=True, capture_output=True, cwd="/")

        def words(port: int, folder: Path) -> list[str]:
            limited = ["prlimit", f"--fsize={limit}"] if limit else []
            here = ["-D", f"{folder}/data", "-p", str(port)]
            return [*limited, *dying, str(program("postgres")), *here, *POSTGRES.split(), *more]

        def is_up(port: int) -> bool:
            asked = [str(program("pg_isready")), "-q", "-h", "127.0.0.1", "-p", str(port)]
            return subprocess.run(asked, check=False).returncode == 0

        yield from _ended(Server(words, is_up, Path(name), "postgresql://tests@127.0.0.1:PORT/postgres"))


@contextlib.contextmanager
def s3(folder: Path) -> Iterator[Server]:
    """A server of S3 in memory, with the bucket `tests`, and its keys in the environment."""

    def words(port: int, folder: Path) -> list[str]:
        return [*DYING, sys.executable, "-c", MOTO, str(port)]

    url = "s3://tests/PREFIX?endpoint=http://127.0.0.1:PORT"
    server = Server(words, _says(b"GET / HTTP/1.0\r\n\r\n", b"HTTP/"), folder, url)
    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{server.port}/tests", method="PUT")).close()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        yield from _ended(server)


def _ended(server: Server) -> Iterator[Server]:
    try:
        yield server
    finally:
        server.kill()


def ask(port: int, question: bytes) -> bytes:
    """What a server answers at once."""
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        connection.sendall(question)
        return connection.recv(9999)


def together(act: Callable[[int], object], count: int) -> None:
    """Do something in so many threads at once, each with its number."""
    threads = [threading.Thread(target=act, args=(number,)) for number in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
