"""Declarations of subagents: every key, and what is refused."""

from __future__ import annotations

import pytest

from harness.base.errors import BrokenFile
from harness.workspace.subagents import parse

GOOD = """---
description: Reviews a diff
model: small
tools: [read_file, grep_files]
skills: []
steps: 7
workspace:
  mode: shared
---
You review.
"""


def test_every_key_is_read() -> None:
    """What is not said is as the parent has it."""
    assert parse(GOOD, "p", "reviewer") == {
        "id": "reviewer",
        "description": "Reviews a diff",
        "prompt": "You review.\n",
        "mode": "shared",
        "folder": "",
        "model": "small",
        "tools": ["read_file", "grep_files"],
        "skills": [],
        "steps": 7,
    }
    short = parse("---\ndescription: d\n---\nDo.\n", "p", "one")
    assert (short["mode"], short["tools"], short["skills"], short["steps"]) == ("isolated", None, None, 0)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("description: Reviews a diff\n", "", 1, "lacks 'description'"),
        ("steps: 7", "steps: 0", 6, "above 0"),
        ("tools: [read_file, grep_files]", "tools: read_file", 4, "'tools' must be a list"),
        ("mode: shared", "mode: own", 8, "one of isolated, shared"),
        ("model: small", "modle: small", 3, "unknown key 'modle'"),
        ("You review.\n", "\n", 1, "no body"),
    ],
)
def test_a_malformed_one_is_named_with_its_line(old: str, new: str, line: int, words: str) -> None:
    """A wrong list of tools is never 'all tools'."""
    with pytest.raises(BrokenFile, match=words) as caught:
        parse(GOOD.replace(old, new, 1), "subagents/reviewer.md", "reviewer")
    assert caught.value.line == line
