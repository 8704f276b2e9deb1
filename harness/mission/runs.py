"""Runs: their ids, folders, context.json and result.json, and the run log, runs.jsonl, which is also their index."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from harness.base import clock, encoding, schema
from harness.base.errors import BrokenFile, UsageFault
from harness.base.record import Json, Record
from harness.base.schema import Count, InvalidField, R, Whole
from harness.mission import receipts
from harness.state import files, folder_lock, json_lines, names
from harness.state.layout import Layout, RunLayout, command
from harness.state.state import State

GOOD = ("ok", "no_op", "timeout_after_result")
CUT = ("idle", "wall", "limit", "killed", "startup_hang")
OUTCOMES = (*GOOD, *CUT, "auth", "config", "agent_error", "refused", "conflict")
UNFINISHED = ("blocked", "cut")  # outcomes of commits with unfinished work
FREE_OF_BLAME = ("limit", "auth", "config", "killed", "conflict")
SEALED_TOO = (names.WORKSPACE,)  # if it exists: runs without a workspace keep the digest of older versions
SEALED = ("context.json", "manifest.json", "prompt.md", "reply.md", "receipts.jsonl")
MAX_ID_CHARS = 200
NO_RUN = "the line is not a finished run"
LAST_DAY = 253402300799
MAX_STATED_SECONDS = 8 * 24 * 3600  # limit of the time that a vendor states for a retry
MAX_JITTER_SECONDS = 60  # limit of the margin that is added to it
ENTERED = "enter"  # the trigger of a run in which a person works
CLOCK_STEP = 60  # seconds by which clock synchronisation may set a clock back
WRITES = "a run writes"
LEASE = "run-"  # prefix of leases among the locks

if TYPE_CHECKING:  # a type for checkers; at run time the kind of a field
    Moment = int
    Mark = list[Json]
    RawMark = list[Json]
    TotalsRow = dict[str, Json]
else:
    Moment = schema.NUMBER.part("a time in unix seconds", lambda value: 0 <= value <= LAST_DAY)
    Mark = schema.LIST.part("a digest and a length", lambda value: [*map(type, value)] == [str, int])
    RawMark = schema.LIST.part("a length and a digest", lambda value: [*map(type, value)] == [int, str])


class RunContext(Record):
    """The state when the run opened. `untracked`: {path: sha256, or size:mtime of a large or unreadable file}; `dirty`: {tracked
    path that differed from HEAD: object with its content, "" if the file was gone}; `version`: of the harness; `folder`: the
    run's worktree, "" for the project folder; `temporary`: the place of its temporary folders; `confined`: its tier of
    confinement; `started`: by the `loop`, by `hand`, or by hand `again`; `ignored` by git then; `tries` of its feature."""

    run: str
    role: str
    feature: str
    trigger: str
    reason: str
    at: str
    agent: list[str]
    attempt: int
    before: str
    head: str
    branch: str
    tree: str
    untracked: dict[str, str]
    live: dict[str, Mark]
    raw: RawMark
    identity: dict[str, str] = {}
    process: dict[str, Json]
    dirty: dict[str, str] = {}
    version: str = ""
    folder: str = ""
    confined: str = ""
    temporary: str = ""
    started: str = ""
    ignored: list[str] | None = None
    tries: int = 0


class Totals(Record):
    """Running totals over all finished runs; None if no agent reported a value. `since_green`: runs since a claim was newly
    proven; `rejected`: planner runs in a row without an accepted plan; `uncounted`: runs whose cost is missing from
    `cost_usd`, at least in part."""

    runs: Whole = 0
    seconds: Count = 0.0
    cost_usd: Count | None = None
    tokens: Whole | None = None
    since_green: Whole = 0
    rejected: Whole = 0
    uncounted: Whole = 0


if not TYPE_CHECKING:  # the kinds of those fields
    TotalsRow = schema.row_of(Totals)


class RunResult(Record):
    """The result of a run: result.json, and its line in runs.jsonl. `verdict`: green, red, or "" if the run judged nothing.
    `sweep`: {tree, contract, spec} of a final sweep. `mark`: the fingerprint of what decisions depend on, after the run.
    `seal`: the run digest. `agents`: every agent in turn; `agent` answered. `until`: unix seconds until which its vendor
    accepts no request, 0 if there is no wait. `unlanded`: why a branch or folder is behind its work; `confined`: the tier of
    confinement of the run's programs, "" for none; `secrets`: certain or possible secrets in its work; what git `ignored`."""

    run: str
    role: str
    feature: str
    trigger: str
    outcome: str
    reason: str
    verdict: str
    agent: str
    at: str
    seconds: Count
    commit: str
    head: str
    newly_green: Whole
    accepted: bool | None
    sweep: dict[str, str] | None
    usage: dict[str, Json] | None
    kept_out: list[str]
    refused: list[str]
    mark: str
    seal: str
    totals: TotalsRow
    until: Moment = 0
    waits: dict[str, Moment] = {}
    agents: list[str] = []
    version: str = ""
    unlanded: str = ""
    confined: str = ""
    secrets: list[str] = []
    ignored: list[str] = []

    def total(self) -> Totals:
        """The running totals as of this line."""
        return Totals(**self.totals)

    @property
    def ended(self) -> int:
        """The end of the run, in unix seconds."""
        return clock.seconds_of(self.at)

    @property
    def said(self) -> str:
        """The end of the run in a word or two."""
        return "not accepted" if self.accepted is False else self.verdict or self.outcome

    @property
    def negative(self) -> bool:
        """Whether a run started by hand ends with exit code 10."""
        return self.verdict == "red" or self.outcome not in GOOD or self.accepted is False


