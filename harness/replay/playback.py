"""Plays a past mission back from its records and compares decisions, exit codes and trees. Offline, without a model.

The runs open and settle in the recorded order, on the recorded clock, with the agent `recorded` instead of every agent;
people's actions in between are repeated. It happens in a `Replica`, in a separate process (`python -m harness.replay`).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator

from harness.base import clock, console, encoding, faults
from harness.base.errors import BrokenFile, HarnessError, UsageFault
from harness.base.record import Record
from harness.decision import rules, views
from harness.git.repository import GitFailed
from harness.mission import run_lookup as pasts
from harness.mission import runs
from harness.process import spawn, supervise, temporary
from harness.replay import _replica
from harness.replay._comparison import Difference, after_run, at_end, at_open, due_at_end
from harness.replay._records import UNKNOWN, RecordedRun, Records
from harness.replay._replica import Replica
from harness.state import files, names
from harness.state.layout import Layout, command
from harness.workplace import run_detection, workplace

BY_HAND = ("hand", "again")
JOB, CONFIG, RESULT = "job.json", "config.toml", "result.json"  # files of a playback, in the folder of its copy


class PlaybackResult(Record):
    """The result of a playback: the number of runs played; the first difference, None if there is none; `missing` records, which
    were not compared."""

    mission: str
    runs: int
    played: int
    first: Difference | None
    missing: list[str]

    @property
    def same(self) -> bool:
        """Whether everything recorded is equal."""
        return self.first is None


def play(layout: Layout, name: str = "", config: bytes | None = None) -> PlaybackResult:
    """Play a mission up to the first difference. `config`: a config.toml that replaces every recorded one."""
    run_detection.refuse(layout, "replay --mission")
    where = pasts.named(layout, name)
    workplace.use(layout)
    records = Records(layout, where)
    if not records.runs:
        raise UsageFault("No run of that mission has ended, so it cannot be played back.")
    due, folder = due_at_end(records), temporary.create("playback")
    places = {"project": layout.folders.project, "state": layout.state, "where": where.state}
    try:
        files.replace_quickly(f"{folder}/{JOB}", encoding.dump_json({**places, "due": due.asdict() if due else None}))
        if config is not None:
            files.replace_quickly(f"{folder}/{CONFIG}", config)
        code = _in_process(folder, _replica.variables(folder, layout, os.environ))
        found = files.read_json(f"{folder}/{RESULT}")
    finally:
        temporary.remove(folder)
    if found is None:
        raise HarnessError(f"The playback ended with exit code {code} and without a result.")
    if "fault" in found:
        fault = HarnessError(found["fault"])
        fault.code = found["code"]
        raise fault
    return PlaybackResult(**{**found, "first": Difference(**found["first"]) if found["first"] else None})


def _in_process(folder: str, variables: dict[str, str]) -> int:
    """Play the job in `folder` in a process with these variables; returns its exit code. It ends with this process."""
    words = [sys.executable, "-P", "-m", "harness.replay", folder]
    pid = spawn.start(words, cwd=folder, env=variables, stdin=os.devnull, stdout=1, stderr=2)
    supervise.spare(pid)
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except BaseException:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
        raise
    finally:
        supervise.unspare(pid)


def play_job(folder: str) -> int:
    """Play the job in `folder`, in a process that has the variables of its copy; writes the result, or the fault."""
    job, config = files.read_json(f"{folder}/{JOB}") or {}, files.read(f"{folder}/{CONFIG}")
    layout = Layout(job["project"], job["state"])
    where = layout if job["where"] == job["state"] else Layout(job["project"], job["where"])
    due = rules.Decision(**job["due"]) if job["due"] else None
    try:
        workplace.use(layout)
        found = _played(Records(layout, where), folder, config, due).asdict()
        found["first"] = found["first"].asdict() if found["first"] else None
    except HarnessError as fault:
        found = {"fault": str(fault), "code": fault.code}
    files.replace_quickly(f"{folder}/{RESULT}", encoding.dump_json(found))
    return 0


def _played(records: Records, folder: str, config: bytes | None, due: rules.Decision | None) -> PlaybackResult:
    try:
        with Replica(records, folder, config) as replica:
            return _Playback(records, replica, due).all()
    except GitFailed as fault:
        top = encoding.shell_word(records.layout.folders.top)
        whole = f"its commits in {top} are incomplete, so it cannot be played back: {fault}"
        raise BrokenFile(records.where.state, whole.rstrip("."), remedy=f"See: git -C {top} fsck") from None


class _Playback:
    def __init__(self, records: Records, replica: Replica, due: rules.Decision | None) -> None:
        self.records, self.replica, self.due = records, replica, due
        self.opened: set[str] = set()
        self.earlier: list[str] = []  # decisions before each run that settled since the last one opened
        self.played = 0
        self.spinner = console.Spinner("playback", lambda: f"{self.played} of {len(records.runs)} runs")

    def all(self) -> PlaybackResult:
        """Play every run, then compare the end."""
        first = next((found for found in self._each() if found), None)
        self.spinner.clear()
        total, missing = len(self.records.runs), self.replica.missing
        return PlaybackResult(
            mission=self.replica.mission.id, runs=total, played=self.played, first=first, missing=missing
        )

    def _each(self) -> Iterator[Difference | None]:
        runs = self.records.runs
        for index, past in enumerate(runs):
            waiting = [one for one in runs[index:] if one.behind <= index and one.run not in self.opened]
            for one in sorted(waiting, key=_opening):
                yield self._open(one)
            yield self._settle(past)
            self.spinner.draw(past.run)
        yield self._people({}, clock.now() + runs[-1].result.ended)
        self.replica.follow(self.replica.recorded_tip())
        yield at_end(self.records, self.replica, self.due)

    def _people(self, lengths: dict[str, list[object]], at: int, run: str = "") -> Difference | None:
        if refused := self.replica.people(lengths, at):
            act, fault = refused
            did = " ".join((act.verb, *act.texts[:2]))
            return Difference(run=run, what=f"a person's {did}", expected="applied", got=faults.first(fault, 300))
        return None

    def _open(self, past: RecordedRun) -> Difference | None:
        """Repeat people's actions, check the decision, and start the run."""
        self.opened.add(past.run)
        context = past.context
        if past.result.role == UNKNOWN:
            self.replica.missing.append(f"{past.run}: its role; it died without a record")
            return None
        if context is None:
            gone = runs.forgotten(self.records.where).get(past.run)
            why = f"the run was {gone.words}" if gone else "the file is missing"
            raise self._lacks(past, self.records.where.run(past.run).context, why)
        at = clock.seconds_of(context.at)
        if found := self._people(past.before, at, past.run):
            return found
        self.replica.show(at)
        self.replica.follow(context.head)
        if not self.replica.configure_as(past):
            raise self._lacks(
                past, self.records.where.path(names.OBJECTS), "config.toml as the run found it is missing"
            )
        self.replica.edits(past, self.records.runs[past.behind - 1] if past.behind else None)
        if found := self._decided(past, at):
            return found
        self.earlier.clear()
        if said := self.replica.start(past):
            return Difference(run=past.run, what="the start of the run", expected="it opens", got=said)
        return at_open(past, self.replica)

    def _lacks(self, past: RecordedRun, path: str, what: str) -> BrokenFile:
        """The fault that ends a playback: the mission counts neither as equal nor as different."""
        done = f"{self.played} of {len(self.records.runs)} runs are equal, and none is played from {past.run} on"
        return BrokenFile(path, f"{what}: {done}", remedy=f"See: {command('doctor')}")

    def _decided(self, past: RecordedRun, at: int) -> Difference | None:
        """Compare the decision with the recorded run; a person may start any run by hand."""
        context = past.context
        if context is None or context.started in BY_HAND:
            return None
        view = views.gather(self.replica.layout)
        if past.result.trigger == "leaving":
            due = rules.leaving(view, "DONE") or rules.decide(view, at)
        else:
            due = rules.decide(view.replace(wait_until=0), at)  # a wait ends when the next run opens
        expected = rules.Decision(word="NEXT", what=past.result.role, feature=past.result.feature).line
        if expected in (due.line, *self.earlier):  # other runs settle between a lane's decision and its claim
            return None
        beside = len(self.opened) > self.played + 1
        if due.what == view.roles["curates"] and beside:  # the time of their notes is not recorded
            due = rules.decide(view.replace(wait_until=0, uncurated=0), at)
            if due.line == expected:
                return None
        if not context.started:
            self.replica.missing.append(f"{past.run}: whether a person started it by hand; due: {due.line}")
            return None
        return Difference(run=past.run, what="the decision before it", expected=expected, got=due.line)

    def _settle(self, past: RecordedRun) -> Difference | None:
        """Repeat people's actions during the run, settle it, and compare."""
        if past.context is None or past.result.role == UNKNOWN:
            return None
        if found := self._people(past.after, past.result.ended, past.run):
            return found
        self.earlier.append(rules.decide(views.gather(self.replica.layout).replace(wait_until=0), clock.now()).line)
        self.replica.settle(past)
        self.played += 1
        return after_run(self.records, past, self.replica)


def _opening(past: RecordedRun) -> tuple[str, int, str]:
    """The order of runs that opened at the same length of the run log: by time, then by process start (a lane starts it in its
    turn), then by tree number."""
    context = past.context
    return (context.at, int(context.process.get("started") or 0), context.folder) if context else ("", 0, "")
