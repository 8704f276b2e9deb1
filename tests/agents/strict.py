"""What strict vendors refuse with status 400: Anthropic a text of white space, servers of the chat format a field that they do
not know. `server.trouble = strict` makes a model server as strict."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.agents.modelserver import Handler
from tests.agents.wires import WIRES, Exchange, Json

BLANK = "messages: text content blocks must contain non-whitespace text"
UNKNOWN = "Unrecognized request argument supplied: {}"
KNOWN = {"messages", "model", "max_tokens", "parallel_tool_calls", "stream", "stream_options", "temperature"}
KNOWN |= {"tool_choice", "tools"}


def strict(handler: Handler, exchange: Exchange) -> bool:
    """Refuse the request, where its vendor would."""
    fault = next(faults(exchange.wire, json.loads(handler.raw)), "")
    if fault:
        handler.send_json(400, WIRES[exchange.wire].error(400, "invalid_request_error", fault))
    return bool(fault)


def faults(wire: str, body: Json) -> Iterator[str]:
    """What is wrong with a request in this format."""
    if wire == "chat":
        yield from (UNKNOWN.format(name) for name in body if name not in KNOWN)
    contents = [one["content"] for one in body.get("messages", []) if wire == "messages"]
    blocks = [block for content in contents for block in content if isinstance(block, dict)]
    yield from (BLANK for block in blocks if block["type"] == "text" and not block["text"].strip())
