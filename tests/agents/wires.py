"""Four wire formats of model vendors, in the parts that agent CLIs need: a body gives an Exchange, an Answer gives bytes.

`chat` and `responses` (OpenAI), `messages` (Anthropic), `gemini` (Google): each a Wire with `read`, `whole` (one JSON
object), `events` (server-sent events as (name, object) pairs) and `error`. Every answer counts the same tokens, TOKENS.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

Json = dict[str, Any]
Events = Iterator[tuple[str, Json]]

TOKENS = {"uncached": 500, "read": 400, "write": 100, "output": 50, "reasoning": 20}
"""What every answer says that it cost; output includes reasoning; vendors without cache writes count them as uncached."""
PLAN_RESETS_AT = 4_102_444_800  # the start of the year 2100
REFUSES, CUT = "refusal", "length"
PROMPT = TOKENS["uncached"] + TOKENS["read"] + TOKENS["write"]


@dataclass(frozen=True)
class Exchange:
    """A request as every brain sees it: all prompt texts, the tool results so far (oldest first), and the tools offered
    as name -> JSON schema of the parameters. `schema` is the form that the answer must have, {} for free text."""

    wire: str
    model: str
    text: str
    results: list[str]
    turns: int
    tools: dict[str, Json]
    schema: Json = field(default_factory=dict)
    stream: bool = False


@dataclass(frozen=True)
class Call:
    """A tool call: its name and arguments, or a text that a model wrote in their place."""

    name: str
    arguments: Json | str


def packed(arguments: Json | str) -> str:
    """Arguments as a model writes them: JSON, or a text that is none."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


@dataclass(frozen=True)
class Answer:
    """The model's message, and its tool call, if any. `number` makes ids unique. `ending`: "" as usual, REFUSES: the text is a
    refusal, CUT: it met the limit of one output. `counted`: whether the server says how many tokens it took."""

    text: str
    call: Call | None
    model: str
    number: int
    ending: str = ""
    counted: bool = True


class Wire(Protocol):
    """One vendor's format."""

    def read(self, body: Json) -> Exchange:
        """The request."""

    def whole(self, answer: Answer) -> Json:
        """The answer as one object."""

    def events(self, answer: Answer) -> Events:
        """The answer as server-sent events; a name of "" is left out."""

    def error(self, status: int, kind: str, message: str) -> Json:
        """The body of an error."""


