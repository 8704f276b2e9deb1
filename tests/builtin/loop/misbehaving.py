"""What a model server does to one request, in the format that it is asked in; and a server that plays such steps in turn."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from tests.agents.modelserver import Handler, Server
from tests.agents.wires import Exchange
from tests.builtin.loop.streams import DONE, Json, Part, Text, event, events

Step = Callable[[Handler, str], None]
Trouble = Callable[[Handler, Exchange], bool]

PLAIN, EVENTS, PAGE = "application/json", "text/event-stream", "text/html"
PLAYED = "played"  # the kind of a request to a server that plays steps
QUOTA = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "RequestsPerDay-FreeTier"}]}
BAD_KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}
ERRORS: dict[str, dict[str, tuple[int, str, str]]] = {  # (status, type, words), as each vendor has them
    "limited": {
        "openai": (429, "rate_limit_exceeded", "Rate limit reached for requests."),
        "messages": (429, "rate_limit_error", "This request would exceed your rate limit."),
        "gemini": (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted."),
    },
    "quota": {
        "openai": (429, "insufficient_quota", "You exceeded your current quota."),
        "messages": (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
        "gemini": (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.\n* Quota exceeded: 50\nPlease retry in 7s."),
    },
    "key": {
        "openai": (401, "invalid_api_key", "Incorrect API key provided."),
        "messages": (401, "authentication_error", "invalid x-api-key"),
        "gemini": (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    },
    "forbidden": {
        "openai": (403, "permission_error", "You are not allowed to use this model."),
        "messages": (403, "permission_error", "Your API key does not have permission to use this model."),
        "gemini": (403, "PERMISSION_DENIED", "Permission denied on resource."),
    },
    "unknown": {
        "openai": (404, "model_not_found", "The model does not exist."),
        "messages": (404, "not_found_error", "model: none"),
        "gemini": (404, "NOT_FOUND", "models/none is not found for API version v1beta."),
    },
    "invalid": {
        "openai": (400, "invalid_request_error", "Invalid 'temperature'."),
        "messages": (400, "invalid_request_error", "temperature: range: -1..1"),
        "gemini": (400, "INVALID_ARGUMENT", "temperature must be in the range [0.0, 2.0]."),
    },
    "too long": {
        "openai": (400, "context_length_exceeded", "This model's maximum context length is 100 tokens."),
        "messages": (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        "gemini": (400, "INVALID_ARGUMENT", "The input token count (120) exceeds the maximum number of tokens allowed (100)."),
    },
    "down": {
        "openai": (503, "service_unavailable", "The engine is currently overloaded."),
        "messages": (529, "overloaded_error", "Overloaded"),
        "gemini": (503, "UNAVAILABLE", "The model is overloaded."),
    },
}  # fmt: skip
DETAILS: dict[str, list[Json]] = {"quota": [QUOTA], "key": [BAD_KEY]}


def vendors(wire: str) -> str:
    """Whose errors a format has."""
    return "openai" if wire in ("chat", "responses") else wire


def error(wire: str, kind: str, delay: float | None = None) -> tuple[int, Json]:
    """The status and the body of an error. `delay`: the seconds that Google writes into it."""
    status, name, words = ERRORS[kind][vendors(wire)]
    if wire == "messages":
        return status, {"type": "error", "error": {"type": name, "message": words}, "request_id": "req_1"}
    if wire == "gemini":
        more = [*DETAILS.get(kind, [])]
        if delay is not None:
            more.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{delay}s"})
        return status, {"error": {"code": status, "message": words, "status": name, "details": more}}
    return status, {"error": {"message": words, "type": name, "param": None, "code": name}}


def fails(kind: str, delay: float | None = None) -> Step:
    """The vendor's own error. `delay`: in seconds, in Google's body and in the header of the others."""

    def step(handler: Handler, wire: str) -> None:
        status, value = error(wire, kind, delay)
        header = {} if delay is None or wire == "gemini" else {"retry-after": str(delay)}
        handler.send(status, json.dumps(value).encode(), PLAIN, header)

    return step


def breaks(kind: str, mark: str = "") -> Step:
    """An error as an event of the stream, behind the first event with this text."""

    def step(handler: Handler, wire: str) -> None:
        value = error(wire, kind)[1]
        if wire == "responses":
            value = {**value["error"], "type": "error", "sequence_number": 9}
        handler.send(200, b"".join(before(wire, mark)) + event(wire, value), EVENTS)

    return step


def before(wire: str, mark: str, *parts: Part) -> list[bytes]:
    """The events of an answer up to the first one with this text; none without a text."""
    found = events(wire, *(parts or (Text(("Half of it", " and the rest")),)))
    at = next((number for number, one in enumerate(found, 1) if mark.encode() in one), 0)
    return found[:at] if mark else []


def says(*parts: Part, ending: str = DONE, counted: bool = True) -> Step:
    """A whole answer."""
    return lambda handler, wire: handler.send(
        200, b"".join(events(wire, *parts, ending=ending, counted=counted)), EVENTS
    )


def ends(mark: str, *parts: Part) -> Step:
    """The connection is closed in an orderly way behind the event with this text."""
    return lambda handler, wire: handler.send(200, b"".join(before(wire, mark, *parts)), EVENTS)


def tears(mark: str, *parts: Part) -> Step:
    """The connection breaks behind the event with this text, or before the first byte of the body."""

    def step(handler: Handler, wire: str) -> None:
        handler.send(200, b"".join(before(wire, mark, *parts)), EVENTS, {"Content-Length": "100000"})
        handler.close_connection = True

    return step


def sends(status: int, body: str, kind: str = PLAIN, **headers: str) -> Step:
    """This, whatever the format."""
    return lambda handler, wire: handler.send(status, body.encode(), kind, headers)


def hangs_up(handler: Handler, wire: str) -> None:
    """No answer at all."""
    handler.close_connection = True


def drips(handler: Handler, wire: str) -> None:
    """A stream without an end, until the client leaves."""
    handler.send(200, b"", EVENTS, {"Content-Length": "100000000"})
    handler.close_connection = True
    piece = before(wire, "Half")
    try:
        while True:
            handler.wfile.write(b"".join(piece))
            time.sleep(0.02)
    except OSError:
        pass


def silent(handler: Handler, wire: str) -> None:
    """Not a byte, for longer than any test waits."""
    handler.close_connection = True
    time.sleep(5)


def played(*steps: Step, forever: bool = False) -> Trouble:
    """Answers the requests with these steps in turn, then with the last one again, or with "Done."."""
    left = list(steps)

    def trouble(handler: Handler, exchange: Exchange) -> bool:
        handler.server.note(handler.path, PLAYED, 0, exchange, handler.raw)
        done = says(Text(("Done.",)))
        step = left[0] if forever and len(left) == 1 else left.pop(0) if left else done
        step(handler, exchange.wire)
        return True

    return trouble


def bodies(server: Server) -> list[str]:
    """The requests to a server that plays steps."""
    return [one.body.decode() for one in server.seen if one.kind == PLAYED]
