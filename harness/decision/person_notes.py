"""One-time messages of a person for a single prompt, in steering.jsonl: added, taken by a run, or withdrawn.
A run takes them when it composes its prompt. If that run ended without a fault of its work (killed, rate limited,
without a login), possibly no agent has read them, and the next run takes them again.
"""

from __future__ import annotations

import os
from typing import Any

from harness.base import encoding, schema
from harness.base.record import Record
from harness.mission import lease, runs
from harness.state import journal, json_lines, names
from harness.state.layout import Layout
from harness.state.state import Changes, State


class SteeringRow(Record):
    """A line of steering.jsonl: `text` by a person, `run` that took the row `id`, or neither if a person withdrew it."""

    id: str
    at: str = ""
    by: str = ""
    text: str = ""
    run: str = ""


def rows(layout: Layout) -> list[SteeringRow]:
    """The lines of steering.jsonl, oldest first; raises BrokenFile."""

    def made(row: Any) -> SteeringRow:
        return schema.record(SteeringRow, row, "a person's words have")

    data = State(layout).data(names.STEERING)
    return json_lines.parse(
        data, layout.path(names.STEERING), made, "the line is not a person's note", "Remove that line."
    )


def waiting(layout: Layout) -> list[SteeringRow]:
    """Messages that no run has taken, or only one whose agent may not have read them."""
    known = rows(layout)
    newest = {row.id: row for row in known}  # a later line of the same id updates it
    alive = {one.run for one in lease.alive(layout)}
    return [row for row in known if row.text and (newest[row.id] is row or _is_lost(layout, newest[row.id], alive))]


def _is_lost(layout: Layout, taken: SteeringRow, alive: set[str]) -> bool:
    """Whether the run that took it ended before it counts as read; a row without a run was withdrawn."""
    if not taken.run or taken.run in alive:
        return False
    found = runs.result(layout, taken.run)
    return found is None or found.outcome in runs.FREE_OF_BLAME


def add(layout: Layout, text: str, by: str, at: str) -> None:
    """Add a person's message for the next prompt."""
    _append(layout, [SteeringRow(id=f"S-{os.urandom(4).hex()}", at=at, by=by, text=text)])


def remove(layout: Layout, row: SteeringRow, by: str, at: str) -> None:
    """Withdraw a message; the caller holds the state lock."""
    _append(layout, [SteeringRow(id=row.id, at=at, by=by)], locked=True)


def take(layout: Layout, run_id: str) -> list[str]:
    """The texts for the prompt of this run; no other run gets them."""
    with State(layout).lock("state"):
        journal.finish_journal(layout)
        found = waiting(layout)
        _append(layout, [SteeringRow(id=row.id, run=run_id) for row in found], locked=True)
    return [row.text for row in found]


def _append(layout: Layout, made: list[SteeringRow], *, locked: bool = False) -> None:
    changes = Changes()
    changes.append(names.STEERING, b"".join(encoding.dump_json(row.asdict()) for row in made))
    State(layout).commit(changes, locked=locked)
