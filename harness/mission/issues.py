"""issues.jsonl: known unfixed defects; append-only, each later state of an issue is another line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.base import clock, encoding, schema
from harness.base.record import Record
from harness.base.schema import InvalidField
from harness.state import json_lines, names
from harness.state.layout import Layout
from harness.state.state import State

SEVERITIES = ("critical", "major", "minor", "nit")
SERIOUS = ("critical", "major")
HAS = "an issue has"
STATES = ("open", "planned", "closed")

if TYPE_CHECKING:  # a type here, at run time the kind of a field
    Severity = str
    Progress = str
else:
    Severity, Progress = schema.one_of(SEVERITIES, told=True), schema.one_of(STATES)


class IssueReport(Record):
    """An issue as reported by an agent or a person."""

    title: str
    severity: Severity
    evidence: str = ""
    repro: str = ""
    suggested_fix: str = ""
    code_pointer: str = ""


class IssueRow(Record):
    """The fields of each line: the number of the issue, the time, and the author."""

    id: str
    at: str
    by: str


class IssueChange(IssueRow):
    """A later state of an issue, and the reason."""

    state: Progress
    why: str = ""


class Issue(IssueReport, IssueRow):
    """One issue in its newest state: `open`, `planned` (a planner has seen it) or `closed` (by a person, permanently)."""

    state: Progress = "open"


def load(layout: Layout) -> list[Issue]:
    """All issues in their newest state, oldest first; BrokenFile names a line that does not parse."""
    found: dict[str, Issue] = {}

    def take(row: Any) -> None:
        if "title" in row:
            one = schema.record(Issue, row, HAS)
            if one.id in found:
                raise InvalidField(f"the issue {one.id} exists already")
        else:
            change = schema.record(IssueChange, row, HAS)
            one = found[change.id]  # a planner may be too late
            one = one.replace(state="closed" if one.state == "closed" else change.state)
        found[one.id] = one

    data, remedy = State(layout).data(names.ISSUES), "Correct or remove that line."
    json_lines.parse(data, layout.path(names.ISSUES), take, "the line is not an issue", remedy)
    return list(found.values())


def serious(found: list[Issue]) -> list[Issue]:
    """Open issues that a planner must see: critical and major ones."""
    return [issue for issue in found if issue.state == "open" and issue.severity in SERIOUS]


def new(found: list[Issue], given: list[dict[str, Any]], by: str) -> list[Issue]:
    """The given validated issues with the next numbers, unique under the caller's state lock, without titles that an
    open issue has."""
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
    return b"".join(encoding.dump_json(issue.asdict()) for issue in made)


def state_line(issue: Issue, state: str, by: str, why: str = "") -> bytes:
    """The line that changes the state of an issue, with the reason."""
    return encoding.dump_json(
        IssueChange(id=issue.id, at=clock.stamp(clock.now()), by=by, state=state, why=why).asdict()
    )
