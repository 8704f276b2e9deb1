"""The other side of a remote shell: it runs the verbs of a LocalShell there, each request in a thread.

It ends when its input ends or is silent for SILENT_SECONDS. Its commands end with it: their guardians notice that it is gone.
Only the verbs write to that machine."""

from __future__ import annotations

import os
import select
import threading
from typing import Any

from harness.base.errors import HarnessError
from harness.filesystem import _frames
from harness.filesystem.protocol import FileFault, ShellJob
from harness.filesystem.shell import LocalShell

FILES = ("ls", "read", "write", "edit", "grep", "glob", "stat", "mkdir", "delete", "move", "resolve")


class RemoteServer:
    """One connection. `jobs`: commands in the background, by id; `stops`: events that end requests, by number."""

    def __init__(self) -> None:
        self.shells, self.jobs = dict[str, LocalShell](), dict[str, ShellJob]()
        self.stops, self.turn = dict[int, threading.Event](), threading.Lock()

    def serve(self) -> None:
        """Answer until the input ends."""
        poller, buffer = select.poll(), bytearray()
        poller.register(0, select.POLLIN)
        while poller.poll(_frames.SILENT_SECONDS * 1000) and (data := os.read(0, 1 << 20)):
            buffer += data
            for request in _frames.take_values(buffer):
                if request is None:
                    self.send(bytes(_frames.HEAD.size))
                elif stop := self.stops.get(request["number"]):
                    stop.set()
                elif "verb" in request:
                    self.stops[request["number"]] = threading.Event()
                    threading.Thread(target=self.answer, args=(request,), daemon=True).start()
        os._exit(0)

    def send(self, data: bytes) -> None:
        """Write a frame."""
        with self.turn:
            while data:
                data = data[os.write(1, data) :]

    def answer(self, request: dict[str, Any]) -> None:
        """Carry out one request."""
        number = request["number"]
        answer = {"number": number, "error": "", "result": None}
        try:
            answer["result"] = self.result(**request)
        except (HarnessError, OSError, ValueError, TypeError) as fault:
            answer["error"] = f"{fault}" or type(fault).__name__
        del self.stops[number]
        self.send(_frames.pack(answer))

    def result(self, number: int, root: str, verb: str, given: list[Any], more: dict[str, Any]) -> object:
        """The result of a verb of files, commands or jobs."""
        if verb in ("page", "status", "cancel"):
            if given[0] not in self.jobs:
                raise ValueError("The connection to the command was lost, and the command has ended.")
            return getattr(self.jobs[given[0]], verb)(*given[1:])
        shell = self.shell(root)
        if verb == "execute":
            return shell.execute(*given, stop=self.stops[number].is_set, **more)
        if verb == "start":
            started = shell.start(*given, **more)
            if isinstance(started, FileFault):
                return started
            self.jobs[started.id] = started
            return started.id
        if verb not in FILES:
            raise ValueError(f"There is no verb {verb}.")
        return getattr(shell, verb)(*given, **more)

    def shell(self, root: str) -> LocalShell:
        """The shell of a folder, which is created if missing."""
        if root not in self.shells:
            folder = os.path.expanduser(root)
            os.makedirs(folder, exist_ok=True)
            self.shells[root] = LocalShell(folder, environment=dict(os.environ))
        return self.shells[root]
