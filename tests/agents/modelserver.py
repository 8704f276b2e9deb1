"""A model server on loopback for real agent CLIs: four wire formats, streaming or not, scripted, no network, no key.

A brain gives the answers: `brain(exchange) -> Reply`, or None for a request that is not its own (a title, a summary), which
then gets a harmless answer. The reply names a shell command to run; the server finds the client's tool for it
and fills its parameters by its schema. `Server.fail("rate_limit", 3)` makes the next three requests fail.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.agents.wires import PROMPT, WIRES, Answer, Call, Exchange, Json


@dataclass(frozen=True)
class Reply:
    """The model's message and the shell command that it requests, "" for none; or any other call. `ending` and `counted`: see
    Answer."""

    text: str
    command: str = ""
    call: Call | None = None
    ending: str = ""
    counted: bool = True


@dataclass(frozen=True)
class Seen:
    """A received request: `kind` is script, background, error, count, models or unknown; `body` as it came."""

    path: str
    kind: str
    status: int
    exchange: Exchange | None = None
    body: bytes = b""


Brain = Callable[[Exchange], Reply | None]
Trouble = Callable[["Handler", Exchange], bool]

SHELLS = (
    "exec_command",
    "shell_command",
    "run_shell_command",
    "bash",
    "Bash",
    "shell",
    "developer__shell",
    "Execute",
    "execute",
)
COMMAND_KEYS = ("cmd", "command", "script", "code", "input")
BACKGROUND = re.compile(
    r"title generator|concise title|generate a (short )?title|summarize this coding conversation", re.I
)
FAILURES: dict[str, tuple[int, str, str]] = {
    "rate_limit": (429, "rate_limit_error", "Rate limit reached for requests. Please try again in 7s."),
    "quota": (
        429,
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    "plan_limit": (429, "usage_limit_reached", "The usage limit has been reached"),
    "auth": (401, "authentication_error", "Incorrect API key provided."),
    "bad_request": (400, "invalid_request_error", "model not known"),
    "server": (500, "api_error", "The server had an error while processing your request."),
    "overloaded": (529, "overloaded_error", "Overloaded"),
}
RETRY_AFTER_SECONDS = 7
ROUTES = {
    r"/chat/completions$": "chat",
    r"/responses$": "responses",
    r"/messages$": "messages",
    r":(stream)?[gG]enerateContent$": "gemini",
}


def shell_call(command: str, tools: dict[str, Json]) -> Call | None:
    """The call of the client's shell tool, None if it offers none."""
    name = next((name for name in SHELLS if name in tools), "")
    if not name:
        return None
    properties: Json = tools[name].get("properties", {})
    key = next((key for key in COMMAND_KEYS if key in properties), "command")
    as_list = properties.get(key, {}).get("type") in ("array", "ARRAY")
    arguments: Json = {key: ["bash", "-lc", command] if as_list else command}
    for required in tools[name].get("required", []):
        arguments.setdefault(required, sample(properties.get(required, {})))
    return Call(name, arguments)


def sample(schema: Json) -> Any:
    """The smallest value that a JSON schema allows."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = str(schema.get("type", "string")).lower()
    if kind == "object":
        return {key: sample(schema.get("properties", {}).get(key, {})) for key in schema.get("required", [])}
    return {"array": [], "boolean": False, "number": 1, "integer": 1}.get(kind, "small step")


class Server(ThreadingHTTPServer):
    """The server with its brain; `seen` holds the received requests, in order. `trouble` may answer a request in the brain's
    place: it returns whether it did."""

    request_queue_size = 256  # a hundred conversations connect at once

    daemon_threads = True

    def __init__(self, brain: Brain) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.brain = brain
        self.seen: list[Seen] = []
        self.failures: list[str] = []
        self.always = ""
        self.guard = threading.Lock()
        self.answered = 0
        self.retry_after = RETRY_AFTER_SECONDS
        self.trouble: Trouble | None = None

    @property
    def url(self) -> str:
        """The address of the server, without a path."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def fail(self, kind: str, times: int = 0) -> None:
        """Fail the next requests to models with one of FAILURES; 0 times means until `fail("")`."""
        with self.guard:
            self.failures = [kind] * times
            self.always = "" if times else kind

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that disconnects is no error; anything else is a fault of ours."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # typed narrower than it is called

    def failure(self) -> str:
        """The kind of the next request's failure, "" for none."""
        with self.guard:
            return self.failures.pop(0) if self.failures else self.always

    def note(self, path: str, kind: str, status: int, exchange: Exchange | None = None, body: bytes = b"") -> None:
        """Record a request."""
        with self.guard:
            self.seen.append(Seen(path, kind, status, exchange, body))

    def answer(self, exchange: Exchange) -> tuple[str, Answer]:
        """The kind of the request and the brain's answer, or a harmless one."""
        with self.guard:
            self.answered += 1
            number = self.answered
        background = exchange.schema or BACKGROUND.search(exchange.text[:6000])
        said = None if background else self.brain(exchange)
        if said is None:
            text = json.dumps(sample(exchange.schema)) if exchange.schema else "A small task"
            return "background", Answer(text, None, exchange.model, number)
        call = shell_call(said.command, exchange.tools) if said.command else said.call
        return "script", Answer(said.text, call, exchange.model, number, said.ending, said.counted)


