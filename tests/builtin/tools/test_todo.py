"""todo_write: a list that a conversation keeps, whole and valid."""

from __future__ import annotations

from typing import Any

import pytest

from harness.builtin.tools import _todo
from tests.builtin.tools.benches import Bench

LIST = [
    {"content": "read the spec", "status": "completed"},
    {"content": "write the test", "status": "in_progress"},
    {"content": "make it green", "status": "pending"},
]


def test_the_list_is_kept_with_the_conversation_and_shown(bench: Bench) -> None:
    """Each call replaces the whole; an empty list clears it."""
    shown = "[x] read the spec\n[>] write the test\n[ ] make it green"
    assert bench.said("todo_write", todos=LIST) == shown == _todo.shown(bench.own)
    assert bench.own.state["todo"] == LIST
    assert bench.said("todo_write", todos=LIST[:1]) == "[x] read the spec"
    assert bench.said("todo_write", todos=[]) == "The todo list is empty."


@pytest.mark.parametrize(
    ("todos", "words"),
    [
        ([{"content": " ", "status": "pending"}], "Item 1 has no content."),
        ([{"content": "a", "status": "doing"}], "'todos[0].status' must be one of pending, in_progress, completed"),
        ([{"content": "a"}], "'todos[0].status' is missing"),
        ([{"content": one, "status": "in_progress"} for one in "ab"], "Only one item may be in_progress"),
        ([{"content": "x" * 501, "status": "pending"}], "at most 500"),
        ([{"content": str(number), "status": "pending"} for number in range(101)], "at most 100 items"),
    ],
)
def test_a_list_that_is_not_valid_changes_nothing(bench: Bench, todos: list[dict[str, Any]], words: str) -> None:
    """The answer names the fault."""
    bench.said("todo_write", todos=LIST)
    assert words in bench.refused("todo_write", todos=todos)
    assert bench.own.state["todo"] == LIST