class EscalationAnswer(Record):
    """A person's answer to an escalation, a line of answers.jsonl. `after`: the newest run at that time, or "";
    counters of consecutive runs restart after it."""

    at: str
    by: str
    text: str
    after: str


class Tombstone(Record):
    """A run that a person removed, a line of forgotten.jsonl; `seal`: the run digest in its line of the run log."""

    run: str
    at: str
    by: str
    seal: str

    @property
    def words(self) -> str:
        """When, and by whom."""
        return f"forgotten on {self.at[:10]} by {self.by}"


def waits(ended: int, until: int, now: int) -> bool:
    """Whether a run that ended at `ended` makes the mission wait until `until`. A time beyond any vendor's limit means
    a wrong clock, then or now: the vendor is then asked again."""
    return ended - CLOCK_STEP <= now < until <= ended + MAX_STATED_SECONDS + MAX_JITTER_SECONDS + CLOCK_STEP


def new_id(role: str, feature: str, at: int) -> str:
    """`<unix seconds>-<role>[-<feature>]`."""
    return f"{at}-{role}-{feature}" if feature else f"{at}-{role}"


def is_id(text: str) -> bool:
    """Whether a text is a valid run id, which is also a folder name."""
    return schema.is_name(text, MAX_ID_CHARS)


def require_id(wish: str) -> None:
    """Raise UsageFault unless it is a valid run id."""
    if not is_id(wish):
        raise UsageFault(f"'{wish[:80]}' is not a valid run id.")


def make(layout: Layout, wish: str) -> tuple[str, RunLayout]:
    """Create the folder of a new run exclusively: `wish`, or `wish-2`, `wish-3`… if the name is taken."""
    state, name, number = State(layout), wish, 1
    while not state.claim_folder(f"{names.RUNS}/{name}"):
        number += 1
        name = f"{wish}-{number}"
    return name, layout.run(name)


def context(layout: Layout, run_id: str) -> RunContext:
    """context.json of a run; raises UsageFault if there is no such run, BrokenFile if the file is malformed."""
    return _record(RunContext, layout, run_id, names.CONTEXT)


def result(layout: Layout, run_id: str) -> RunResult | None:
    """result.json of a run; None while it is absent."""
    there = State(layout).exists(names.of_run(run_id, names.RESULT))
    return _record(RunResult, layout, run_id, names.RESULT) if there else None


def _record(shape: type[R], layout: Layout, run_id: str, name: str) -> R:
    """The record of this shape in a file of a run; files of older versions may lack fields with a default."""
    state, name = State(layout), names.of_run(run_id, name)
    row, path = state.json(name), state.path(name)
    if row is None:
        raise UsageFault(f"There is no run '{run_id}'. See: {command('runs list')}")
    try:
        return schema.record(shape, row, WRITES)
    except (TypeError, InvalidField) as fault:
        message = str(fault) if isinstance(fault, InvalidField) else "not what a run writes there"
        raise BrokenFile(path, message, line=1, remedy=f"See: {command('doctor')}") from None


def open_runs(layout: Layout) -> list[str]:
    """Ids of runs that have not closed, alive or dead (see `is_dead`)."""
    return [name.removeprefix(LEASE) for name in State(layout).list(names.LOCKS) if name.startswith(LEASE)]


def is_dead(layout: Layout, run_id: str) -> bool:
    """Whether the lease of this run is free: none of its processes is left."""
    paths = layout.run(run_id)
    return files.is_free(paths.lock) and folder_lock.is_free(paths.folder)


def finished(layout: Layout, most: int | None = None) -> Iterator[RunResult]:
    """Finished runs (of the first `most` bytes), last first; reads lazily."""
    return (result for _, result in placed(layout, most))


def placed(layout: Layout, most: int | None = None) -> Iterator[tuple[int, RunResult]]:
    """As `finished`, each with the offset of its line."""
    for start, line in json_lines.backwards(layout.path(names.RUN_LOG), most=most):
        found, fault = parse(line)
        if found is None:
            raise misread(layout, start, fault)
        yield start, found