class Handler(BaseHTTPRequestHandler):
    """One request. Bodies, also those of events, are sent whole with their length."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server
    raw = b""  # the body of the request

    def log_message(self, *args: object) -> None:
        """Print nothing: `seen` has the requests."""

    def do_HEAD(self) -> None:
        """Answer a check that the server is up."""
        self.server.note(self.path, "unknown", 200)
        self.send(200, b"")

    def do_GET(self) -> None:
        """The list of models, in a shape that OpenAI's, Anthropic's and Google's clients read."""
        if "/models" not in self.path:
            self.server.note(self.path, "unknown", 404)
            self.send_json(404, {"error": {"message": "not here"}})
            return
        ids = ("fake-model", "gpt-5.2", "claude-sonnet-4-5", "gemini-2.5-pro")
        rows = [{"id": name, "object": "model", "type": "model", "display_name": name, "created": 1} for name in ids]
        names = [{"name": f"models/{name}", "displayName": name} for name in ids]
        self.server.note(self.path, "models", 200)
        self.send_json(200, {"object": "list", "data": rows, "models": names, "has_more": False})

    def do_POST(self) -> None:
        """A request to a model, or to count tokens."""
        raw = self.raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.split("?")[0]
        wire = next((name for pattern, name in ROUTES.items() if re.search(pattern, path)), "")
        if re.search(r"(:countTokens|/count_tokens)$", path):
            self.server.note(self.path, "count", 200)
            self.send_json(200, {"input_tokens": PROMPT, "totalTokens": PROMPT})
        elif wire:
            self.model(wire, path, raw)
        else:
            self.server.note(self.path, "unknown", 200)
            self.send_json(200, {})

    def model(self, wire: str, path: str, raw: bytes) -> None:
        """Answer for a model, or fail as configured."""
        exchange = WIRES[wire].read(json.loads(raw))
        if wire == "gemini":
            name = path.rsplit("/", 1)[1].split(":")[0]
            exchange = replace(exchange, model=name, stream=":stream" in path)
        if self.server.trouble and self.server.trouble(self, exchange):
            self.server.note(self.path, "error", 0, exchange, raw)
            return
        failure = self.server.failure()
        if failure:
            status, kind, message = FAILURES[failure]
            self.server.note(self.path, "error", status, exchange, raw)
            self.send_json(status, WIRES[wire].error(status, kind, message), failed=failure)
            return
        seen, answer = self.server.answer(exchange)
        self.server.note(self.path, seen, 200, exchange, raw)
        if not exchange.stream:
            self.send_json(200, WIRES[wire].whole(answer))
            return
        lines = []
        for name, value in WIRES[wire].events(answer):
            lines.append((f"event: {name}\n" if name else "") + f"data: {json.dumps(value)}\n\n")
        ending = "data: [DONE]\n\n" if wire == "chat" else ""
        self.send(200, ("".join(lines) + ending).encode(), "text/event-stream")

    def send_json(self, status: int, value: Json, failed: str = "") -> None:
        """A JSON body; a limit states when to retry."""
        more = {"retry-after": str(self.server.retry_after)} if failed == "rate_limit" else {}
        self.send(status, json.dumps(value).encode(), "application/json", more)

    def send(self, status: int, data: bytes, kind: str = "text/plain", more: dict[str, str] | None = None) -> None:
        """Status, headers, body."""
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


@contextmanager
def serving(brain: Brain) -> Iterator[Server]:
    """A server that runs during the block."""
    server = Server(brain)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
