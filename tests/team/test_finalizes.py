"""The finalize of a turn as one row."""

from __future__ import annotations

import pytest

from harness.base.errors import BrokenFile, LockBusy
from harness.team import _finalizes as finalizes
from harness.team._finalizes import Finalize
from harness.team.database import Team, Transaction


def ended(tx: Transaction, gate: int) -> Finalize | None:
    """The oldest one that an earlier turn left, ended."""
    left = finalizes.pending(tx, "deal", gate)
    return finalizes.advance(tx, finalizes.advance(tx, left, "files"), "done") if left else None


def test_a_finalize_is_continued_where_it_was_and_twice_is_once(team: Team) -> None:
    """begun, files, done; each step by whoever calls, and again without an effect."""
    steps = []
    for _ in range(2):
        with team.transaction("acme") as tx:
            one = finalizes.begin(tx, "deal", 4, "digest")
        steps.append(one.status)
        with team.transaction("acme") as tx:
            steps += [finalizes.advance(tx, one, status, "3 files").status for status in ("files", "done")]
    assert steps == ["begun", "files", "done", "done", "done", "done"]
    with team.transaction("acme") as tx:
        assert finalizes.begin(tx, "deal", 4, "digest").result == "3 files"
        with pytest.raises(BrokenFile, match="began from another manifest"):
            finalizes.begin(tx, "deal", 4, "another")


def test_no_step_is_left_out(team: Team) -> None:
    """It is not done before its files are in the store."""
    with team.transaction("acme") as tx:
        one = finalizes.begin(tx, "deal", 1, "digest")
        with pytest.raises(LockBusy):
            finalizes.advance(tx, one, "done")


def test_a_lower_gate_number_is_refused_and_the_next_turn_ends_what_a_killed_one_left(team: Team) -> None:
    """From the moment a later turn has the thread, the earlier one writes nothing more, even if it is alive."""
    with team.transaction("acme") as tx:
        left = finalizes.begin(tx, "deal", 4, "digest")
        assert finalizes.pending(tx, "deal", 4) is None
    with team.transaction("acme") as tx:
        taken = finalizes.pending(tx, "deal", 9)
        assert taken is not None and (taken.id, taken.gate, taken.fence) == (left.id, 4, 9)
    late = pytest.raises(LockBusy, match="a later turn has the thread")
    with late, team.transaction("acme") as tx:
        finalizes.advance(tx, left, "files")
    with late, team.transaction("acme") as tx:
        finalizes.begin(tx, "deal", 4, "digest")
    with late, team.transaction("acme") as tx:
        finalizes.pending(tx, "deal", 8)
    with team.transaction("acme") as tx:
        begun = finalizes.begin(tx, "deal", 9, "digest")
        finalizes.begin(tx, "deal", 12, "digest")  # which has not looked at what is pending
    with late, team.transaction("acme") as tx:
        finalizes.advance(tx, begun, "files")
    with team.transaction("acme") as tx:
        assert [one.gate for one in iter(lambda: ended(tx, 12), None)] == [4, 9]
    with team.transaction("globex") as tx:
        assert finalizes.begin(tx, "deal", 1, "digest").status == "begun"  # its threads are others
