"""The facts on the page, read once from a mission. An unreadable part becomes a line in `faults`; the rest is shown."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from harness.base import clock, schema
from harness.base.errors import BrokenFile, HarnessError
from harness.base.record import Record
from harness.decision import checkpoints, memory_growth, overview, rules, views
from harness.decision.memory_growth import MemoryGrowth
from harness.decision.overview import Overview
from harness.mission import config, contract, features, issues, lease, mission, receipts, runs
from harness.mission.contract import Claim
from harness.mission.features import Feature
from harness.mission.issues import Issue
from harness.mission.receipts import Receipt
from harness.mission.runs import EscalationAnswer, RunContext, RunResult, Tombstone, Totals
from harness.mission.usage import Usage
from harness.proof import index
from harness.proof.index import ClaimStatus, Proofs
from harness.state import json_lines, names
from harness.state.layout import Layout
from harness.state.state import State
from harness.workplace import changes

T = TypeVar("T")

HERE = "project folder"  # the lane of runs there; any other lane has the name of its tree
UNKNOWN = "unknown"  # the lane of a run without context.json
REPLY_BYTES = 16 * 1024


class RunRow(Record):
    """A finished run: its lane, attempt, receipts, notes as (tag, text), the start of its reply; `changed`: its files changed
    after it closed; `forgotten`: by whom its files were removed, and when."""

    result: RunResult
    usage: Usage
    lane: str = UNKNOWN
    attempt: int = 0
    receipts: list[Receipt] = []
    notes: list[tuple[str, str]] = []
    reply: str = ""
    changed: bool = False
    forgotten: str = ""

    @property
    def end(self) -> int:
        """The closing time in unix seconds."""
        return clock.seconds_of(self.result.at)

    @property
    def start(self) -> float:
        """The opening time in unix seconds."""
        return self.end - self.result.seconds


class OpenRunRow(Record):
    """A run without a line in the run log; `state`: whether it is alive."""

    run: str
    role: str
    feature: str
    at: str
    state: str


class ClaimRow(Record):
    """A claim, its status (None if it cannot be computed), and its signs of reward hacking."""

    claim: Claim
    status: ClaimStatus | None = None
    signs: list[str] = []

    @property
    def proven(self) -> bool:
        """Whether the claim is proven."""
        return self.status is not None and self.status.word == index.PROVEN


class PersonQuestion(Record):
    """A question to a person: an escalation or a checkpoint, with its text; `at` is empty while it is open."""

    kind: str
    text: str
    at: str = ""


class Facts(Record):
    """A whole mission. `runs`: oldest first; `due`: the line of `next`, "" for an archived mission; `made`: unix seconds;
    `diffs`: what each feature changed, or why that cannot be shown."""

    id: str
    branch: str = ""
    created: str = ""
    made: int = 0
    archived: bool = False
    due: str = ""
    features: list[Feature] = []
    diffs: dict[str, str] = {}
    proofs: list[ClaimRow] = []
    runs: list[RunRow] = []
    unfinished: list[OpenRunRow] = []
    caps: list[str] = []
    issues: list[Issue] = []
    asked: list[PersonQuestion] = []
    answers: list[EscalationAnswer] = []
    growth: list[MemoryGrowth] = []
    waiting: int = 0
    summary: str = ""
    memory: str = ""
    faults: list[str] = []

    @property
    def totals(self) -> Totals:
        """The running totals after the newest run."""
        return self.runs[-1].result.total() if self.runs else Totals()


def gather(layout: Layout) -> Facts:
    """All facts of the mission; raises if it does not exist or its format is unknown."""
    mission.check_format(layout)
    return _Gathering(layout).facts()


class FactsReader:
    """Reads a mission part by part. `faults` collects the unreadable parts."""

    def __init__(self, layout: Layout) -> None:
        self.layout, self.state = layout, State(layout)
        self.faults: list[str] = []

    def part(self, read: Callable[[], T]) -> T | None:
        """The result of `read`; if it fails, None, and its fault is recorded."""
        try:
            return read()
        except HarnessError as fault:
            self.fault(str(fault))
        except OSError as fault:
            self.fault(f"{fault.filename or self.layout.state}: {fault.strerror or fault}")
        return None

    def listed(self, read: Callable[[], list[T]]) -> list[T]:
        """Like `part`, for a list: [] if it cannot be read."""
        return self.part(read) or []

    def fault(self, words: str) -> None:
        """Record a fault once."""
        words = words.replace(self.layout.folders.project + "/", "")
        self.faults += [words] if words not in self.faults else []

    def context(self, run_id: str) -> RunContext | None:
        """The context of a run; None if it is not written yet, or cannot be read."""
        there = self.state.exists(names.of_run(run_id, names.CONTEXT))
        return self.part(partial(runs.context, self.layout, run_id)) if there else None


class _Gathering(FactsReader):
    """Reads everything for the page."""

    def facts(self) -> Facts:
        """Gather all facts; parts that others need come first."""
        layout, part, text = self.layout, self.part, self.state.text
        made = part(lambda: mission.read(layout))
        gone = part(lambda: runs.forgotten(layout)) or {}
        past = [self.past(result, usage, gone.get(result.run)) for result, usage in self.results()]
        limits = part(lambda: views.limits_of(config.load(layout))) or views.limits_of(config.Config())
        now = None if layout.archived else part(lambda: overview.gather(layout))
        known = now.proofs if now else part(lambda: index.proofs(layout))
        queue = now.features if now else self.listed(lambda: features.load(layout))
        found = Facts(
            id=made.id if made else os.path.basename(layout.state if layout.archived else layout.folders.project),
            branch=made.branch if made else "",
            created=made.created if made else "",
            made=int(time.time()),
            archived=layout.archived,
            due="" if layout.archived else now.decision.line if now else "cannot be decided",
            features=known.shown(queue) if known else queue,
            diffs={name: self.diff(name) for name in {one.result.feature for one in past if one.result.commit} - {""}},
            proofs=self.proofs(known),
            runs=past,
            unfinished=self.unfinished({one.result.run for one in past}),
            issues=self.listed(lambda: issues.load(layout)),
            asked=[*self.open_questions(now), *self.answered_questions()],
            answers=self.listed(lambda: runs.answers(layout)),
            growth=self.growth({one.result.run: one.end for one in past}),
            waiting=part(lambda: overview.uncurated(layout)) or 0,
            summary=part(lambda: text(names.SUMMARY) or "") or "",
            memory=part(lambda: text(names.MEMORY) or "") or "",
        )
        found.caps = [cap.words for cap in rules.caps(limits, found.totals)]
        found.faults = self.faults
        return found

    # runs

    def results(self) -> Iterator[tuple[RunResult, Usage]]:
        """The runs in the run log, oldest first; reports invalid lines as faults."""
        path, data = self.layout.path(names.RUN_LOG), self.part(lambda: self.state.data(names.RUN_LOG)) or b""
        for number, line in json_lines.whole(data):
            found, fault = runs.parse(line)
            if found is None:
                self.fault(str(BrokenFile(path, fault, line=number, remedy="This run is not on the page.")))
                continue
            wrong = schema.invalid_field(Usage, found.usage or {})
            if wrong:
                self.fault(f"{path}, line {number}: its usage is not counted ({wrong}).")
            yield found, Usage() if wrong else Usage(**(found.usage or {}))
        if data and not data.endswith(b"\n"):
            self.fault(f"{path}: the last line is torn; the next start repairs it.")

    def past(self, result: RunResult, used: Usage, gone: Tombstone | None) -> RunRow:
        """A finished run with the files of its folder; reports unreadable ones as faults."""
        layout, name, part = self.layout, result.run, self.part
        made = RunRow(result=result, usage=used, forgotten=gone.words if gone else "")
        if gone:
            return made
        if not runs.is_id(name) or not os.path.isdir(layout.run(name).folder):
            self.fault(f"{layout.path(names.RUNS)}: the folder of the finished run {name} is gone.")
            return made
        context = part(lambda: runs.context(layout, name))
        if context:
            made.lane, made.attempt = os.path.basename(context.folder) or HERE, context.attempt
        made.receipts = self.listed(lambda: receipts.of_run(layout, name))
        made.notes = self.listed(lambda: self.notes(name))
        reply = part(lambda: self.state.part(names.of_run(name, names.REPLY), 0, REPLY_BYTES)) or b""
        made.reply = reply.decode("utf-8", "replace")
        made.changed = part(lambda: runs.seal(layout.run(name)) != result.seal) is not False
        if made.changed:
            self.fault(
                f"{layout.run(name).folder}: its files have changed since the run closed; its receipts do not count."
            )
        return made

    def notes(self, run_id: str) -> list[tuple[str, str]]:
        """(tag, text) of each note of a run."""
        name = names.of_run(run_id, names.NOTES)
        path = self.state.path(name)
        return json_lines.parse(self.state.data(name), path, _note, "the line is not a note", "It is not on the page.")

    def unfinished(self, known: set[str]) -> list[OpenRunRow]:
        """The runs without a line in the run log, oldest first."""
        alive = {one.run for one in self.listed(lambda: lease.alive(self.layout))}
        found = []
        for name in self.listed(lambda: self.state.list(names.RUNS)):
            if name in known or not runs.is_id(name):
                continue
            state = "under way" if name in alive else "not in the run log"
            context = self.context(name)
            row = (context.role, context.feature, context.at) if context else (UNKNOWN, "", "")
            found.append(OpenRunRow(run=name, role=row[0], feature=row[1], at=row[2], state=state))
        return sorted(found, key=lambda one: (one.at, one.run))

    # proof

    def proofs(self, known: Proofs | None) -> list[ClaimRow]:
        """Each claim of the contract with its status."""
        if known is None:
            return [ClaimRow(claim=claim) for claim in self.listed(lambda: contract.load(self.layout).claims)]
        return [
            ClaimRow(claim=claim, status=status, signs=index.signs_about(claim, known.histories))
            for claim, status in zip(known.contract.claims, known.statuses, strict=True)
        ]

    def diff(self, feature: str) -> str:
        """What a feature changed."""
        try:
            return changes.text(self.layout, feature).decode("utf-8", "replace")
        except HarnessError as fault:  # such as commits that only another clone has
            return str(fault)

    # people

    def open_questions(self, now: Overview | None) -> list[PersonQuestion]:
        """The open escalation and checkpoints."""
        text = self.part(lambda: self.state.text(names.ESCALATION))
        found = [PersonQuestion(kind=views.kind_of(text) or UNKNOWN, text=_body(text))] if text is not None else []
        for name in self.listed(lambda: self.state.list(names.CHECKPOINTS)):
            words = self.part(partial(self.state.text, f"{names.CHECKPOINTS}/{name}")) or ""
            found.append(PersonQuestion(kind=f"checkpoint {name.removesuffix('.md')}", text=words))
        asks = now.view.asks.all if now and now.decision.word == "CHECKPOINT" else []
        due = [one for one in asks if now and one.name == now.decision.what and one.cause != checkpoints.FILE]
        return found + [PersonQuestion(kind=f"checkpoint {one.name}", text=checkpoints.shown(one)) for one in due]

    def answered_questions(self) -> list[PersonQuestion]:
        """The answered escalations and checkpoints, oldest first."""
        found = []
        for name in self.listed(lambda: self.state.list(names.ESCALATIONS)):
            when, _, kind = name.removesuffix(".md").partition("-")
            text = self.part(partial(self.state.text, f"{names.ESCALATIONS}/{name}")) or ""
            at = clock.stamp(int(when)) if when.isdigit() and len(when) < len(str(runs.LAST_DAY)) else ""
            found.append(PersonQuestion(kind=kind, text=_body(text), at=at or name))
        for row in self.listed(lambda: checkpoints.rows(self.layout)):
            if row.state in checkpoints.ANSWERED:
                said = f"{row.by}: {row.text or row.state}"
                found.append(
                    PersonQuestion(kind=f"checkpoint {row.name} {row.state}", text=f"{row.question}\n{said}", at=row.at)
                )
        return sorted(found, key=lambda one: one.at)

    # memory

    def growth(self, ends: dict[str, float]) -> list[MemoryGrowth]:
        """The memory after each curation; an unreadable archive is a fault of the page."""
        found, fault = memory_growth.measure(self.layout, ends)
        if fault:
            self.fault(fault)
        return found


def _note(row: dict[str, str]) -> tuple[str, str]:
    return str(row["tag"]), str(row["text"])


def _body(text: str) -> str:
    """A text without its front matter."""
    head, mark, body = text[4:].partition("\n---\n")
    return body.lstrip("\n") if text.startswith("---\n") and mark and head else text
