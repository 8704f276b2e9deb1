"""The state of a mission as it was when a run opened: what its agent could read, written into another folder.

Managed files come from the objects that the run's ledger names, append-only ones are cut to the length that it names, raw.md is
put together from the archive and what is still there, and the identity is that of the prompt.
"""

from __future__ import annotations

import os

from harness.base import encoding
from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.history import rebuild
from harness.memory import archive, pages
from harness.memory.archive import Archived
from harness.model import features, runs
from harness.model.runs import Context
from harness.store import files, journal, migrations, names, objects
from harness.store.layout import Layout, identity_file
from harness.store.state import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harness.history.rebuild import Rows

RUNS_KEPT = 50  # the newest runs of then, whose files are there
LEFT = (names.STREAM, names.STDERR)  # of them: large, and kept out of the searches of agents


class Past(Record):
    """A run and its mission: where its state is now, its context, the manifest of its prompt, and {managed file: its object} when
    the run before it closed."""

    where: Layout
    context: Context
    rows: list[dict[str, object]]
    snapshot: dict[str, str] = {}

    @property
    def identity(self) -> bytes | None:
        """The identity that the prompt showed; None for none."""
        return part_of(self.where, self.rows, f"/{self.context.role}.md")

    def heads(self, name: str) -> int:
        """The length of an append-only file then."""
        return int(self.context.live.get(name, ["", 0])[1])


def part_of(where: Layout, rows: Rows, ending: str) -> bytes | None:
    """The bytes of the first part of a prompt whose source is an absolute path with this end, or is the end itself."""
    for row in rows:
        source = str(row.get("source", ""))
        if "object" in row and (source == ending or (source.startswith("/") and source.endswith(ending))):
            return objects.get(where, str(row["object"]))
    return None


def write(past: Past, staged: Layout, identities: str) -> list[str]:
    """Write the state of then as the mission `staged`, and the identity into the folder `identities`; says what is not as it
    was, a line each."""
    where, notes = past.where, list[str]()
    for name in names.MANAGED:
        data, fault = _managed(past, name)
        notes += [fault] if fault else []
        if data is not None:
            files.replace_quickly(f"{staged.state}/{name}", data)
    for name in names.APPEND_ONLY:
        if name in past.context.live:
            files.replace_quickly(f"{staged.state}/{name}", State(where).part(name, 0, past.heads(name)))
    notes += _write_raw(past, staged)
    steer = part_of(where, past.rows, names.STEER)
    if steer is not None:
        files.replace_quickly(f"{staged.state}/{names.STEER}", steer)
    _write_runs(where, staged)
    files.make_folder(identities)
    if past.identity is not None:
        files.replace_quickly(identity_file(identities, past.context.role), past.identity)
    if migrations.is_due(staged):
        migrations.migrate(staged)
    journal.adopt(staged)
    return notes


def begun(staged: Layout, feature_id: str, *, changes: bool) -> None:
    """The feature of a run that `changes` the tree is in progress, as such a run leaves it when it opens."""
    queue = features.load(staged)
    feature = next((one for one in queue if one.id == feature_id), None)
    if feature and changes and feature.status in features.TRANSITIONS["start"]:
        features.move(feature, "start")
        files.replace_quickly(staged.features, features.render(queue))
        journal.adopt(staged)


def _managed(past: Past, name: str) -> tuple[bytes | None, str]:
    """The bytes of a managed file then, None where it was absent, and why they are not known."""
    row = past.context.live.get(name)
    if row is None:
        return None, ""
    now, known = State(past.where).data(name), [(str(row[0]), "")]
    if now is not None and encoding.digest(now) == row[0]:
        return now, ""
    if name in past.snapshot:
        known.append(
            (past.snapshot[name], f"{name} is that of the run before: what changed up to this one is not kept")
        )
    for digest, note in known:
        try:
            return objects.get(past.where, digest), note
        except BrokenFile:
            continue
    return now, f"{name} is as it is now: what it was then is not kept"


def _write_raw(past: Past, staged: Layout) -> list[str]:
    """raw.md of then: its entries that were archived since, and those that are still there."""
    length, generation = past.context.raw
    now, data = pages.curated(past.where), State(past.where).data(names.RAW) or b""
    if str(now.generation) != generation:
        data = _archived(past.where, pages.curated(staged).first_seq, now.first_seq) + data
    exact = data[: int(length)]
    whole = len(exact) == int(length) and exact[-1:] in (b"", b"\n")
    if not whole:  # by their times, since their lengths are others
        lines = data.split(b"\n")[:-1]
        exact = b"".join(line + b"\n" for line in lines if line[1:21].decode("utf-8", "replace") <= past.context.at)
    files.replace_quickly(staged.raw, exact)
    return (
        [] if whole else ["memory/raw.md is not byte for byte as it was: entries were masked when they were archived"]
    )


def _archived(where: Layout, first: int, end: int) -> bytes:
    """The lines of the archived entries from number `first` up to `end`."""
    found = []
    for row in archive.rows_backwards(where.archive):
        if isinstance(row, Archived):
            if row.seq < first:
                break
            if row.seq < end:
                found.append(row.entry.encode() + b"\n")
    return b"".join(reversed(found))


def _write_runs(where: Layout, staged: Layout) -> None:
    """The files of the newest runs that had finished, without what is large."""
    for number, result in enumerate(runs.finished(staged)):
        if number == RUNS_KEPT:
            break
        source, target = where.run(result.run).folder, staged.run(result.run).folder
        files.make_folder(target)
        for name in files.names(source):
            path = os.path.join(source, name)
            if name not in LEFT and os.path.isfile(path) and not os.path.islink(path):
                files.replace_quickly(os.path.join(target, name), files.read(path) or b"")


def of_run(where: Layout, run_id: str) -> Past:
    """The run; raises as `rebuild.text_of`."""
    rebuild.text_of(where, run_id)
    context = runs.context(where, run_id)
    size = int(context.live.get(names.RUN_LOG, ["", 0])[1])
    before = next((result.run for result in runs.finished(where, size)), "")
    known = State(where).json(f"{names.SNAPSHOTS}/{before}.json") if before else None
    snapshot = known.get("live") if isinstance(known, dict) else None
    return Past(where=where, context=context, rows=rebuild.rows_of(where, run_id) or [], snapshot=snapshot or {})
