"""What a failure of the library says."""

from __future__ import annotations

from harness.builtin.mcp._connection import words


def test_of_a_group_of_failures_the_first_is_said() -> None:
    """However deep it is; one without words by its name."""
    inner = ExceptionGroup("inner", [ConnectionError("nobody listens"), ValueError("x")])
    assert words(ExceptionGroup("outer", [inner])) == "nobody listens"
    assert words(TimeoutError()) == "TimeoutError"
