"""The role that answers in a thread of a team."""

from __future__ import annotations

from tests.missions import House


def test_it_runs_for_a_team_alone(house: House) -> None:
    """By hand nobody would take what it changes, so nothing begins, and the line has the command."""
    done = house.role("teammate")
    assert (done.code, "team run THREAD MESSAGE" in done.err, house.ran()) == (64, True, [])