def texts(content: object) -> str:
    """All text in a message's content, however it is nested."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(texts(part) for part in content)
    if isinstance(content, dict):
        return texts(content.get("text") or content.get("content") or content.get("parts") or "")
    return ""


class Chat:
    """OpenAI's /v1/chat/completions."""

    def read(self, body: Json) -> Exchange:
        """Roles are system, developer, user, assistant and tool."""
        messages = body["messages"]
        form = body.get("response_format", {})
        return Exchange(
            wire="chat",
            model=body.get("model", ""),
            text="\n".join(texts(m.get("content")) for m in messages if m["role"] not in ("assistant", "tool")),
            results=[texts(m.get("content")) for m in messages if m["role"] == "tool"],
            turns=sum(m["role"] == "assistant" for m in messages),
            tools={t["function"]["name"]: t["function"].get("parameters", {}) for t in body.get("tools") or []},
            schema=form.get("json_schema", {}).get("schema", {"type": "object"} if "json" in str(form) else {}),
            stream=bool(body.get("stream")),
        )

    def usage(self) -> Json:
        """Cached tokens are a part of the prompt's."""
        return {
            "prompt_tokens": PROMPT,
            "completion_tokens": TOKENS["output"],
            "total_tokens": PROMPT + TOKENS["output"],
            "prompt_tokens_details": {"cached_tokens": TOKENS["read"]},
            "completion_tokens_details": {"reasoning_tokens": TOKENS["reasoning"]},
        }

    def message(self, answer: Answer) -> Json:
        """The assistant's message."""
        said: Json = {"role": "assistant", "content": answer.text or None}
        if answer.ending == REFUSES:
            said = {"role": "assistant", "content": None, "refusal": answer.text}
        if answer.call:
            function = {"name": answer.call.name, "arguments": packed(answer.call.arguments)}
            said["tool_calls"] = [{"id": f"call_{answer.number}", "type": "function", "function": function}]
        return said

    def frame(self, answer: Answer, kind: str, **more: object) -> Json:
        """The fields around every object."""
        return {"id": f"chat-{answer.number}", "object": kind, "created": 1, "model": answer.model, **more}

    def whole(self, answer: Answer) -> Json:
        """One choice."""
        choice = {"index": 0, "message": self.message(answer), "finish_reason": self.reason(answer)}
        usage = {"usage": self.usage()} if answer.counted else {}
        return self.frame(answer, "chat.completion", choices=[choice], **usage)

    def reason(self, answer: Answer) -> str:
        """Why it stops."""
        return "length" if answer.ending == CUT else "tool_calls" if answer.call else "stop"

    def events(self, answer: Answer) -> Events:
        """The message in one delta, the reason to stop, then the usage."""
        kind = "chat.completion.chunk"
        delta = self.message(answer)
        delta["tool_calls"] = [{"index": 0, **call} for call in delta.get("tool_calls", [])]
        if not answer.call:
            del delta["tool_calls"]
        yield "", self.frame(answer, kind, choices=[{"index": 0, "delta": delta, "finish_reason": None}])
        yield "", self.frame(answer, kind, choices=[{"index": 0, "delta": {}, "finish_reason": self.reason(answer)}])
        if answer.counted:
            yield "", self.frame(answer, kind, choices=[], usage=self.usage())

    def error(self, status: int, kind: str, message: str) -> Json:
        """OpenAI has the code next to the type; a plan's limit states when it ends."""
        plan = {"plan_type": "plus", "resets_at": PLAN_RESETS_AT} if kind == "usage_limit_reached" else {}
        return {"error": {"message": message, "type": kind, "param": None, "code": kind, **plan}}


def _begun(item: Json) -> Json:
    """An item as it is added: what it holds comes in pieces."""
    return {**item, **({"content": []} if item["type"] == "message" else {"arguments": ""})}


