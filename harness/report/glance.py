"""The present activity of a mission, for the live view: the decision and the progress as in `status`, and the open runs.
Takes no lock and writes no state; reads only the ends of transcripts, receipts and notes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import islice

from harness.base import clock, schema
from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.decision import overview, rules
from harness.decision.overview import Overview
from harness.mission import features, lease, mission, runs, transcript
from harness.mission.features import Feature
from harness.mission.lease import Terms
from harness.mission.receipts import Receipt
from harness.mission.runs import RunResult
from harness.mission.transcript import Row
from harness.report._facts import FactsReader
from harness.state import files, json_lines, names, raw
from harness.state.layout import Layout, RunLayout
from harness.state.raw import RawEntry
from harness.workplace import mission_lock

TAIL_BYTES = 64 * 1024
MAX_ROW_BYTES = 2 * transcript.MAX_LINE_BYTES  # the last row of a transcript fits into this
NEWEST = 12  # runs, receipts and notes that are read
TEXT_CHARS = 2000  # per row


class Lane(Terms):
    """An open run, from its lease. `rows`: the last ones of its transcript; `checks`: how many have run, as far as read;
    `dead`: its processes are gone, and the next start settles it."""

    attempt: int = 0
    rows: list[Row] = []
    checks: int = 0
    dead: bool = False


class Glance(Record):
    """A mission at one moment. `state`: text for a person; `word`: run, wait, halt, ask or done; `newest`: finished runs, newest
    first, like `receipts` and `notes`; `faults`: the unreadable parts."""

    project: str
    id: str = ""
    branch: str = ""
    word: str = "halt"
    state: str = ""
    now: int = 0
    features: list[Feature] = []
    ready: list[Feature] = []
    lanes: list[Lane] = []
    newest: list[RunResult] = []
    receipts: list[Receipt] = []
    notes: list[RawEntry] = []
    caps: list[rules.Cap] = []
    totals: runs.Totals = runs.Totals()
    generation: int = 0
    faults: list[str] = []


WORDS = {  # decision: (word of the glance, sentence), with its subject for {}
    "STOPPED": ("halt", "stopped{}"),
    "PAUSED": ("halt", "paused{}"),
    "CHECKPOINT": ("ask", "a person is needed: checkpoint {}"),
    "ESCALATE": ("ask", "a person is needed: {}"),
    "BUDGET": ("ask", "a cap is reached: {}"),
    "WAIT": ("wait", "waits {}"),
    "DONE": ("done", "all {} features passed, and the final sweep is green"),
}
HOLDS = ("STOPPED", "PAUSED", "CHECKPOINT", "ESCALATE")  # also shown while runs are under way


class Watcher(FactsReader):
    """Polls the mission of a folder, and survives any change of it."""

    def __init__(self, project: str) -> None:
        super().__init__(Layout(project))

    def look(self) -> Glance:
        """The mission now. State on disk never makes it raise."""
        self.faults, layout, part = [], self.layout, self.part
        found = Glance(project=layout.folders.project, now=int(time.time()))
        if not mission.exists(layout):
            found.state = f"There is no mission in {layout.folders.project} yet."
            return found
        made, known = part(lambda: mission.read(layout)), part(lambda: overview.gather(layout))
        found.id, found.branch = (made.id, made.branch) if made else (os.path.basename(layout.folders.project), "")
        found.features = known.features if known else self.listed(lambda: features.load(layout))
        found.newest = self.listed(lambda: list(islice(runs.finished(layout), NEWEST)))
        found.lanes = self.listed(lambda: sorted(self.lanes(), key=lambda lane: (lane.tree, lane.since, lane.run)))
        found.receipts = self.receipts(found)
        found.notes = self.notes()
        found.generation = self.state.generation()
        found.totals = found.newest[0].total() if found.newest else runs.Totals()
        found.ready = _startable(found)
        found.state = "its state cannot be read"
        if known:
            found.caps = rules.caps(known.view.limits, found.totals)
            found.word, found.state = self.stands(found, known)
        found.faults = self.faults
        return found

    def lanes(self) -> Iterator[Lane]:
        """The open runs, from their leases."""
        for run_id in runs.open_runs(self.layout):
            paths, context = self.layout.run(run_id), self.context(run_id)
            yield Lane(
                **lease.terms_of(self.layout, run_id).asdict(),
                attempt=context.attempt if context else 0,
                rows=last_rows(paths),
                checks=len(last_receipts(paths.receipts)),
                dead=runs.is_dead(self.layout, run_id),
            )

    def receipts(self, found: Glance) -> list[Receipt]:
        """The newest receipts of the open runs and of the last runs, newest first."""
        ids = [*(lane.run for lane in reversed(found.lanes)), *(one.run for one in found.newest)]
        return list(islice((one for name in ids for one in last_receipts(self.layout.run(name).receipts)), NEWEST))

    def notes(self) -> list[RawEntry]:
        """The last notes of raw.md, newest first."""
        lines = _tail(self.layout.path(names.RAW)).split(b"\n")[:-1]
        found = (raw.parse_bytes(line, len(line), 0) for line in reversed(lines))
        return list(islice((one for one in found if one.tag), NEWEST))

    def stands(self, found: Glance, known: Overview) -> tuple[str, str]:
        """(word, sentence): the activity of the mission, or what it waits for, as `next` decides."""
        due = known.decision
        word, sentence = WORDS.get(due.word, ("", ""))
        sentence = sentence.format(self.about(found, known)) if word else ""
        if alive := sum(not lane.dead for lane in found.lanes):
            more = f"; {sentence}" if due.word in HOLDS else ""
            return "run", f"{alive} run{'s' if alive > 1 else ''} under way{more}"
        if word:
            return word, sentence
        if any(lane.dead for lane in found.lanes):
            return "halt", "a run died; the next start settles it"
        loops = mission_lock.looping(self.layout)
        return ("run", "run.sh is between two runs") if loops else ("halt", "nothing runs; to continue, start run.sh")

    def about(self, found: Glance, known: Overview) -> str:
        """The subject of the decision, for its sentence."""
        due = known.decision
        if due.word in ("STOPPED", "PAUSED"):
            name = names.STOP if due.word == "STOPPED" else names.PAUSE
            why = raw.one_line(self.state.part(name, 0, TEXT_CHARS).decode("utf-8", "replace"))
            return f": {why}" if why else ""
        if due.word == "BUDGET":
            return rules.exhausted(known.view)[0].words
        if due.word == "WAIT" and due.what != "0":
            until = clock.local(known.view.wait_until, found.now)
            return f"until {until} for the vendor of {known.view.newest[0].agent}"
        return str(len(found.features)) if due.word == "DONE" else due.reason or due.what


def _startable(found: Glance) -> list[Feature]:
    """The features that can start next, in order, without those of open runs."""
    busy = {lane.feature for lane in found.lanes if not lane.dead}
    waiting = [one for one in found.features if one.status == "validating" or rules.needs_plan(one)]
    order = {one.id: one for one in (*waiting, *rules.ready(found.features)) if one.id not in busy}
    return [*order.values()]


def last_rows(paths: RunLayout) -> list[Row]:
    """The last human-readable rows of a transcript, oldest first; reads only the end of a large one."""
    found: list[Row] = []
    for size in (TAIL_BYTES, MAX_ROW_BYTES):
        whole = [transcript.parse(line) for line in _tail(paths.stream, size).split(b"\n")[:-1]]
        found = [row for row in whole if row and row.kind not in (*transcript.FOR_MACHINES, "result")]
        if found:
            break
    return [row.replace(text=row.text[-TEXT_CHARS:]) for row in found[-NEWEST * 4 :]]


def last_receipts(path: str) -> list[Receipt]:
    """The last receipts of a run, newest first; skips invalid lines."""
    found = []
    for line in reversed(_tail(path).split(b"\n")[:-1]):
        try:
            found.append(schema.record(Receipt, json_lines.value(line), "a check leaves"))
        except (ValueError, TypeError):
            continue
    return found


def _tail(path: str, size: int = TAIL_BYTES) -> bytes:
    """The complete lines in the last `size` bytes of a file."""
    try:
        start = max(0, files.length(path) - size)
        data = files.read_from(path, start, size)
    except (BrokenFile, OSError):
        return b""
    return data if not start else data.partition(b"\n")[2]
