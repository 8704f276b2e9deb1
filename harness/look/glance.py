"""What a mission does right now, for the live view. It only reads: no lock is taken, nothing is written, no cache either; of what
may be large only the ends are read, and what has not changed since the last look is not read again."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from harness.base import clock, schema
from harness.base.errors import BrokenFile, HarnessError
from harness.base.record import Record
from harness.decision import checkpoints, rules, views
from harness.integrity import mission_lock
from harness.look import facts
from harness.memory import raw
from harness.memory.raw import Entry
from harness.model import config, features, mission, runs
from harness.model.features import Feature
from harness.model.receipts import Receipt
from harness.model.runs import Result
from harness.process import tree
from harness.run import transcript
from harness.run.transcript import Row
from harness.store import files, json_lines, names
from harness.store.layout import Layout, RunLayout
from harness.store.state import State

TAIL_BYTES = 64 * 1024
LONGEST_ROW = 2 * transcript.LONGEST_LINE  # a whole row of a transcript is in this much of its end
NEWEST = 12  # runs, receipts and notes that are looked at
TEXT_CHARS = 2000  # of a row


class Lane(Record):
    """A run under way: its role, feature, tree and attempt; since when, in unix seconds; `rows`: the last ones of its transcript;
    `checks`: how many have run (of many, the last); `dead`: its process is gone, and the next start settles it."""

    run: str
    role: str
    feature: str
    tree: str
    since: int
    attempt: int = 0
    rows: list[Row] = []
    checks: int = 0
    dead: bool = False


class Glance(Record):
    """A mission at one moment. `state`: in words, for a person; `word`: run, wait, halt, ask or done; `newest`: finished runs,
    the newest first, as are `receipts` and `notes`; `faults`: what cannot be read."""

    project: str
    id: str = ""
    branch: str = ""
    word: str = "halt"
    state: str = ""
    now: int = 0
    features: list[Feature] = []
    ready: list[Feature] = []
    lanes: list[Lane] = []
    newest: list[Result] = []
    receipts: list[Receipt] = []
    notes: list[Entry] = []
    caps: list[rules.Cap] = []
    totals: runs.Totals = runs.Totals()
    generation: int = 0
    faults: list[str] = []


class Watcher:
    """Looks at the mission of a folder again and again, whatever becomes of it meanwhile."""

    def __init__(self, project: str) -> None:
        self.layout = Layout(project)
        self.layout.cache = os.devnull + "/cache"  # neither read nor written
        self.state = State(self.layout)
        self._known: dict[str, tuple[object, Any, list[str]]] = {}
        self._faults: list[str] = []

    def look(self) -> Glance:
        """The mission now. It never raises for what is on disk."""
        self._faults = []
        found = Glance(project=self.layout.project, now=int(time.time()))
        if not mission.exists(self.layout):
            found.state = f"There is no mission in {self.layout.project} yet."
            self._known.clear()
            return found
        self._part(lambda: mission.check_format(self.layout), None)
        made = self._part(lambda: self._of(self.layout.mission, lambda: mission.read(self.layout)), None)
        found.id, found.branch = (made.id, made.branch) if made else (os.path.basename(self.layout.project), "")
        found.features = self._part(lambda: self._of(self.layout.features, lambda: features.load(self.layout)), [])
        found.newest = self._of(self.layout.run_log, self._newest)
        found.lanes = self._part(self._lanes, [])
        found.receipts = self._receipts(found)
        found.notes = self._part(lambda: self._of(self.layout.raw, self._notes), [])
        found.generation = self.state.generation()
        settings = self._part(lambda: self._of(self.layout.config, lambda: config.load(self.layout)), config.Config())
        found.totals = found.newest[0].total() if found.newest else runs.Totals()
        found.caps = rules.caps(views.limits_of(settings), found.totals)
        self._queue(found)
        asks = self._part(lambda: self._checkpoints(found, settings), checkpoints.Found())
        found.word, found.state = self._part(lambda: self._state(found, asks), ("halt", "its state cannot be read"))
        found.faults = self._faults
        return found

    def _part(self, read: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return read()
        except HarnessError as fault:
            self._faults.append(str(fault).replace(self.layout.project + "/", ""))
        except (OSError, ValueError, TypeError) as fault:  # it is being replaced or put away, or is not what we write
            self._faults.append(f"{type(fault).__name__}: {fault}")
        return otherwise

    def _of(self, path: str, read: Callable[[], Any], *others: str) -> Any:
        """What `read` makes of a file, and of `others`; not again while they are the same."""
        same = _signature(path) and [_signature(one) for one in (path, *others)]
        known = self._known.get(path + "\0".join(others))
        if known is None or known[0] != same or same is None:
            before = len(self._faults)
            value = read()
            self._known[path + "\0".join(others)] = same, value, self._faults[before:]
            return value
        self._faults += known[2]
        return known[1]

    def _newest(self) -> list[Result]:
        """The last runs of the run log; a line that is none is passed over, and said."""
        found: list[Result] = []
        for _, line in json_lines.backwards(self.layout.run_log, TAIL_BYTES):
            one, fault = runs.parse(line)
            if one:
                found.append(one)
            else:
                self._faults.append(f"runs.jsonl: {fault}")
            if len(found) == NEWEST:
                break
        return found

    # what runs

    def _lanes(self) -> list[Lane]:
        """The open runs by their leases, whose files tell what no lock has to be asked for."""
        found = [self._lane(name) for name in runs.open_runs(self.layout)]
        return sorted((lane for lane in found if lane), key=lambda lane: (lane.tree, lane.since, lane.run))

    def _lane(self, run_id: str) -> Lane | None:
        paths = self.layout.run(run_id)
        try:
            terms = dict(json.loads(files.read(paths.lock) or b"{}"))
        except (ValueError, TypeError, BrokenFile):  # it is being written
            terms = {}
        pid = terms.get("pid")
        made = Lane(
            run=run_id,
            role=str(terms.get("role", "")),
            feature=str(terms.get("feature", "")),
            tree=os.path.basename(str(terms.get("tree", ""))) or facts.HERE,
            since=clock.seconds_of(str(terms.get("since", ""))),
            dead=not (isinstance(pid, int) and tree.lives(pid)),
        )
        made.attempt = self._part(lambda: self._of(paths.context, lambda: self._attempt(run_id)), 0)
        made.rows = self._of(paths.stream, lambda: last_rows(paths))
        made.checks = len(self._of(paths.receipts, lambda: last_receipts(paths.receipts)))
        return made

    def _attempt(self, run_id: str) -> int:
        row = self.state.json(names.of_run(run_id, names.CONTEXT))
        return int(row["attempt"]) if isinstance(row, dict) and isinstance(row.get("attempt"), int) else 0

    def _queue(self, found: Glance) -> None:
        """What may start next, in order; what runs now is no part of it."""
        busy = {lane.feature for lane in found.lanes if not lane.dead}
        waiting = [one for one in found.features if one.status == "validating" or rules.needs_plan(one)]
        order = [*waiting, *rules.ready(found.features)]
        ids = dict.fromkeys(one.id for one in order)
        by_id = {one.id: one for one in order}
        found.ready = [by_id[name] for name in ids if name not in busy]

    def _receipts(self, found: Glance) -> list[Receipt]:
        """The newest receipts of what runs and of the last runs, the newest first."""
        made: list[Receipt] = []
        for run_id in [*(lane.run for lane in reversed(found.lanes)), *(one.run for one in found.newest)]:
            path = self.layout.run(run_id).receipts
            made += self._of(path, partial(last_receipts, path))[:NEWEST]
            if len(made) >= NEWEST:
                break
        return made[:NEWEST]

    def _notes(self) -> list[Entry]:
        """The last notes of raw.md, the newest first."""
        path = self.layout.raw
        lines = _tail(path).split(b"\n")[:-1]
        found = [raw.parse_bytes(line, len(line), 0) for line in reversed(lines)]
        return [one for one in found if one.tag][:NEWEST]

    # how it stands

    def _state(self, found: Glance, waits: checkpoints.Found) -> tuple[str, str]:
        """(word, sentence): what the mission does, or waits for."""
        asks = self._asks(found, waits)
        alive = [lane for lane in found.lanes if not lane.dead]
        if alive:
            more = f"; {asks}" if asks else ""
            return "run", f"{len(alive)} run{'s' if len(alive) > 1 else ''} under way{more}"
        if asks:
            return "ask" if "person" in asks else "halt", asks
        last = found.newest[0] if found.newest else None
        if any(cap.spent >= cap.most for cap in found.caps):
            return "ask", "a cap is reached: " + next(cap.words for cap in found.caps if cap.spent >= cap.most)
        if last and last.until > found.now:
            return "wait", f"waits until {clock.local(last.until, found.now)} for the vendor of {last.agent}"
        if _swept(found) and not waits.wanted:
            return "done", f"all {len(found.features)} features passed, and the final sweep was green"
        if any(lane.dead for lane in found.lanes):
            return "halt", "a run died; the next start settles it"
        return (
            ("run", "run.sh is between two runs") if self._loops() else ("halt", "nothing runs; to go on, start run.sh")
        )

    def _asks(self, found: Glance, waits: checkpoints.Found) -> str:
        """What holds the mission until a person acts; "" for nothing. A feature's checkpoint, and that of DONE, in its turn."""
        for name, word in ((names.STOP, "stopped"), (names.PAUSE, "paused")):
            if self.state.exists(name):
                why = raw.one_line(self.state.part(name, 0, TEXT_CHARS).decode("utf-8", "replace"))
                return f"{word}: {why}" if why else word
        turn = waits.features.get(found.ready[0].id) if found.ready and not waits.wanted else None
        waiting = [one.name for one in (*waits.now, turn, None if waits.wanted else waits.done) if one]
        if waiting:
            return f"a person is needed: checkpoint {', '.join(waiting)}"
        text = self.state.text(names.ESCALATION)
        return "" if text is None else f"a person is needed: {views.kind_of(text) or 'escalation'}"

    def _checkpoints(self, found: Glance, settings: config.Config) -> checkpoints.Found:
        """What waits for a person by config.toml and by what agents and people said."""
        layout, cost, swept = self.layout, found.totals.cost_usd, _swept(found)
        finished = partial(runs.finished, layout)
        find = partial(checkpoints.find, layout, settings, found.features, cost, swept=swept, finished=finished)
        others = (layout.run_log, layout.features, layout.checkpoint_log, layout.checkpoints)
        made: checkpoints.Found = self._of(layout.config, find, *others)
        return made

    def _loops(self) -> bool:
        """Whether a run.sh that signed the lock of a lane lives; the locks themselves are not asked for."""
        pids = [lock.holder().get("pid") for lock in mission_lock.loops(self.layout)]
        return any(isinstance(pid, int) and tree.lives(pid) for pid in pids)