class Responses:
    """OpenAI's /v1/responses."""

    def read(self, body: Json) -> Exchange:
        """Input is a text or a list of items: messages, calls and their outputs."""
        items = body["input"] if isinstance(body["input"], list) else [{"role": "user", "content": body["input"]}]
        said = [i for i in items if i.get("type", "message") == "message"]
        form = body.get("text", {}).get("format", {})
        tools = [t for t in body.get("tools") or [] if t.get("type") == "function"]
        return Exchange(
            wire="responses",
            model=body.get("model", ""),
            text="\n".join(
                [body.get("instructions") or "", *(texts(i["content"]) for i in said if i.get("role") != "assistant")]
            ),
            results=[texts(i.get("output")) for i in items if str(i.get("type")).endswith("_call_output")],
            turns=sum(i.get("role") == "assistant" or str(i.get("type")).endswith("_call") for i in items),
            tools={t["name"]: t.get("parameters", {}) for t in tools},
            schema=form.get("schema", {}),
            stream=bool(body.get("stream")),
        )

    def items(self, answer: Answer) -> list[Json]:
        """The output's items: a message, a call."""
        found: list[Json] = []
        if answer.text:
            part: Json = {"type": "output_text", "text": answer.text, "annotations": []}
            if answer.ending == REFUSES:
                part = {"type": "refusal", "refusal": answer.text}
            message = {"type": "message", "id": f"msg_{answer.number}", "role": "assistant", "status": "completed"}
            found.append({**message, "content": [part]})
        if answer.call:
            call = {"name": answer.call.name, "arguments": packed(answer.call.arguments)}
            ids = {"id": f"fc_{answer.number}", "call_id": f"call_{answer.number}"}
            found.append({"type": "function_call", "status": "completed", **ids, **call})
        return found

    def whole(self, answer: Answer, done: bool = True) -> Json:
        """The response with its usage: cached tokens are a part of the input's."""
        usage = {
            "input_tokens": PROMPT,
            "input_tokens_details": {"cached_tokens": TOKENS["read"]},
            "output_tokens": TOKENS["output"],
            "output_tokens_details": {"reasoning_tokens": TOKENS["reasoning"]},
            "total_tokens": PROMPT + TOKENS["output"],
        }
        frame = {"id": f"resp_{answer.number}", "object": "response", "created_at": 1, "model": answer.model}
        if not done:
            return {**frame, "status": "in_progress", "output": [], "usage": None}
        ended: Json = {"status": "completed"}
        if answer.ending == CUT:
            ended = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        return {**frame, **ended, "output": self.items(answer), "usage": usage if answer.counted else None}

    def events(self, answer: Answer) -> Events:
        """Created, each item added, filled and done, then completed."""
        plain: list[tuple[str, Json]] = [("response.created", {"response": self.whole(answer, done=False)})]
        for index, item in enumerate(self.items(answer)):
            where: Json = {"output_index": index, "item_id": item["id"]}
            plain.append(("response.output_item.added", {"output_index": index, "item": _begun(item)}))
            if item["type"] == "message":
                name = "response.refusal.delta" if answer.ending == REFUSES else "response.output_text.delta"
                plain.append((name, {**where, "content_index": 0, "delta": answer.text}))
            else:
                plain.append(("response.function_call_arguments.delta", {**where, "delta": item["arguments"]}))
            plain.append(("response.output_item.done", {"output_index": index, "item": item}))
        ended = "response.incomplete" if answer.ending == CUT else "response.completed"
        plain.append((ended, {"response": self.whole(answer)}))
        for number, (name, value) in enumerate(plain):
            yield name, {"type": name, "sequence_number": number, **value}

    def error(self, status: int, kind: str, message: str) -> Json:
        """As in chat."""
        return Chat().error(status, kind, message)


class Messages:
    """Anthropic's /v1/messages."""

    def read(self, body: Json) -> Exchange:
        """Tool results are parts of the user's messages."""
        blocks = [
            (m["role"], block)
            for m in body["messages"]
            for block in (m["content"] if isinstance(m["content"], list) else [{"type": "text", "text": m["content"]}])
        ]
        mine = [block for role, block in blocks if role == "user" and block.get("type") == "text"]
        form = body.get("output_config", {}).get("format", {}) or body.get("output_format", {}) or {}
        return Exchange(
            wire="messages",
            model=body.get("model", ""),
            text="\n".join([texts(body.get("system")), *(texts(block) for block in mine)]),
            results=[texts(block.get("content")) for _, block in blocks if block.get("type") == "tool_result"],
            turns=sum(m["role"] == "assistant" for m in body["messages"]),
            tools={t["name"]: t.get("input_schema", {}) for t in body.get("tools") or []},
            schema=form.get("schema", {}),
            stream=bool(body.get("stream")),
        )

    def usage(self) -> Json:
        """Input excludes tokens read from the cache and written to it."""
        return {
            "input_tokens": TOKENS["uncached"],
            "cache_creation_input_tokens": TOKENS["write"],
            "cache_read_input_tokens": TOKENS["read"],
            "output_tokens": TOKENS["output"],
        }

    def whole(self, answer: Answer) -> Json:
        """The message with its blocks."""
        blocks: list[Json] = [{"type": "text", "text": answer.text}] if answer.text else []
        if answer.call:
            call = {"name": answer.call.name, "input": answer.call.arguments}
            blocks.append({"type": "tool_use", "id": f"toolu_{answer.number:024d}", **call})
        frame = {"id": f"msg_{answer.number:024d}", "type": "message", "role": "assistant", "model": answer.model}
        usual = "tool_use" if answer.call else "end_turn"
        reason = {REFUSES: "refusal", CUT: "max_tokens"}.get(answer.ending, usual)
        return {**frame, "content": blocks, "stop_reason": reason, "stop_sequence": None, "usage": self.usage()}

    def events(self, answer: Answer) -> Events:
        """The message begins empty, then its blocks, then the stop reason."""
        message = self.whole(answer)
        begun = {**message, "content": [], "stop_reason": None, "usage": {**self.usage(), "output_tokens": 1}}
        yield "message_start", {"type": "message_start", "message": begun}
        for index, block in enumerate(message["content"]):
            empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
            delta = {"type": "text_delta", "text": block.get("text", "")}
            if block["type"] == "tool_use":
                delta = {"type": "input_json_delta", "partial_json": packed(block["input"])}
            where: Json = {"index": index}
            yield "content_block_start", {"type": "content_block_start", **where, "content_block": empty}
            yield "content_block_delta", {"type": "content_block_delta", **where, "delta": delta}
            yield "content_block_stop", {"type": "content_block_stop", **where}
        stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        yield "message_delta", {"type": "message_delta", "delta": stop, "usage": self.usage()}
        yield "message_stop", {"type": "message_stop"}

    def error(self, status: int, kind: str, message: str) -> Json:
        """The type is inside the error object."""
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


