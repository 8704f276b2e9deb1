"""What strict vendors refuse with status 400, in their words, format by format. `server.trouble = strict` makes a model server as
strict."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import jsonschema

from tests.agents.modelserver import Handler
from tests.agents.wires import WIRES, Exchange, Json

BLANK = "messages: text content blocks must contain non-whitespace text"
UNKNOWN = "Unrecognized request argument supplied: {}"
KNOWN = {"messages", "model", "max_tokens", "parallel_tool_calls", "stream", "stream_options", "temperature"}
KNOWN |= {"tool_choice", "tools"}
NAME, GOOGLE_NAME = r"[a-zA-Z0-9_-]{1,64}", r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}"
IDS = {"chat": r".{1,40}", "responses": r".{1,64}", "messages": r"[a-zA-Z0-9_-]{1,64}"}
STARTS = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8", "image/webp": b"RIFF"}
MOST_TOOLS = 128
AT_ROOT = ("oneOf", "anyOf", "allOf", "enum", "not")
DEEPEST = 30  # levels of a schema


def strict(handler: Handler, exchange: Exchange) -> bool:
    """Refuse the request, where its vendor would."""
    fault = next(faults(exchange.wire, json.loads(handler.raw)), "")
    if fault:
        handler.send_json(400, WIRES[exchange.wire].error(400, "invalid_request_error", fault))
    return bool(fault)


def faults(wire: str, body: Json) -> Iterator[str]:
    """What is wrong with a request in this format."""
    yield from OF[wire](body)
    tools = _tools(wire, body)
    names = [name for name, _ in tools]
    yield from (f"tools: the name '{name}' is not unique" for name in {*names} if names.count(name) > 1)
    pattern = GOOGLE_NAME if wire == "gemini" else NAME
    yield from (f"tools: '{name}' does not match {pattern}" for name in names if not re.fullmatch(pattern, name))
    if len(tools) > MOST_TOOLS and wire in ("chat", "responses"):
        yield f"Invalid 'tools': array too long. Expected at most {MOST_TOOLS}, but got {len(tools)} instead."
    for number, (name, schema) in enumerate(tools):
        where = f"Invalid schema for function '{name}'" if wire != "messages" else f"tools.{number}.custom.input_schema"
        yield from (f"{where}: {one}" for one in schema_faults(schema))


def schema_faults(schema: Any) -> Iterator[str]:
    """What is wrong with the parameters of a tool."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        yield "schema must be a JSON Schema of 'type: \"object\"'"
        return
    yield from (f"schema must not have '{key}' at the top level" for key in AT_ROOT if key in schema)
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except (jsonschema.SchemaError, RecursionError) as fault:
        yield f"JSON schema is invalid: {str(fault).splitlines()[0]}"
        return
    yield from _level_faults(schema, schema, 1)


def _level_faults(schema: Any, root: Json, depth: int) -> Iterator[str]:
    if depth > DEEPEST:
        yield "nested too deeply"
    if isinstance(schema, bool) or depth > DEEPEST:
        return
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if "array" in kinds and not isinstance(schema.get("items"), dict):
        yield "array schema missing items"
    if "object" in kinds and not isinstance(schema.get("properties"), dict):
        yield "object schema missing properties"
    if schema.get("enum") == []:
        yield "enum is empty"
    missing = [name for name in schema.get("required", ()) if name not in schema.get("properties", {})]
    yield from (f"required: '{name}' is no property" for name in missing)
    if isinstance(ref := schema.get("$ref"), str) and not _there(root, ref):
        yield f"$ref {ref} cannot be resolved"
    for name in ("properties", "$defs", "definitions"):
        for one in schema.get(name, {}).values():
            yield from ["a property is no object"] if isinstance(one, bool) else []
            yield from _level_faults(one, root, depth + 1)
    for name in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for one in schema.get(name, ()):
            yield from _level_faults(one, root, depth + 1)
    for name in ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"):
        yield from _level_faults(schema.get(name, True), root, depth + 1)


def _there(root: Json, ref: str) -> bool:
    node: Any = root
    for step in ref.removeprefix("#").split("/")[1:]:
        node = node.get(step) if isinstance(node, dict) else None
    return ref.startswith("#") and isinstance(node, dict)


