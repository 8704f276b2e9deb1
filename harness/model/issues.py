"""issues.jsonl: faults that somebody saw and did not mend; append-only, an issue's later states are lines of their own."""

from __future__ import annotations

import json

from harness.base import clock, schema
from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.store import files
from harness.store.layout import Layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SEVERITIES = ("critical", "major", "minor", "nit")
SERIOUS = ("critical", "major")
REQUIRED = {"title": "str", "severity": "str"}
OPTIONAL = {"evidence": "str", "repro": "str", "suggested_fix": "str", "code_pointer": "str"}


class Issue(Record):
    """One issue in its newest state: `open`, `planned` (a planner has seen it) or `closed` (by a person, for good)."""

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
    found = schema.faults(value, where, REQUIRED, OPTIONAL)
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
            _take(found, json.loads(line))
        except (ValueError, KeyError, TypeError) as fault:
            if number == len(lines):
                break  # no newline yet: somebody is writing it just now
            what = str(fault) if isinstance(fault, Odd) else "the line is no issue"
            raise BrokenFile(layout.issues, what, line=number, remedy="Mend or remove that line.") from None
    return list(found.values())


class Odd(ValueError):
    """A line that parses and is neither an issue nor a later state of one."""


def _take(found: dict[str, Issue], row: Any) -> None:
    """One line: a new issue, or a later state of a known one. Raises ValueError, KeyError or TypeError."""
    if not isinstance(row, dict):
        raise TypeError("an issue is an object")
    if odd := next((key for key, value in row.items() if not isinstance(value, str)), ""):
        raise Odd(f"'{odd}' is not what an issue has there")
    if "title" not in row:
        one, state = found[row["id"]], row["state"]
        found[one.id] = one.replace(state="closed" if one.state == "closed" else state)  # a planner may come too late
    elif row["id"] in found:
        raise Odd(f"there is an issue {row['id']} already")
    else:
        found[row["id"]] = Issue(**row)


def serious(found: list[Issue]) -> list[Issue]:
    """Open issues that a planner must look at: critical and major, each once."""
    return [issue for issue in found if issue.state == "open" and issue.severity in SERIOUS]


def new(found: list[Issue], given: list[dict[str, Any]], by: str) -> list[Issue]:
    """The given issues (checked before) with numbers behind those found, which only holds while the caller has the state
    lock; one with a known open title is not doubled."""
    known = {issue.title.strip().lower() for issue in found if issue.state != "closed"}
    made: list[Issue] = []
    for value in given:
        if value["title"].strip().lower() not in known:
            known.add(value["title"].strip().lower())
            number = f"I-{len(found) + len(made) + 1:03d}"
            made.append(Issue(id=number, at=clock.stamp(clock.now()), by=by, **value))
    return made


def render(made: list[Issue]) -> bytes:
    """The lines of new issues."""
    return b"".join(files.dump_json(issue.asdict()) for issue in made)


def state_line(issue: Issue, state: str, by: str, why: str = "") -> bytes:
    """The line that gives an issue another state, with the reason where one is given."""
    row = {"id": issue.id, "at": clock.stamp(clock.now()), "by": by, "state": state}
    return files.dump_json({**row, "why": why} if why else row)
