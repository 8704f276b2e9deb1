"""issues.jsonl: faults that somebody saw and did not mend; append-only, an issue's later states are lines of their own."""

from __future__ import annotations

import json

from harness import clock, files, shape
from harness.errors import BrokenFile
from harness.layout import Layout
from harness.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SEVERITIES = ("critical", "major", "minor", "nit")
SERIOUS = ("critical", "major")
REQUIRED = {"title": "str", "severity": "str"}
OPTIONAL = {"evidence": "str", "repro": "str", "suggested_fix": "str", "code_pointer": "str"}


class Issue(Record):
    """One issue in its newest state: `open`, `planned` (a planner has seen it) or `closed`."""

    id: str
    at: str
    by: str
    title: str
    severity: str
    evidence: str = ""
    repro: str = ""
    suggested_fix: str = ""
    code_pointer: str = ""
    state: str = "open"


def faults(value: object, where: str) -> list[str]:
    """What is wrong with an issue as an agent or a person gives it."""
    found = shape.faults(value, where, REQUIRED, OPTIONAL)
    if not found and isinstance(value, dict) and value["severity"] not in SEVERITIES:
        found = [f"{where}: the severity '{value['severity']}' is none of {', '.join(SEVERITIES)}"]
    return found


def load(layout: Layout) -> list[Issue]:
    """All issues in their newest state, oldest first; BrokenFile names a whole line that does not parse."""
    found: dict[str, Issue] = {}
    lines = (files.read(layout.issues) or b"").split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            row: dict[str, Any] = json.loads(line)
            known = found.get(row["id"])
            found[row["id"]] = known.replace(state=row["state"]) if known else Issue(**row)
        except (ValueError, KeyError, TypeError):
            if number == len(lines):
                break  # no newline yet: somebody is writing it just now
            remedy = "Mend or remove that line."
            raise BrokenFile(layout.issues, "the line is no issue", line=number, remedy=remedy) from None
    return list(found.values())


def serious(found: list[Issue]) -> list[Issue]:
    """Open issues that a planner must look at: critical and major, each once."""
    return [issue for issue in found if issue.state == "open" and issue.severity in SERIOUS]


def new_lines(found: list[Issue], given: list[dict[str, Any]], by: str) -> bytes:
    """Lines that add the given issues (checked before) behind those found; one with a known open title is not doubled."""
    known = {issue.title.strip().lower() for issue in found if issue.state != "closed"}
    rows: list[dict[str, Any]] = []
    for value in given:
        if value["title"].strip().lower() not in known:
            known.add(value["title"].strip().lower())
            number = f"I-{len(found) + len(rows) + 1:03d}"
            rows.append(Issue(id=number, at=clock.stamp(clock.now()), by=by, **value).asdict())
    return b"".join(files.dump_json(row) for row in rows)


def state_line(issue: Issue, state: str, by: str) -> bytes:
    """The line that gives an issue another state."""
    return files.dump_json({"id": issue.id, "at": clock.stamp(clock.now()), "by": by, "state": state})