def _tools(wire: str, body: Json) -> list[tuple[str, Any]]:
    given = body.get("tools", [])
    if wire == "gemini":
        rows = [one for tool in given for one in tool["functionDeclarations"]]
        return [(one["name"], one.get("parameters_json_schema", one.get("parameters"))) for one in rows]
    rows = [tool["function"] for tool in given] if wire == "chat" else given
    return [(one["name"], one.get("parameters", one.get("input_schema"))) for one in rows]


def _chat(body: Json) -> Iterator[str]:
    yield from (UNKNOWN.format(name) for name in body if name not in KNOWN)
    open_calls: list[str] = []
    for number, one in enumerate(body["messages"]):
        where = f"messages.[{number}]"
        if one["role"] == "tool":
            if one["tool_call_id"] not in open_calls:
                yield "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'"
                continue
            open_calls.remove(one["tool_call_id"])
            continue
        if open_calls:
            yield "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
        calls = one.get("tool_calls", [])
        open_calls = [call["id"] for call in calls]
        yield from _call_faults("chat", [(call["id"], call["function"]["name"]) for call in calls])
        for call in calls:
            if not isinstance(_object(call["function"]["arguments"]), dict):
                yield f"{where}: the arguments of a call are no JSON object"
        content = one.get("content")
        if content is None and not calls:
            yield f"Invalid value for 'content': expected a string, got null ({where})"
        blocks = content if isinstance(content, list) else []
        yield from _images(one["image_url"]["url"] for one in blocks if one["type"] == "image_url")
    if open_calls:
        yield "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
    if body["messages"][-1]["role"] == "assistant":
        yield "the last message must not be the assistant's"


def _responses(body: Json) -> Iterator[str]:
    calls, done = list[str](), list[str]()
    for number, one in enumerate(body["input"]):
        kind = one.get("type", "message")
        following = body["input"][number + 1].get("type", "message") if number + 1 < len(body["input"]) else ""
        if kind == "function_call":
            calls.append(one["call_id"])
            if not isinstance(_object(one["arguments"]), dict):
                yield "the arguments of a call are no JSON object"
            if not one.get("id", "fc_").startswith("fc"):
                yield f"Invalid 'input[{number}].id': '{one['id']}'. Expected an ID that begins with 'fc'."
            yield from _call_faults("responses", [(one["call_id"], one["name"])])
        elif kind == "function_call_output":
            done.append(one["call_id"])
            if one["call_id"] not in calls:
                yield f"No tool call found for function call output with call_id {one['call_id']}."
        elif kind == "reasoning":
            if following not in ("reasoning", "function_call") and (
                following != "message" or body["input"][number + 1]["role"] != "assistant"
            ):
                yield f"Item '{one.get('id')}' of type 'reasoning' was provided without its required following item."
            if one.get("id") is not None and not one["id"].startswith("rs"):
                yield f"Invalid 'input[{number}].id': '{one['id']}'. Expected an ID that begins with 'rs'."
        elif isinstance(one["content"], list):
            yield from _images(part["image_url"] for part in one["content"] if part["type"] == "input_image")
            if one.get("id") is not None and not one["id"].startswith("msg"):
                yield f"Invalid 'input[{number}].id': '{one['id']}'. Expected an ID that begins with 'msg'."
    yield from (f"No tool output found for function call {one}." for one in calls if one not in done)
    if len({*calls}) < len(calls) or len({*done}) < len(done):
        yield "Duplicate call_id"
    if not body["input"]:
        yield "Invalid 'input': it is empty"


