"""Streamed answers of four model vendors, event by event, from one description: what a scripted server sends, whole or in part.

An answer is a list of parts (Text, Thought, Tool) and an ending. Each part comes in pieces, as vendors send them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
Events = Iterator[Json]


@dataclass(frozen=True)
class Text:
    """Pieces of text."""

    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Thought:
    """Reasoning with its signature, which the vendor wants back."""

    text: str
    signature: str


@dataclass(frozen=True)
class Tool:
    """A call; `raw`: its arguments as the model writes them."""

    name: str
    raw: str
    id: str = "call-1"


Part = Text | Thought | Tool

DONE, CUT, FILTERED, REFUSED, UNKNOWN = "done", "cut", "filtered", "refused", "unknown"
ENDINGS: dict[str, dict[str, str]] = {
    "chat": {CUT: "length", FILTERED: "content_filter", UNKNOWN: "tired"},
    "responses": {CUT: "max_output_tokens", FILTERED: "content_filter", UNKNOWN: "tired"},
    "messages": {CUT: "max_tokens", REFUSED: "refusal", UNKNOWN: "tired"},
    "gemini": {CUT: "MAX_TOKENS", FILTERED: "SAFETY", UNKNOWN: "TIRED"},
}
IN, OUT = 20, 10  # tokens of every answer


def chat(parts: list[Part], ending: str, counted: bool) -> Events:
    """OpenAI's Chat Completions."""

    def chunk(delta: Json, finish: str | None = None, **more: Any) -> Json:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}

    yield chunk({"role": "assistant", "content": ""})
    calls = [part for part in parts if isinstance(part, Tool)]
    for part in parts:
        if isinstance(part, Text):
            for piece in part.pieces:
                yield chunk({"refusal" if ending == REFUSED else "content": piece})
        elif isinstance(part, Thought):
            yield chunk({"reasoning_content": part.text})
        else:
            at = {"index": calls.index(part)}
            function = {"name": part.name, "arguments": ""}
            yield chunk({"tool_calls": [{**at, "id": part.id, "type": "function", "function": function}]})
            for piece in halves(part.raw):
                yield chunk({"tool_calls": [{**at, "function": {"arguments": piece}}]})
    yield chunk({}, ENDINGS["chat"].get(ending, "tool_calls" if calls else "stop"))
    if counted:
        usage = {"prompt_tokens": IN, "completion_tokens": OUT, "total_tokens": IN + OUT}
        yield {**chunk({}, usage=usage), "choices": []}


def responses(parts: list[Part], ending: str, counted: bool) -> Events:
    """OpenAI's Responses."""
    frame = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m"}
    items, rows = list[Json](), list[Json]()
    rows.append({"type": "response.created", "response": {**frame, "status": "in_progress", "output": []}})
    for at, part in enumerate(parts):
        item, begun, deltas = _item(part, at, ending)
        items.append(item)
        rows.append({"type": "response.output_item.added", "output_index": at, "item": begun})
        rows += [{"output_index": at, "item_id": item["id"], **delta} for delta in deltas]
        rows.append({"type": "response.output_item.done", "output_index": at, "item": item})
    why = ENDINGS["responses"].get(ending)
    status: Json = {"status": "incomplete", "incomplete_details": {"reason": why}} if why else {"status": "completed"}
    usage = {"input_tokens": IN, "output_tokens": OUT, "total_tokens": IN + OUT}
    details: Json = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    whole = {**frame, **status, "output": items, "usage": {**usage, **details} if counted else None}
    rows.append({"type": "response.incomplete" if why else "response.completed", "response": whole})
    yield from ({"sequence_number": number, **row} for number, row in enumerate(rows))


