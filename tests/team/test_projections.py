"""GOAL.md and PROGRESS.md as bytes from rows."""

from __future__ import annotations

from harness.team import _projections as projections
from harness.team import status
from harness.team.database import Attribution, Team
from harness.team.status import ReviewPolicy

BY = Attribution(who="ann", why="as agreed")
GOAL = """<!-- revision 4 of the thread deal: rendered from the database; edits here have no effect -->
# Goals

## G-1 Sign the contract

open, owned by ann; bob accepts each task; until then no other task begins (user/ann: as agreed)
"""
PROGRESS = """<!-- revision 4 of the thread deal: rendered from the database; edits here have no effect -->
# Progress

## G-1 Sign the contract: open, 1 of 1 tasks done

- [ ] T-2 Write: dropped (user/ann: as agreed)
- [x] T-3 DocuSign: done
"""


def test_they_are_what_the_rows_say_with_the_revision_first(team: Team) -> None:
    """The same bytes for the same rows; a thread without a goal has both files, too."""
    with team.transaction("acme") as tx:
        empty = projections.render(status.overview(tx, "deal"))
        assert [data.decode().split("\n")[1:4] for data in empty.values()] == [
            ["# Goals", "", "There is no goal yet."],
            ["# Progress", "", "There is no goal yet."],
        ]
        status.add_goal(tx, "deal", "Sign the contract", ReviewPolicy(mode="task", accepts="bob", blocks="tasks"), BY)
        status.add_task(tx, "G-1", "Write", BY)
        status.change(tx, "task", "T-2", "drop", BY)
        status.add_task(tx, "G-1", "DocuSign", BY)
        tx.execute("update team_tasks set status = 'done', why = '' where tenant = $1 and number = 3")
        found = projections.render(status.overview(tx, "deal"))
        assert {name: data.decode() for name, data in found.items()} == {"GOAL.md": GOAL, "PROGRESS.md": PROGRESS}
