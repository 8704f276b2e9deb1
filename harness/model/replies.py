"""Replies: what a role may answer by what it can do, checked against closed schemas, and found in whatever an agent said."""

from __future__ import annotations

import json

from harness.base import schema
from harness.base.errors import Refused
from harness.memory import raw
from harness.model import issues
from harness.store import documents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STATUSES = ("implemented", "blocked")
MOST_CHECKS = 3
SHARED = {"notes": "list", "issues": "list"}
SCHEMAS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "plans": ({"features": "list", "contract": "list"}, {"setup": "plain", "services": "list", "drop": "list"}),
    "commits": ({"status": "str"}, {"summary": "str", "reason": "str", "needs": "names", "disputes": "names"}),
    "judges": ({}, {"checks": "list"}),
    "curates": ({}, {"operations": "list"}),
}
FEATURE = (
    {"id": "str", "title": "str", "claims": "names"},
    {"description": "str", "depends_on": "names", "spec_refs": "strs", "priority": "int", "source_issue": "str"},
)
CLAIM = ({"id": "str", "claim": "plain"}, {"checks": "list", "manual": "bool", "reason": "str"})
CHECK = ({"run": "plain"}, {"seconds": "seconds", "guard": "bool"})
SERVICE = ({"name": "str", "run": "plain", "ready": "line"}, {"seconds": "seconds"})
DROP: tuple[dict[str, str], dict[str, str]] = ({"id": "str", "reason": "str"}, {})
AIM = ({"claim": "str", "run": "plain"}, {"why": "str"})
NOTE: tuple[dict[str, str], dict[str, str]] = ({"tag": "str", "text": "str"}, {})


def faults(capability: str, value: object) -> list[str]:
    """What is wrong with the reply of a role that has this capability; one that has none may reply any object."""
    if not isinstance(value, dict):
        return ["the reply must be a JSON object"]
    found: list[str] = []
    if capability in SCHEMAS:
        required, optional = SCHEMAS[capability]
        found = schema.faults(value, "the reply", required, {**optional, **SHARED})
    if found:
        return found
    found += _each(value, "notes", _note_faults)
    found += _each(value, "issues", issues.faults)
    found += PARTS.get(capability, _nothing)(value)
    return found


def _each(value: dict[str, Any], key: str, check: Any) -> list[str]:
    items = value.get(key, [])
    if not isinstance(items, list):
        return [f"'{key}' must be a list"]
    return [fault for index, item in enumerate(items) for fault in check(item, f"{key}[{index}]")]


def _closed(keys: tuple[dict[str, str], dict[str, str]]) -> Any:
    return lambda item, where: schema.faults(item, where, *keys)


def _note_faults(item: object, where: str) -> list[str]:
    found = schema.faults(item, where, *NOTE)
    if not found and isinstance(item, dict) and item["tag"] not in raw.TAGS:
        found = [f"{where}: the tag '{item['tag']}' is none of {', '.join(raw.TAGS)}"]
    return found


def _nothing(value: dict[str, Any]) -> list[str]:
    return []


def _plan(value: dict[str, Any]) -> list[str]:
    found = _each(value, "features", _closed(FEATURE)) + _each(value, "services", _closed(SERVICE))
    found += _each(value, "drop", _closed(DROP)) + _each(value, "contract", _claim_faults)
    if not found:
        found = schema.name_faults((service["name"] for service in value.get("services", [])), "service")
    return found


def _claim_faults(item: object, where: str) -> list[str]:
    found = schema.faults(item, where, *CLAIM)
    if found or not isinstance(item, dict):
        return found
    if not item["claim"].strip():
        found.append(f"{where}: 'claim' must say in one sentence what holds")
    for index, check in enumerate(item.get("checks", [])):
        value = {"run": check} if isinstance(check, str) else check
        found += schema.faults(value, f"{where}.checks[{index}]", *CHECK)
    return found


def _work(value: dict[str, Any]) -> list[str]:
    if value["status"] not in STATUSES:
        return [f"'status' must be one of {', '.join(STATUSES)}"]
    if value["status"] == "blocked" and not value.get("reason", "").strip():
        return ["a blocked reply needs a 'reason'"]
    return []


def _judgement(value: dict[str, Any]) -> list[str]:
    found = _each(value, "checks", _closed(AIM))
    if len(value.get("checks", [])) > MOST_CHECKS:
        found.append(f"at most {MOST_CHECKS} checks a run, the worst first")
    return found


PARTS = {"plans": _plan, "commits": _work, "judges": _judgement}


def parse(capability: str, text: str) -> dict[str, Any]:
    """The reply in one JSON text; raises Refused with every fault."""
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as fault:
        raise Refused(f"The reply is not JSON: line {fault.lineno}, {fault.msg}. Mend it and reply again.") from None
    except (ValueError, RecursionError) as fault:  # too deep, a number too long, or half of a surrogate pair
        raise Refused(f"The reply cannot be kept: {fault}. Mend it and reply again.") from None
    found = faults(capability, value)
    if found:
        raise Refused("The reply is not accepted:\n" + "\n".join(f"- {fault}" for fault in found))
    return dict(value)


def find(capability: str, messages: list[str]) -> dict[str, Any] | None:
    """The reply in an agent's messages: the last ```json harness block, else the last plain ```json block that fits.

    None where there is no marked block and no plain one fits; raises Refused where the last marked block does not parse.
    """
    marked = [block for message in messages for block in documents.fenced_blocks(message, "json harness")]
    if marked:
        return parse(capability, marked[-1])
    plain = [block for message in messages for block in documents.fenced_blocks(message, "json")]
    for block in reversed(plain):
        try:
            return parse(capability, block)
        except Refused:
            continue
    return None