class Gemini:
    """Google's generateContent and streamGenerateContent?alt=sse."""

    def read(self, body: Json) -> Exchange:
        """Tool results are functionResponse parts. The model is in the path."""
        parts = [(content.get("role"), part) for content in body["contents"] for part in content["parts"]]
        declared = [d for tool in body.get("tools") or [] for d in tool.get("functionDeclarations", [])]
        form = body.get("generationConfig") or {}
        return Exchange(
            wire="gemini",
            model="",
            text="\n".join(
                [texts(body.get("systemInstruction")), *(texts(part) for role, part in parts if role != "model")]
            ),
            results=[json.dumps(p["functionResponse"].get("response")) for _, p in parts if "functionResponse" in p],
            turns=sum(content.get("role") == "model" for content in body["contents"]),
            tools={d["name"]: d.get("parametersJsonSchema") or d.get("parameters") or {} for d in declared},
            schema=form.get("responseJsonSchema") or form.get("responseSchema") or {},
        )

    def whole(self, answer: Answer) -> Json:
        """One candidate; thoughts are counted beside the candidates' tokens, cached ones within the prompt's."""
        parts: list[Json] = [{"text": answer.text}] if answer.text else []
        if answer.call:
            parts.append({"functionCall": {"name": answer.call.name, "args": answer.call.arguments}})
        usage = {
            "promptTokenCount": PROMPT,
            "candidatesTokenCount": TOKENS["output"] - TOKENS["reasoning"],
            "thoughtsTokenCount": TOKENS["reasoning"],
            "cachedContentTokenCount": TOKENS["read"],
            "totalTokenCount": PROMPT + TOKENS["output"],
        }
        more = {"modelVersion": answer.model, **({"usageMetadata": usage} if answer.counted else {})}
        if answer.ending == REFUSES:
            blocked = {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": answer.text}
            return {"promptFeedback": blocked, **more}
        reason = "MAX_TOKENS" if answer.ending == CUT else "STOP"
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": reason, "index": 0}
        return {"candidates": [candidate], **more}

    def events(self, answer: Answer) -> Events:
        """All in one chunk."""
        yield "", self.whole(answer)

    def error(self, status: int, kind: str, message: str) -> Json:
        """Google's canonical words for the status, with the delay where there is a limit."""
        words = {
            400: "INVALID_ARGUMENT",
            401: "UNAUTHENTICATED",
            429: "RESOURCE_EXHAUSTED",
            500: "INTERNAL",
            529: "UNAVAILABLE",
        }
        details: list[Json] = []
        if status == 429:
            details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"})
        return {"error": {"code": status, "message": message, "status": words[status], "details": details}}


WIRES: dict[str, Wire] = {"chat": Chat(), "responses": Responses(), "messages": Messages(), "gemini": Gemini()}
