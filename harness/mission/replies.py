"""Replies: the closed schema of each capability, its validation, and the search for a reply in the output of an agent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harness.base import encoding, redaction, schema
from harness.base.errors import RequestRefused
from harness.base.record import Json, Record
from harness.base.schema import Names, PlainText
from harness.mission.contract import Check, Service
from harness.mission.issues import IssueReport
from harness.state import documents, raw

STATUSES = ("implemented", "blocked")
MAX_CHECKS = 3
AS_JSON = ("plans", "commits", "judges", "curates")  # capabilities whose reply is nothing else
REFUSED = "its reply was refused: "  # before the faults that its agent was told

if TYPE_CHECKING:  # a type here, at run time the kind of a field
    Status = str
    Tag = str
    Name = str
else:
    Status, Tag = schema.one_of(STATUSES), schema.one_of(raw.TAGS, told=True)
    Name = schema.TEXT.part("a name", schema.is_name)


class ReplyNote(Record):
    """An entry for raw.md."""

    tag: Tag
    text: str


class CheckpointRequest(Record):
    """A checkpoint requested by an agent: the mission waits for a person to read the text."""

    name: Name
    text: PlainText


class RoleReply(Record):
    """The fields that every reply may have."""

    notes: list[ReplyNote] = []
    issues: list[IssueReport] = []
    checkpoint: CheckpointRequest | None = None


class PlannedFeature(Record):
    """A feature of a plan."""

    id: str
    title: str
    claims: Names
    description: str = ""
    depends_on: Names = []
    spec_refs: list[str] = []
    priority: int = 1
    source_issue: str = ""


class PlannedClaim(Record):
    """A claim of a plan; `reason`: why an existing claim changes. A check may be a text, which is its `run`."""

    id: str
    claim: PlainText
    checks: list[Check] = []
    manual: bool = False
    reason: str = ""


class DroppedItem(Record):
    """A feature or claim that the plan drops."""

    id: str
    reason: str


class AdversarialCheck(Record):
    """An adversarial check: it tries to refute a claim."""

    claim: Name
    run: PlainText
    why: str = ""


class PlanReply(RoleReply):
    """A plan; `setup_inputs`: the files on which the setup depends; `reason`: why an existing setup or service changes."""

    features: list[PlannedFeature]
    contract: list[PlannedClaim]
    setup: PlainText = ""
    setup_inputs: list[str] = []
    services: list[Service] = []
    drop: list[DroppedItem] = []
    reason: str = ""


class WorkReply(RoleReply):
    """The result of the work."""

    status: Status
    summary: str = ""
    reason: str = ""
    needs: Names = []
    disputes: Names = []


class ValidationReply(RoleReply):
    """Adversarial checks."""

    checks: list[AdversarialCheck] = []


class CurationReply(RoleReply):
    """Operations of a compaction; the code that applies an operation validates it."""

    operations: list[Json] = []


class SpecReply(RoleReply):
    """The text of SPEC.md."""

    spec: str = ""


# Keys whose values are commands, which are linted.
COMMANDS = {"plans": ("run", "ready", "setup", "checks"), "judges": ("run",)}
SCHEMAS: dict[str, type[RoleReply]] = {
    "plans": PlanReply,
    "commits": WorkReply,
    "judges": ValidationReply,
    "curates": CurationReply,
    "specifies": SpecReply,
    "answers": RoleReply,
}


def faults(capability: str, value: object) -> list[str]:
    """Every fault of the reply of a role with this capability; a role without one may reply any object."""
    if not isinstance(value, dict):
        return ["the reply must be a JSON object"]
    shape = SCHEMAS.get(capability, RoleReply)
    asked = value if capability in SCHEMAS else {key: value[key] for key in RoleReply.fields if key in value}
    return [*schema.faults(_spelled_out(asked), "the reply", shape)] or _rule_faults(capability, value)


def _spelled_out(value: dict[str, Any]) -> dict[str, Any]:
    """The reply with each check of a planned claim as an object."""
    claims = value.get("contract")
    return {**value, "contract": [*map(_claim, claims)]} if isinstance(claims, list) else value


def _claim(claim: Any) -> Any:
    checks = claim.get("checks") if isinstance(claim, dict) else None
    if not isinstance(checks, list):
        return claim
    return {**claim, "checks": [{"run": check} if isinstance(check, str) else check for check in checks]}


def _rule_faults(capability: str, value: dict[str, Any]) -> list[str]:
    """Every fault of a reply with the right schema: the rules between its fields."""
    found: list[str] = []
    if capability == "plans":
        empty = [index for index, row in enumerate(value["contract"]) if not row["claim"].strip()]
        found = [f"contract[{index}]: 'claim' must say in one sentence what holds" for index in empty]
        return found or schema.name_faults((service["name"] for service in value.get("services", [])), "service")
    if capability == "commits" and value["status"] == "blocked" and not value.get("reason", "").strip():
        found = ["a blocked reply needs a 'reason'"]
    if capability == "judges" and len(value.get("checks", [])) > MAX_CHECKS:
        found = [f"at most {MAX_CHECKS} checks per run, the most important first"]
    return found


def parse(capability: str, text: str) -> dict[str, Any]:
    """The cleaned reply in a JSON text; raises RequestRefused with every fault."""
    try:
        value = json.loads(text)
        encoding.compact(value).encode()
        value = redaction.received_value(value, COMMANDS.get(capability, ()))
    except json.JSONDecodeError as fault:
        raise RequestRefused(
            f"The reply is not JSON: line {fault.lineno}, {fault.msg}. Correct it and reply again."
        ) from None
    except (ValueError, RecursionError) as fault:  # too deep, a number too long, or half of a surrogate pair
        raise RequestRefused(f"The reply cannot be stored: {fault}. Correct it and reply again.") from None
    found = faults(capability, value)
    if found:
        raise RequestRefused("The reply is not accepted:\n" + "\n".join(f"- {fault}" for fault in found))
    return dict(value)


def alone(text: str) -> str:
    """The JSON of a message that is nothing but JSON, plain or in one fence; "" for any other."""
    lines = text.strip().split("\n")
    fenced = len(lines) > 1 and lines[0].lower() in ("```", "```json") and lines[-1] == "```"
    inside = "\n".join(lines[1:-1] if fenced else lines).strip()
    return inside if inside.startswith("{") and "```" not in inside else ""


def find(capability: str, messages: list[str]) -> dict[str, Any] | None:
    """The reply in the messages of an agent: the last ```json harness block, else the last ```json block that is valid, else
    None. Raises RequestRefused if the last marked block is invalid."""
    marked = [block for message in messages for block in documents.fenced_blocks(message, "json harness")]
    if marked:
        return parse(capability, marked[-1])
    plain = [block for message in messages for block in documents.fenced_blocks(message, "json")]
    for block in reversed(plain):
        try:
            return parse(capability, block)
        except RequestRefused:
            continue
    return None