def _messages(body: Json) -> Iterator[str]:
    given, ids = body["messages"], list[str]()
    system = body.get("system", [])
    if any(not block["text"].strip() for block in (system if isinstance(system, list) else [])):
        yield "system: text content blocks must contain non-whitespace text"
    if not given or given[0]["role"] != "user":
        yield 'messages: first message must use the "user" role'
    if given and given[-1]["role"] == "assistant":
        yield "This model does not support assistant message prefill. The conversation must end with a user message."
    before: list[str] = []
    turns = list[tuple[str, list[Json]]]()
    for one in given:  # the vendor joins turns of one role
        blocks = one["content"] if isinstance(one["content"], list) else [{"type": "text", "text": one["content"]}]
        if not blocks:
            yield "messages: all messages must have non-empty content"
        if one["role"] == "assistant" and blocks and blocks[-1]["type"].endswith("thinking"):
            yield "messages: The final block in an assistant message cannot be `thinking`."
        if turns and turns[-1][0] == one["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((one["role"], [*blocks]))
    for _, blocks in turns:
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if any(one not in before for one in results):
            yield "messages: unexpected `tool_use_id` found in `tool_result` blocks"
        if any(one not in results for one in before):
            yield "messages: `tool_use` ids were found without `tool_result` blocks immediately after"
        if len({*results}) < len(results):
            yield "messages: each tool_use must have a single result"
        before = [block["id"] for block in blocks if block["type"] == "tool_use"]
        ids += before
        yield from _call_faults("messages", [(one["id"], one["name"]) for one in blocks if one["type"] == "tool_use"])
        inner = [part for one in blocks if one["type"] == "tool_result" for part in _content(one)]
        for block in (*blocks, *inner):
            if block["type"] == "text" and not block["text"].strip():
                yield BLANK
            if block["type"] == "thinking" and not block.get("signature"):
                yield "messages: thinking.signature: Field required"
            if block["type"] == "tool_use" and not isinstance(block["input"], dict):
                yield "messages: tool_use.input: Input should be a valid dictionary"
            if block["type"] == "tool_result" and block.get("is_error") and not _content(block):
                yield "messages: tool_result: content cannot be empty if `is_error` is true"
            if block["type"] == "image":
                kind, data = block["source"]["media_type"], block["source"]["data"]
                yield from _images([f"data:{kind};base64,{data}"])
    if before:
        yield "messages: `tool_use` ids were found without `tool_result` blocks immediately after"
    if len({*ids}) < len(ids):
        yield "messages: `tool_use` ids must be unique"


def _content(block: Json) -> list[Json]:
    content = block.get("content") or []
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _gemini(body: Json) -> Iterator[str]:
    contents, before = body["contents"], None
    if not contents or contents[0]["role"] != "user":
        yield "Please ensure that the conversation begins with a user turn"
    if contents and contents[-1]["role"] == "model":
        yield "Please ensure that the last turn is that of a user"
    open_calls = 0
    for one in contents:
        parts = one.get("parts") or []
        if not parts:
            yield "Unable to submit request because it must include at least one parts field"
        if any(part.get("text") == "" for part in parts):
            yield "Unable to submit request because it has an empty text parameter"
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        if calls and (before is None or before == "model"):
            yield "Please ensure that function call turn comes immediately after a user turn or a function response turn."
        if len(results) != open_calls:
            yield "Please ensure that the number of function response parts is equal to that of the function call parts."
        open_calls = len(calls)
        for call in (*calls, *results):
            if not re.fullmatch(GOOGLE_NAME, call["name"]):
                yield f"Invalid function name '{call['name']}'"
        data = [part["inlineData"] for part in parts if "inlineData" in part]
        yield from _images(f"data:{row['mime_type']};base64,{row['data']}" for row in data)
        before = one["role"]
    if open_calls:
        yield "Please ensure that function call turns are followed by function response turns."


def _call_faults(wire: str, calls: list[tuple[str, str]]) -> Iterator[str]:
    for call, name in calls:
        if not re.fullmatch(IDS[wire], call):
            yield f"the id of a call is '{call}': it should match {IDS[wire]}"
        if not re.fullmatch(NAME, name):
            yield f"the name of a call is '{name}': it should match {NAME}"
    if len({call for call, _ in calls}) < len(calls):
        yield "the ids of calls must be unique"


def _images(urls: Any) -> Iterator[str]:
    for url in urls:
        kind, _, data = url.removeprefix("data:").partition(";base64,")
        found = b64decode(data.replace("-", "+").replace("_", "/"))
        if kind not in STARTS or not found.startswith(STARTS[kind]):
            yield f"Image does not match the provided media type {kind}"


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


OF = {"chat": _chat, "responses": _responses, "messages": _messages, "gemini": _gemini}
