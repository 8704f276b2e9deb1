"""The environment in which checks run: what it reports about itself, and that no two share anything."""

from __future__ import annotations

import pytest

from harness.mission.check_environment import CheckEnvironment


def test_two_environments_share_no_list_of_locks_ports_or_notes() -> None:
    """A note that one run adds is in its own receipts alone."""
    one, other = CheckEnvironment(directory="/a"), CheckEnvironment(directory="/b")
    one.keep.append(3)
    one.ports["db"] = 5432
    one.notes.append("green without a setup")
    assert (other.keep, other.ports, other.notes) == ([], {}, [])


def test_an_environment_with_an_unknown_field_is_refused() -> None:
    """A misspelt limit must not leave checks without one."""
    with pytest.raises(TypeError, match="second"):
        CheckEnvironment(directory="/a", second=3)  # type: ignore[call-arg]  # the error under test