def answers(layout: Layout) -> list[EscalationAnswer]:
    """The answers of people, oldest first. A torn last line is skipped; BrokenFile names any other bad line."""
    path, make = layout.path(names.ANSWERS), partial(schema.record, EscalationAnswer, wrote="a person's answer has")
    return json_lines.parse(
        State(layout).data(names.ANSWERS), path, make, "the line is not a person's answer", "Remove that line."
    )


def forgotten(layout: Layout) -> dict[str, Tombstone]:
    """{run: its tombstone} of the runs whose files a person removed. BrokenFile names a bad line."""
    path, make = layout.path(names.FORGOTTEN), partial(schema.record, Tombstone, wrote="a tombstone has")
    data = State(layout).data(names.FORGOTTEN)
    found = json_lines.parse(data, path, make, "the line is not a tombstone", f"See: {command('doctor')}")
    return {one.run: one for one in found}


def answered(layout: Layout) -> str:
    """The newest run at the time of the last answer of a person; "" without one."""
    return next((one.after for one in reversed(answers(layout))), "")


def misread(layout: Layout, start: int, fault: str) -> BrokenFile:
    """The fault of the line of the run log at this offset, with its number."""
    number = State(layout).part(names.RUN_LOG, 0, start).count(b"\n") + 1
    return BrokenFile(layout.path(names.RUN_LOG), fault, line=number, remedy=f"See: {command('doctor')}")


def parse(line: bytes) -> tuple[RunResult | None, str]:
    """(finished run of a line or None, fault of the line)."""
    try:
        return schema.record(RunResult, json_lines.value(line), WRITES), ""
    except InvalidField as fault:
        return None, str(fault)
    except (ValueError, TypeError):
        return None, f"{NO_RUN}: {line[:60]!r}"


def last(layout: Layout, *, role: str = "", feature: str | None = None) -> RunResult | None:
    """The newest finished run of a role and, if given, of a feature."""
    runs = (one for one in finished(layout) if one.role == role and feature in (None, one.feature))
    return next(runs, None)


def last_receipts(layout: Layout, feature: str, claims: Collection[str] = ()) -> list[receipts.Receipt]:
    """The receipts of the newest run that judged the feature, or of these of its claims in a sweep since; [] without one."""
    about = (feature, "") if claims else (feature,)
    newest = next((found for found in finished(layout) if found.feature in about and found.verdict), None)
    found = receipts.of_run(layout, newest.run) if newest else []
    return [one for one in found if one.claim in claims or (newest and newest.feature)]


def costs(layout: Layout) -> dict[str, float]:
    """{feature: known USD of all its finished runs}; "" for those of no feature."""
    found: dict[str, float] = {}
    for one in finished(layout):
        found[one.feature] = found.get(one.feature, 0.0) + ((one.usage or {}).get("cost_usd") or 0.0)
    return found


def totals(layout: Layout) -> Totals:
    """The running totals after the newest finished run and the answers of people since."""
    return totals_of(next(finished(layout), None), answered(layout))


def totals_of(newest: RunResult | None, after: str) -> Totals:
    """The running totals after this run, given the run `after` which a person last answered."""
    found = newest.total() if newest else Totals()
    return found.replace(since_green=0, rejected=0) if newest and newest.run == after else found


def seal(run: RunLayout) -> str:
    """The run digest, over the files of a run that must never change once it is finished."""
    found = {name: _seen(f"{run.folder}/{name}") for name in SEALED}
    found |= {name: data for name in _sealed_too(run) if (data := _seen(f"{run.folder}/{name}")) is not None}
    parts = (f"{name} {'-' if data is None else encoding.digest(data)}\n" for name, data in found.items())
    return encoding.digest("".join(parts).encode())


def _sealed_too(run: RunLayout) -> list[str]:
    """Optional sealed files: a workspace, and the records of subagents."""
    return [*SEALED_TOO, *(f"{names.TASKS}/{task}/{names.TASK}" for task in files.names(run.tasks))]


def _seen(path: str) -> bytes | None:
    """The file of a run; bytes that no run writes if it is not a regular file."""
    try:
        return files.read(path)
    except BrokenFile:
        return b"\0 no file"


def broken_seals(layout: Layout, most: int) -> list[str]:
    """Ids of the newest `most` finished runs whose files have changed since they closed, without runs that a person
    removed."""
    found, gone = [], forgotten(layout)
    lines = (line for _, line in json_lines.backwards(layout.path(names.RUN_LOG)))
    for one, line in islice(zip(finished(layout), lines, strict=True), most):
        run = layout.run(one.run)
        if one.run in gone and gone[one.run].seal == one.seal:
            continue
        if one.seal != seal(run) or _seen(run.result) != line + b"\n":
            found.append(one.run)
    return found
