"""A conversation of the built-in agent in this process: a real model server on loopback, the real wire, tools and files."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import pickle
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.builtin import _one_thread
from harness.builtin.conversation import Conversation, ConversationSpec
from harness.builtin.loop import turns
from harness.builtin.loop.loop import Budget, End, Limits
from harness.builtin.loop.message_history import MessageHistory
from harness.builtin.loop.turns import Log
from harness.builtin.tool_environment import ToolEnvironment
from harness.builtin.tools import registry
from harness.builtin.tools.tool import Tool, ToolResult
from harness.process import supervise
from harness.state import names
from harness.state.layout import Layout
from tests.agents.modelserver import Brain, Reply, Seen, Server
from tests.agents.wires import Call, Exchange
from tests.crash import TORTURE

if not importlib.util.find_spec("pydantic_ai"):  # not imported here: each fork of a test would copy its 50 MB of pages
    pytest.skip("the built-in agent's packages are not installed: make setup", allow_module_level=True)

MODELS = {
    "chat": "openai-chat:fake-model",
    "responses": "openai-responses:fake-model",
    "messages": "anthropic:claude-opus-5",
    "gemini": "google:gemini-2.5-pro",
}
ALL = TORTURE or "HARNESS_REAL_AGENTS" in os.environ
WIRES = list(MODELS) if ALL else ["chat"]  # each vendor's client takes seconds to import
slow = pytest.mark.skipif(not ALL, reason="takes long: with HARNESS_TORTURE=1, and in make test-agents")
QUICK = Limits(waits=[0.01, 0.01])
RUN = "1-worker-F-001"


def address(server: Server, wire: str) -> str:
    """The base_url of a model that speaks this format."""
    return server.url + ("/v1" if wire in ("chat", "responses") else "")


@dataclass
class Talk:
    """What came of a conversation: its end, the events, the folder of the run."""

    end: End
    rows: list[dict[str, Any]]
    folder: Path
    used: Any = None

    @property
    def log(self) -> Log:
        """Its turns."""
        log = turns.read(str(self.folder / "turns.jsonl"))
        assert log is not None
        return log

    def results(self) -> list[str]:
        """The texts of the results of its calls."""
        return [one["text"] for one in self.log.messages() if one["role"] == "tool"]


@dataclass
class Bench:
    """A folder to work in, with the state of a mission beside it."""

    top: Path
    wire: str = "chat"
    seconds: float = 20.0
    limits: Limits = field(default_factory=lambda: QUICK)
    more: list[Tool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder = self.top / "tree"
        self.layout = Layout(str(self.top / "project"))
        self.folder.mkdir(exist_ok=True, parents=True)
        Path(self.layout.path(names.RUNS)).mkdir(parents=True, exist_ok=True)

    def run_folder(self, run: str = RUN) -> Path:
        """The folder of a run."""
        made = Path(self.layout.run(run).folder)
        made.mkdir(exist_ok=True)
        return made

    def talk(self, url: str, *, prompt: str = "Do it.", run: str = RUN, cut: Log | None = None) -> Talk:
        """One conversation to its end; `cut`: go on with this one."""
        return asyncio.run(self._talk(url, prompt, run, cut))

    async def _talk(self, url: str, prompt: str, run: str, cut: Log | None) -> Talk:
        rows = list[dict[str, Any]]()
        talk = await opened(self.environment(run), url, wire=self.wire, seconds=self.seconds, limits=self.limits,
                            report=rows.append, more=self.more)  # fmt: skip
        if cut:
            talk.go_on(cut, prompt, run="0-worker-F-001", why="the run was ended")
        else:
            talk.begin(prompt)
        loop = talk.loop()
        try:
            end = await loop.run()
        finally:
            await talk.close()
            await talk.spec.model.close()
        return Talk(end, rows, self.run_folder(run), loop.used)

    def environment(self, run: str = RUN) -> ToolEnvironment:
        """Where the tools of a run work."""
        self.run_folder(run)
        return ToolEnvironment(folder=str(self.folder), layout=self.layout, run=run, results=self.layout.run(run).results,
                               variables={"PATH": "/usr/bin:/bin"})  # fmt: skip


async def opened(environment: ToolEnvironment, url: str = "http://127.0.0.1:1/v1", *, wire: str = "chat", seconds: float = 20.0,
                 limits: Limits = QUICK, report: Callable[[dict[str, Any]], None] = lambda row: None,
                 **more: Any) -> Conversation:  # fmt: skip
    """A conversation at its beginning, in this thread."""
    from harness.builtin.loop.model_client import ModelClient

    _one_thread.keep()
    layout = environment.layout or Layout(environment.folder)
    parameters = {"model": MODELS[wire], "base_url": url}
    spec = ConversationSpec(
        name="run of a test", environment=environment,
        history=MessageHistory(turns.TurnWriter(layout.run(environment.run or RUN).turns)),
        model=ModelClient(parameters, "key", seconds), parameters=parameters, system="You are a test.",
        budget=Budget(limits), report=report, **more,
    )  # fmt: skip
    return await Conversation.open(spec)


def at(environment: ToolEnvironment, **more: Any) -> Conversation:
    """The same, where only its tools are used."""
    return asyncio.run(opened(environment, **more))


def use(talk: Conversation, name: str, /, **given: Any) -> ToolResult:
    """A call of one of its tools."""
    return registry.call(talk.session, name, given)


class Apart(Server):
    """A model server in a process of its own: this one has one thread then, as that of the built-in agent has, and may fork. What
    a brain keeps is kept there; the process is begun anew when it gets another."""

    last: list[Seen] | None

    def __init__(self, brain: Brain, notes: str) -> None:
        self.pid, self.notes, self.last = 0, notes, None
        super().__init__(brain)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in ("brain", "trouble", "retry_after", "always") and self.pid:
            self.begin()

    @property
    def seen(self) -> list[Seen]:
        """The requests so far."""
        if self.last is not None:
            return self.last
        found = list[Seen]()
        with open(self.notes, "rb") as file:
            while file.peek(1):
                found.append(pickle.load(file))
        return found

    @seen.setter
    def seen(self, value: list[Seen]) -> None:
        Path(self.notes).write_bytes(b"".join(map(pickle.dumps, value)))

    def note(self, *words: Any, **more: Any) -> None:
        """Record a request, for this process and the other."""
        with self.guard, open(self.notes, "ab") as file:
            file.write(pickle.dumps(Seen(*words, **more)))

    def begin(self) -> None:
        """Serve, and no other with it."""
        self.end()
        self.answered = len(self.seen)
        pid = os.fork()
        if not pid:
            try:
                self.guard = threading.Lock()  # the other may be held just now
                self.serve_forever(0.05)
            finally:
                os._exit(1)
        supervise.spare(pid)
        self.pid = pid

    def end(self) -> None:
        """Serve no more."""
        if self.pid:
            supervise.unspare(self.pid)
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0


@contextmanager
def serving(brain: Brain) -> Iterator[Apart]:
    """A server that runs during the block."""
    with tempfile.NamedTemporaryFile() as notes:
        server = Apart(brain, notes.name)
        try:
            server.begin()
            yield server
        finally:
            server.end()
            server.last = server.seen
            server.server_close()


def steps(*replies: Reply | str) -> Callable[[Exchange], Reply]:
    """A brain that gives these replies in turn, by how many answers the conversation has; a text is a command, and at the end it
    is done."""
    found = [Reply("", one) if isinstance(one, str) else one for one in replies]
    return lambda exchange: found[exchange.turns] if exchange.turns < len(found) else Reply("Done.")


def calling(name: str, arguments: Any) -> Reply:
    """A reply that calls a tool."""
    return Reply("", call=Call(name, arguments))


def written(name: str, **arguments: Any) -> str:
    """A call as models write it into an answer."""
    return json.dumps({"name": name, "arguments": arguments})


def bodies(server: Server) -> list[dict[str, Any]]:
    """The requests that the server received, in order."""
    return [json.loads(one.body) for one in server.seen if one.body]
