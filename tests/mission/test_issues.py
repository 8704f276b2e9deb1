"""issues.jsonl is append-only; the newest line of an issue gives its state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.base import schema
from harness.base.errors import BrokenFile
from harness.mission import issues
from harness.mission.issues import Issue
from harness.state import files, names
from harness.state.layout import Layout
from tests.helpers import mission, put

GIVEN: dict[str, Any] = {
    "title": "It breaks",
    "severity": "major",
    "evidence": "é\n",
    "repro": "x",
    "suggested_fix": "y",
    "code_pointer": "a:1",
}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A mission with an empty folder."""
    return mission(tmp_path)


def test_issues_come_back_with_numbers_of_their_own(layout: Layout) -> None:
    """They keep the given order; without a file there are none."""
    assert issues.load(layout) == []
    put(layout.path(names.ISSUES), issues.render(issues.new([], [GIVEN, {"title": "two", "severity": "nit"}], "run-1")))
    one, two = issues.load(layout)
    assert (one.id, two.id, one.by, one.state) == ("I-001", "I-002", "run-1", "open")
    assert one.asdict() | GIVEN == one.asdict()


def test_a_known_open_title_is_not_doubled(layout: Layout) -> None:
    """Case and spaces do not matter; a closed issue may be raised again, under a new number."""
    put(layout.path(names.ISSUES), issues.render(issues.new([], [GIVEN], "r")))
    again = {**GIVEN, "title": " it BREAKS "}
    assert issues.render(issues.new(issues.load(layout), [again], "r")) == b""
    assert issues.render(issues.new([], [GIVEN, again], "r")).count(b"\n") == 1
    (one,) = issues.load(layout)
    put(
        layout.path(names.ISSUES),
        (files.read(layout.path(names.ISSUES)) or b"") + issues.state_line(one, "closed", "person"),
    )
    more = issues.render(issues.new(issues.load(layout), [again], "r"))
    put(layout.path(names.ISSUES), (files.read(layout.path(names.ISSUES)) or b"") + more)
    assert [(issue.id, issue.state) for issue in issues.load(layout)] == [("I-001", "closed"), ("I-002", "open")]


def test_a_closed_issue_stays_closed(layout: Layout) -> None:
    """A planner that saw it open and settles later does not reopen it."""
    (one,) = issues.new([], [GIVEN], "r")
    lines = [issues.state_line(one, "closed", "person", "not so"), issues.state_line(one, "planned", "r")]
    put(layout.path(names.ISSUES), issues.render([one]) + b"".join(lines))
    assert [found.state for found in issues.load(layout)] == ["closed"]


def test_serious_ones_are_open_and_critical_or_major(layout: Layout) -> None:
    """A planner sees each once: planned ones count as seen."""
    found = [
        Issue(id=f"{severity}-{state}", at="", by="", title="t", severity=severity, state=state)
        for severity in issues.SEVERITIES
        for state in ("open", "planned", "closed")
    ]
    assert [issue.id for issue in issues.serious(found)] == ["critical-open", "major-open"]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "5",
        "null",
        "{}",
        '{"id":"I-001"}',
        '{"id":["x"]}',
        '{"id":"I-9","state":"closed"}',
        '{"id":"I-9","x":1}',
    ],
)
def test_a_line_that_is_no_issue_is_named(layout: Layout, line: str) -> None:
    """A reported fault must not vanish."""
    put(layout.path(names.ISSUES), issues.render(issues.new([], [GIVEN], "r")) + line.encode() + b"\n")
    with pytest.raises(BrokenFile, match=r"issues\.jsonl, line 2: (the line is not an issue|'(id|x)' is not what)"):
        issues.load(layout)


def test_two_issues_with_one_number_are_not_taken_for_one(layout: Layout) -> None:
    """Otherwise the second would be lost silently."""
    line = issues.render(issues.new([], [GIVEN], "r"))
    put(layout.path(names.ISSUES), line + line)
    with pytest.raises(BrokenFile, match="line 2: the issue I-001 exists already"):
        issues.load(layout)


def test_a_value_of_another_kind_is_named(layout: Layout) -> None:
    """A person's edit, for example, is not reported as a bug in the harness, and is found at the first read."""
    (made,) = issues.new([], [GIVEN], "r")
    put(layout.path(names.ISSUES), files.dump_json({**made.asdict(), "title": 5}))
    with pytest.raises(BrokenFile, match="line 1: 'title' is not what an issue has there"):
        issues.load(layout)


def test_a_line_that_is_just_being_written_is_passed_over(layout: Layout) -> None:
    """Readers take no lock; without its newline a line does not exist yet."""
    line = issues.render(issues.new([], [GIVEN], "r"))
    put(layout.path(names.ISSUES), line + line[:40])
    assert len(issues.load(layout)) == 1
    put(layout.path(names.ISSUES), line[:-1])
    assert issues.load(layout) == []


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ({"severity": "nit"}, "'title'"),
        ({"title": "t"}, "'severity'"),
        ({"title": "t", "severity": "bad"}, "'bad' is not one of critical"),
        ({**GIVEN, "state": "closed"}, "unknown key 'state'"),
        *[({**GIVEN, key: 5}, f"'{key}' must be text") for key in GIVEN],
    ],
)
def test_faults_of_a_given_issue_name_the_key(value: dict[str, Any], key: str) -> None:
    """The agent can then fix it."""
    (fault,) = schema.faults(value, "issues[0]", issues.IssueReport)
    assert key in fault
    assert fault.startswith("issues[0]")


def test_a_whole_issue_has_no_faults() -> None:
    """It has all keys, or the two required ones."""
    for value in (GIVEN, {"title": "t", "severity": "nit"}):
        assert schema.faults(value, "it", issues.IssueReport) == []