def _signature(path: str) -> tuple[int, int, int] | None:
    """What differs once a file was changed or replaced; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _swept(found: Glance) -> bool:
    """Whether all features passed, and the final sweep behind them was green."""
    swept = next((one for one in found.newest if one.sweep is not None), None)
    passed = bool(found.features) and all(one.status == "passed" for one in found.features)
    return passed and swept is not None and swept.verdict == "green"


def last_rows(paths: RunLayout) -> list[Row]:
    """The last rows for people in a transcript, oldest first; of one that is large only the end is read."""
    found: list[Row] = []
    for size in (TAIL_BYTES, LONGEST_ROW):
        whole = [transcript.parse(line) for line in _tail(paths.stream, size).split(b"\n")[:-1]]
        found = [row for row in whole if row and row.kind not in transcript.FOR_MACHINES]
        if found:
            break
    return [row.replace(text=row.text[-TEXT_CHARS:]) for row in found[-NEWEST * 4 :]]


def last_receipts(path: str) -> list[Receipt]:
    """The last receipts of a run, the newest first; a line that is none is passed over."""
    found = []
    for line in reversed(_tail(path).split(b"\n")[:-1]):
        try:
            found.append(schema.record(Receipt, json_lines.value(line), "a check leaves"))
        except (ValueError, TypeError):
            continue
    return found


def _tail(path: str, size: int = TAIL_BYTES) -> bytes:
    """The whole lines in the last so many bytes of a file."""
    try:
        start = max(0, files.length(path) - size)
        data = files.read_from(path, start, size)
    except (BrokenFile, OSError):
        return b""
    return data if not start else data.partition(b"\n")[2]
