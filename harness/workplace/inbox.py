"""The inbox: requests of confined programs for the few state changes that a run may make while its agent works.

The run starts a listener process next to the agent. It listens on a socket in a folder visible to the agent, and handles each
request in an unconfined child process: check, stamp, count, mask, and make durable before the answer. A request has a verb
and texts; the listener knows the role, feature and run itself, so a client cannot impersonate another.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from harness.base import encoding, errors
from harness.base.errors import HarnessError, LockBusy, UsageFault
from harness.process import spawn, supervise, temporary, tree
from harness.state import files
from harness.state.layout import Layout

SOCKET = "socket"
MAX_REQUEST_BYTES = 16 * 1024 * 1024  # bytes
READ_SECONDS = 30.0  # timeout for a client to send its request
LEAVE_SECONDS = 5.0  # grace for pending requests after the run's agent has ended
REAP_SECONDS = 0.5
WAITING_CLIENTS = 128
NO_ANSWER = "The run's inbox does not answer: its agent has ended, or its listener was killed. Nothing was written."


class Inbox:
    """The listener of one run. `verbs`: {name: function of its arguments that yields texts for the client's screen}.
    A context manager: leaving it finishes pending requests, then ends the listener and removes the socket.
    """

    def __init__(self, folder: str, verbs: dict[str, Callable[..., Iterable[str]]]) -> None:
        self.folder, self.verbs = folder, verbs
        self.pid, self._control = 0, -1

    def __enter__(self) -> Inbox:
        remove(self.folder)
        files.make_folder(self.folder)
        listener = in_folder(self.folder, "bind")
        listener.listen(WAITING_CLIENTS)
        ours, self._control = spawn.pipe()
        try:
            with spawn.SignalsBlocked():
                self.pid = spawn.fork(_Listener(listener, ours, self.verbs).serve)
            supervise.spare(self.pid)
        finally:
            listener.close()
            os.close(ours)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._control)  # the listener sees the end of this pipe, even after a kill
        os.waitpid(self.pid, 0)
        supervise.unspare(self.pid)
        remove(self.folder)


def remove(folder: str) -> None:
    """Remove the folder of an inbox, if it exists, also after a kill."""
    if os.path.isdir(folder):
        files.remove(os.path.join(folder, SOCKET))
        temporary.remove(folder)


def in_folder(folder: str, verb: str) -> socket.socket:
    """A socket bound or connected in the folder via its descriptor, since socket paths are limited to 108 bytes."""
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        getattr(made, verb)(f"/proc/self/fd/{place}/{SOCKET}")
    except OSError:
        made.close()
        raise
    finally:
        os.close(place)
    return made


class _Listener:
    """The listener process: one child per request, until the run closes the pipe `control`."""

    def __init__(self, listener: socket.socket, control: int, verbs: dict[str, Callable[..., Iterable[str]]]) -> None:
        self.listener, self.control, self.verbs = listener, control, verbs
        self.workers: set[int] = set()
        self.run = os.getppid()

    def serve(self) -> None:
        """Accept and answer; ends the process."""
        supervise.end_with_parent(0)
        os.setsid()  # Ctrl-C and a hang-up are for the run, which then closes the pipe
        for number in spawn.STANDARD_SIGNALS:
            if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD):
                signal.signal(number, signal.SIG_IGN if number in (signal.SIGINT, signal.SIGHUP) else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        spawn.close_all_but({0, 1, 2, self.listener.fileno(), self.control})
        poller = select.poll()
        poller.register(self.listener, select.POLLIN)
        poller.register(self.control, select.POLLIN)
        ready: list[int] = []
        while self.control not in ready:
            ready = [fd for fd, _ in poller.poll(1000 * REAP_SECONDS)]
            if self.listener.fileno() in ready:
                self._take()
            self._reap()
        self.listener.close()
        self._leave()
        os._exit(0)

    def _take(self) -> None:
        client, _ = self.listener.accept()
        try:
            self.workers.add(spawn.fork(lambda: _answer(client, self.verbs, self.run)))
        except OSError as fault:  # fork failed: report it to the client, which may retry
            _send(
                client, {"code": errors.BUSY, "fault": f"No process can be started for the request: {fault.strerror}."}
            )
        client.close()

    def _reap(self) -> None:
        for pid in list(self.workers):
            if os.waitpid(pid, os.WNOHANG)[0]:
                self.workers.discard(pid)

    def _leave(self) -> None:
        until = time.monotonic() + LEAVE_SECONDS
        while self.workers and time.monotonic() < until:
            self._reap()
            time.sleep(0.002)
        for pid in self.workers:  # a check that still runs, without a waiting client
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)


def _answer(client: socket.socket, verbs: dict[str, Callable[..., Iterable[str]]], run: int) -> None:
    """Handle one request in its own process, which then exits."""
    try:
        if not tree.is_below(_peer(client), run):  # a program of another mission on this machine
            raise UsageFault("This inbox serves the programs of its own run.")
        client.settimeout(READ_SECONDS)
        request = _request(client)
        client.settimeout(None)
        for text in verbs[request["verb"]](*request["arguments"]):
            _send(client, {"text": text})
        _send(client, {"code": errors.DONE})
    except HarnessError as fault:
        _send(client, {"code": fault.code, "fault": str(fault)})
    except (OSError, MemoryError) as fault:  # disk full or out of memory: the request was not, or not fully, executed
        _send(client, {"code": errors.BUSY, "fault": f"It could not be written: {fault}. Try again later."})
    except (ValueError, KeyError, TypeError):
        _send(client, {"code": errors.USAGE, "fault": f"The inbox understands {', '.join(verbs)}."})
    os._exit(0)


def _peer(client: socket.socket) -> int:
    """The client's pid in this namespace: struct ucred of unix(7). Without Linux this process's own."""
    if not hasattr(socket, "SO_PEERCRED"):
        return os.getpid()
    return int.from_bytes(client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], sys.byteorder)


def _request(client: socket.socket) -> dict[str, Any]:
    data = bytearray()
    while not data.endswith(b"\n"):
        chunk = client.recv(65536)
        if not chunk or len(data) > MAX_REQUEST_BYTES:
            raise ValueError("a request is one line of JSON")
        data += chunk
    request: dict[str, Any] = json.loads(data)
    if not all(isinstance(text, str) for text in [request["verb"], *request["arguments"]]):
        raise ValueError("a request holds texts")
    return request


def _send(client: socket.socket, row: dict[str, object]) -> None:
    try:
        client.sendall(encoding.dump_json(row))
    except OSError:
        return  # the client is gone; its request stands


def ask(layout: Layout, run_id: str, verb: str, *arguments: str) -> Iterator[str]:
    """Send a request to a run's inbox; yields the texts of the answer. Raises what the verb raised, LockBusy without an
    answer, and UsageFault if the run is over."""
    if os.path.exists(layout.run(run_id).result):
        raise UsageFault(f"The run {run_id} is over: nothing can be added to it.")
    try:
        # closed here: an unclosed socket is garbage-collected with a warning, in which Python drops the exception of a signal
        with in_folder(layout.run(run_id).inbox, "connect") as server:
            server.sendall(encoding.dump_json({"verb": verb, "arguments": list(arguments)}))
            yield from _answers(server)
    except OSError as fault:
        raise LockBusy(NO_ANSWER) from fault


def _answers(server: socket.socket) -> Iterator[str]:
    begun = b""
    while chunk := server.recv(65536):
        *lines, begun = (begun + chunk).split(b"\n")
        for row in map(json.loads, lines):
            if "text" in row:
                yield row["text"]
            elif row["code"] == errors.DONE:
                return
            else:
                raise AnsweredFault(row["fault"], row["code"])
    raise LockBusy(NO_ANSWER)


class AnsweredFault(HarnessError):
    """An error that the verb raised in the listener, with its exit code."""

    def __init__(self, fault: str, code: int) -> None:
        super().__init__(fault)
        self.code = code
