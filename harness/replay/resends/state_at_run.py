"""Writes the state of a mission at the start of a run, as its agent could read it, into another folder.

The state comes from `_past_state.at`, with the files of the newest runs before; the identity comes from the prompt.
"""

from __future__ import annotations

import os

from harness.base.record import Record
from harness.mission import features, runs
from harness.mission.runs import RunContext
from harness.replay import _past_state, rebuild
from harness.replay.rebuild import Rows
from harness.run.prompt import Part
from harness.state import files, journal, names, objects
from harness.state.layout import Layout, identity_file
from harness.state.state import State

RUNS_KEPT = 50  # the newest earlier runs, whose files are written
# Left out of the state: large files, which agents' searches exclude.
LEFT = (names.STREAM, names.STDERR, names.TURNS, names.RESULTS, names.TASKS)


class RunAtOpen(Record):
    """A run and its mission: the present place of its state, its context, and the manifest of its prompt."""

    where: Layout
    context: RunContext
    rows: list[dict[str, object]]

    @property
    def identity(self) -> bytes | None:
        """The identity in the prompt; None for none."""
        return part_of(self.where, self.rows, f"/{self.context.role}.md")

    def heads(self, name: str) -> int:
        """The length of an append-only file at that time."""
        return int(self.context.live.get(name, ["", 0])[1])


def part_of(where: Layout, rows: Rows, ending: str) -> bytes | None:
    """The first part of a prompt whose source is `ending`, or an absolute path that ends with it."""
    for row in rows:
        source = str(row.get("source", ""))
        if "object" in row and (source == ending or (source.startswith("/") and source.endswith(ending))):
            return objects.get(where, str(row["object"]))
    return None


def parts_of(past: RunAtOpen) -> list[Part]:
    """The parts of the prompt as it was sent."""
    return [
        Part(data=objects.get(past.where, str(row["object"])), source=str(row.get("source", "")))
        if "object" in row
        else Part(data=str(row["text"]).encode())
        for row in past.rows
    ]


def write(past: RunAtOpen, staged: Layout, identities: str) -> list[str]:
    """Write the past state as the mission `staged`, and the identity into the folder `identities`; returns a line for each
    deviation."""
    where, then = past.where, _past_state.at(past.where, past.context.run)
    notes = [f"{name} is not exact: {why}" for name, why in then.inexact.items()]
    for name, why in then.unknown.items():
        data = State(where).data(name)
        notes.append(f"{name} is {'as it is now' if data is not None else 'not there'}: {why}")
        then.files |= {} if data is None else {name: data}
    for name, data in {names.RAW: b"", **then.files}.items():
        files.replace_quickly(f"{staged.state}/{name}", data)
    for name in (names.STEER, names.REPOSITORY):
        if (data := part_of(where, past.rows, name)) is not None:
            files.replace_quickly(f"{staged.state}/{name}", data)
    _write_runs(where, staged)
    files.make_folder(identities)
    if past.identity is not None:
        files.replace_quickly(identity_file(identities, past.context.role), past.identity)
    journal.adopt(staged)
    return notes


def begun(staged: Layout, feature_id: str, *, changes: bool) -> None:
    """Set the feature of a run that `changes` the tree in progress, as an opening run does."""
    queue = features.load(staged)
    feature = next((one for one in queue if one.id == feature_id), None)
    if feature and changes and feature.status in features.TRANSITIONS["start"]:
        features.move(feature, "start")
        files.replace_quickly(staged.path(names.FEATURES), features.render(queue))
        journal.adopt(staged)


def _write_runs(where: Layout, staged: Layout) -> None:
    """Write the files of the newest finished runs, without large ones."""
    for number, result in enumerate(runs.finished(staged)):
        if number == RUNS_KEPT:
            break
        source, target = where.run(result.run).folder, staged.run(result.run).folder
        files.make_folder(target)
        for name in files.names(source):
            path = os.path.join(source, name)
            if name not in LEFT and os.path.isfile(path) and not os.path.islink(path):
                files.replace_quickly(os.path.join(target, name), files.read(path) or b"")


def of_run(where: Layout, run_id: str) -> RunAtOpen:
    """The run; raises like `rebuild.text_of`."""
    rebuild.text_of(where, run_id)
    context = runs.context(where, run_id)
    return RunAtOpen(where=where, context=context, rows=rebuild.rows_of(where, run_id) or [])