def _item(part: Part, at: int, ending: str) -> tuple[Json, Json, list[Json]]:
    """An item, as it begins, and what fills it."""
    if isinstance(part, Text):
        key, kind = ("refusal", "refusal") if ending == REFUSED else ("text", "output_text")
        content: Json = {"type": kind, key: "".join(part.pieces), **({} if ending == REFUSED else {"annotations": []})}
        item: Json = {"id": f"msg_{at}", "type": "message", "role": "assistant", "status": "completed"}
        deltas = [{"type": f"response.{kind}.delta", "content_index": 0, "delta": one} for one in part.pieces]
        return {**item, "content": [content]}, {**item, "content": []}, deltas
    if isinstance(part, Thought):
        item = {"id": f"rs_{at}", "type": "reasoning", "encrypted_content": part.signature}
        summary = {"type": "summary_text", "text": part.text}
        delta = {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": part.text}
        added = {"type": "response.reasoning_summary_part.added", "summary_index": 0, "part": {**summary, "text": ""}}
        return {**item, "summary": [summary]}, {**item, "summary": []}, [added, delta]
    item = {"id": f"fc_{at}", "type": "function_call", "call_id": part.id, "name": part.name, "status": "completed"}
    deltas = [{"type": "response.function_call_arguments.delta", "delta": one} for one in halves(part.raw)]
    return {**item, "arguments": part.raw}, {**item, "arguments": ""}, deltas


def messages(parts: list[Part], ending: str, counted: bool) -> Events:
    """Anthropic's Messages, which always counts."""
    frame: Json = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_sequence": None,
    }
    usage = {"input_tokens": IN, "output_tokens": OUT}
    yield {"type": "message_start", "message": {**frame, "stop_reason": None, "usage": {**usage, "output_tokens": 1}}}
    yield {"type": "ping"}
    for index, part in enumerate(parts):
        block: Json = {"type": "text", "text": ""}
        deltas: list[Json] = []
        if isinstance(part, Text):
            deltas = [{"type": "text_delta", "text": piece} for piece in part.pieces]
        elif isinstance(part, Thought):
            block = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": part.text}]
            deltas += [{"type": "signature_delta", "signature": part.signature}]
        else:
            block = {"type": "tool_use", "id": part.id, "name": part.name, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in halves(part.raw)]
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        yield {"type": "content_block_stop", "index": index}
    usual = "tool_use" if any(isinstance(part, Tool) for part in parts) else "end_turn"
    stop = {"stop_reason": ENDINGS["messages"].get(ending, usual), "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": usage}
    yield {"type": "message_stop"}


def gemini(parts: list[Part], ending: str, counted: bool) -> Events:
    """Google's streamGenerateContent, where a call comes whole."""

    def chunk(made: list[Json], finish: str | None = None) -> Json:
        candidate: Json = {"content": {"role": "model", "parts": made}, "index": 0}
        return {"candidates": [{**candidate, "finishReason": finish} if finish else candidate], "modelVersion": "m"}

    signature = ""
    for part in parts:
        signed = {"thoughtSignature": signature} if signature else {}
        signature = ""
        if isinstance(part, Text):
            if ending == REFUSED:
                feedback = {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "".join(part.pieces)}
                yield {"promptFeedback": feedback, "modelVersion": "m", **_counts(counted)}
                return
            yield from (chunk([{"text": piece, **signed}]) for piece in part.pieces)
        elif isinstance(part, Thought):
            yield chunk([{"text": part.text, "thought": True}])
            signature = part.signature
        else:
            call = {"name": part.name, "args": json.loads(part.raw), "id": part.id}
            yield chunk([{"functionCall": call, **signed}])
    yield {**chunk([], ENDINGS["gemini"].get(ending, "STOP")), **_counts(counted)}


def _counts(counted: bool) -> Json:
    usage = {"promptTokenCount": IN, "candidatesTokenCount": OUT, "totalTokenCount": IN + OUT}
    return {"usageMetadata": usage} if counted else {}


def halves(raw: str) -> list[str]:
    """Arguments come in two pieces."""
    return [raw[: len(raw) // 2], raw[len(raw) // 2 :]]


FORMATS: dict[str, Callable[[list[Part], str, bool], Events]] = {
    "chat": chat,
    "responses": responses,
    "messages": messages,
    "gemini": gemini,
}
NAMED = ("responses", "messages")  # formats whose events have a name


def events(wire: str, *parts: Part, ending: str = DONE, counted: bool = True) -> list[bytes]:
    """The server-sent events of an answer."""
    return [event(wire, row) for row in FORMATS[wire](list(parts), ending, counted)] + end(wire)


def event(wire: str, row: Json) -> bytes:
    """One server-sent event."""
    name = f"event: {row['type']}\n" if wire in NAMED else ""
    return f"{name}data: {json.dumps(row)}\n\n".encode()


def end(wire: str) -> list[bytes]:
    """What comes last."""
    return [b"data: [DONE]\n\n"] if wire == "chat" else []
