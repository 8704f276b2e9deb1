"""The gate that every request passes, so that no vendor refuses a conversation for what somebody said in it before.

Its rules have a version, among the parameters of a request: an older request is made again by its own rules. 1: valid Unicode,
finite numbers, names of tools. 2: besides, no text of white space in an answer. 3: all that `passed` says."""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise
from typing import Any

from harness.base import encoding
from harness.builtin.loop import _text_calls
from harness.builtin.loop.exchange import Message, Request

BYTE = re.compile("[\udc80-\udcff]")  # of a text that is no UTF-8, as Python keeps it
UNNAMED = re.compile(r"[^A-Za-z0-9_-]")
ID = re.compile(r"[A-Za-z0-9_-]{1,40}")  # of a call
LONGEST_NAME = 64
NO_TEXT = "(no text)"
LOST: Message = {"role": "tool", "text": "The result of this call is not known.", "failed": True}
GO_ON: Message = {"role": "user", "text": "Go on."}


def passed(request: Request) -> list[Message]:
    """The messages as they go out. No text is blank. Each call has an id of its own, and one result, directly behind its answer;
    a result without a call is a text of the user. An answer is between texts or results, and ends with no thought."""
    rules = request.parameters.get("rules", 1)
    made = [value(one) for one in _text_calls.sent(_ordered(request.messages) if rules > 2 else request.messages)]
    return made if rules < 2 else [one for one in (_spoken(one, rules) for one in made) if one.get("parts", True)]


def value(known: Any) -> Any:
    """The JSON value, unchanged if it can be sent as it is."""
    try:
        json.dumps(known, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return _mended(known)
    return known


def _mended(known: Any) -> Any:
    if isinstance(known, str):
        found = BYTE.sub(lambda one: f"\\x{ord(one[0]) - 0xDC00:02x}", known)
        return found.encode("utf-8", "backslashreplace").decode()
    if isinstance(known, dict):
        return {_mended(name): _mended(one) for name, one in known.items()}
    if isinstance(known, list):
        return [_mended(one) for one in known]
    return None if isinstance(known, float) and not math.isfinite(known) else known


def name(known: str) -> str:
    """The name of a tool in a call, as every vendor takes it back, also where the model made it up."""
    return UNNAMED.sub("_", known)[:LONGEST_NAME] or "_"


def _spoken(one: Message, rules: int) -> Message:
    if "parts" in one:
        parts = [part for part in one["parts"] if part.get("part_kind") != "text" or part["content"].strip()]
        return {**one, "parts": parts}
    return one if rules < 3 or one["text"].strip() else {**one, "text": NO_TEXT}


def _ordered(messages: list[Message]) -> list[Message]:
    """The messages, answer by answer: its results, then results without a call, then what the user says."""
    made, used = list[Message](), set[str]()
    for begin, end in pairwise([0, *(at for at, one in enumerate(messages) if "parts" in one), len(messages)]):
        left, results = [one for one in messages[begin:end] if one["role"] == "tool"], list[Message]()
        parts = [part for one in messages[begin:end] if "parts" in one for part in _spoken(one, 3)["parts"]]
        while parts and parts[-1].get("part_kind") == "thinking":
            parts.pop()
        for at, part in enumerate(parts):
            if part.get("part_kind") == "tool-call":
                known = part["tool_call_id"]
                found = next((one for one in left if one["id"] == known), LOST)
                left = [one for one in left if one is not found]
                if known in used or not ID.fullmatch(known):
                    known = "call_" + encoding.digest(encoding.dump_json([known, len(used)]))[:16]
                used.add(known)
                results.append({**found, "id": known, "name": part["tool_name"]})
                parts[at] = {**part, "tool_call_id": known}
        said = [{**one, "role": "user", "text": _text_calls.RESULT.format(**one)} for one in left]
        said += [one for one in messages[begin:end] if one["role"] == "user"]
        made += [{**messages[begin], "parts": parts}, *results] if parts else []
        made += said or ([] if results else [GO_ON])
    return made
