"""Runs: their ids, folders, context.json and result.json, and runs.jsonl, the index and the books."""

from __future__ import annotations

import os
import re
from itertools import islice

from harness.base import schema
from harness.base.errors import BrokenFile, UsageFault
from harness.base.record import Record
from harness.base.schema import Odd
from harness.model import receipts
from harness.store import files, json_lines
from harness.store.layout import Layout, RunLayout, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from harness.base.schema import Count, R, Whole

OUTCOMES = (
    "ok",
    "no_op",
    "timeout_after_result",
    "startup_hang",
    "idle",
    "wall",
    "limit",
    "auth",
    "config",
    "agent_error",
    "refused",
    "killed",
)  # fmt: skip - a list of words
GOOD = ("ok", "no_op", "timeout_after_result")
CUT = ("idle", "wall", "limit", "killed", "startup_hang")
UNFINISHED = ("blocked", "cut")  # the outcomes of commits whose work is not done
FREE_OF_BLAME = ("limit", "auth", "config", "killed")
SEALED = ("context.json", "manifest.json", "prompt.md", "reply.md", "receipts.jsonl")
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
NO_RUN = "the line is no finished run"
LAST_DAY = 253402300799
WRITES = "a run writes"

if TYPE_CHECKING:
    Moment = int
    Mark = list[Any]
    RawMark = list[Any]
    TotalsRow = dict[str, Any]
else:
    Moment = schema.NUMBER.part("a time in unix seconds", lambda value: 0 <= value <= LAST_DAY)
    Mark = schema.LIST.part("a digest and a length", lambda value: [*map(type, value)] == [str, int])
    RawMark = schema.LIST.part("a length and a digest", lambda value: [*map(type, value)] == [int, str])


class Context(Record):
    """What was so when the run opened. `untracked`: {path: sha256, or size:mtime for what is large or may not be
    read}; `dirty`: {tracked path that differed from HEAD: object with its content, "" where the file was gone}; `version`: its
    harness."""

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
    identity: dict[str, str]
    process: dict[str, Any]
    dirty: dict[str, str] = {}
    version: str = ""


class Totals(Record):
    """Running totals over all finished runs; None for what no agent has told. `since_green`: runs since a claim was newly
    proven; `rejected`: planner runs in a row without an accepted plan; `uncounted`: runs that cost something which is not,
    or not whole, in `cost_usd`."""

    runs: Whole = 0
    seconds: Count = 0.0
    cost_usd: Count | None = None
    tokens: Whole | None = None
    since_green: Whole = 0
    rejected: Whole = 0
    uncounted: Whole = 0


if not TYPE_CHECKING:
    TotalsRow = schema.row_of(Totals)


class Result(Record):
    """What became of a run: result.json, and (but for `files`) its line in runs.jsonl. `verdict`: green, red or "" where the
    run judged nothing. `sweep`: {tree, contract, spec} that a final sweep judged. `mark`: digest of what decisions
    depend on, afterwards. `seal`: digest over the run's files. `agents`: who was asked, in turn; `agent` answered. `until`:
    unix seconds before which its vendor lets nobody in, 0 where nobody has to wait."""

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
    usage: dict[str, Any] | None
    kept_out: list[str]
    refused: list[str]
    mark: str
    seal: str
    totals: TotalsRow
    until: Moment = 0
    waits: dict[str, Moment] = {}
    agents: list[str] = []
    version: str = ""

    def total(self) -> Totals:
        """The running totals as of this line."""
        return Totals(**self.totals)

    @property
    def said(self) -> str:
        """How it ended, in a word or two."""
        return "not accepted" if self.accepted is False else self.verdict or self.outcome

    @property
    def negative(self) -> bool:
        """Whether a person who started the run by hand should see exit code 10."""
        return self.verdict == "red" or self.outcome not in GOOD or self.accepted is False


class Answer(Record):
    """What a person answered to an escalation, a line of answers.jsonl. `after`: the newest run then, "" where there was
    none; what counts runs in a row starts again behind it."""

    at: str
    by: str
    text: str
    after: str


def new_id(role: str, feature: str, at: int) -> str:
    """`<unix seconds>-<role>[-<feature>]`."""
    return f"{at}-{role}-{feature}" if feature else f"{at}-{role}"


def make(layout: Layout, wish: str) -> tuple[str, RunLayout]:
    """The run's folder, made exclusively: `wish`, or `wish-2`, `wish-3`… where the name is taken."""
    if not ID.fullmatch(wish):
        raise UsageFault(f"'{wish[:80]}' cannot be a run's id.")
    files.make_folder(layout.runs)
    number = 1
    while True:
        name = wish if number == 1 else f"{wish}-{number}"
        if files.claim_folder(layout.run(name).folder):
            return name, layout.run(name)
        number += 1


def context(layout: Layout, run_id: str) -> Context:
    """context.json of a run; UsageFault where there is no such run, BrokenFile where it is malformed."""
    return _record(Context, layout.run(run_id).context, run_id)


def held_context(layout: Layout, run_id: str) -> Context | None:
    """The context as the lock of a run that has not closed holds it a second time; None where it does not. `live` is there as
    the run left it when it had opened."""
    try:
        return _record(Context, layout.run(run_id).lock, run_id)
    except (BrokenFile, UsageFault):
        return None


def result(layout: Layout, run_id: str) -> Result | None:
    """result.json of a run, None while it has none."""
    path = layout.run(run_id).result
    if not os.path.exists(path):
        return None
    return _record(Result, path, run_id)


def _record(shape: type[R], path: str, run_id: str) -> R:
    """The record of this shape in a file; older versions of us knew not all of the fields that have a default."""
    row = files.read_json(path)
    if row is None:
        raise UsageFault(f"There is no run '{run_id}'. See: {command('runs list')}")
    try:
        return schema.record(shape, row, WRITES)
    except (TypeError, Odd) as fault:
        said = str(fault) if isinstance(fault, Odd) else "not what a run writes there"
        raise BrokenFile(path, said, line=1, remedy=f"See: {command('doctor')}") from None


def open_runs(layout: Layout) -> list[str]:
    """Ids of runs that have not closed: alive or dead, `is_dead` tells."""
    return [name[4:] for name in files.names(layout.locks) if name.startswith("run-")]


def is_dead(layout: Layout, run_id: str) -> bool:
    """Whether a run that has not closed is run by nobody any more."""
    return files.is_free(layout.run(run_id).lock)


def books(layout: Layout, most: int | None = None) -> Iterator[Result]:
    """Finished runs (of the first `most` bytes), last first, reading only as far as the caller asks."""
    return (result for _, result in placed(layout, most))


def placed(layout: Layout, most: int | None = None) -> Iterator[tuple[int, Result]]:
    """As `books`, each with the place where its line begins."""
    for start, line in json_lines.backwards(layout.books, most=most):
        found, fault = parse(line)
        if found is None:
            raise misread(layout, start, fault)
        yield start, found


def answers(layout: Layout) -> list[Answer]:
    """What people have answered, oldest first. A torn last line is skipped; BrokenFile names any other."""
    data = files.read(layout.answers)
    return json_lines.parse(
        data, layout.answers, lambda row: schema.record(Answer, row, "an answer has"), "no answer", "Remove it."
    )


def answered(layout: Layout) -> str:
    """The newest run when a person last answered; "" where nobody has."""
    return next((one.after for one in reversed(answers(layout))), "")


def misread(layout: Layout, start: int, fault: str) -> BrokenFile:
    """The fault of the line in the books that begins there, with its number."""
    number = files.read_from(layout.books, 0, start).count(b"\n") + 1
    return BrokenFile(layout.books, fault, line=number, remedy=f"See: {command('doctor')}")


def parse(line: bytes) -> tuple[Result | None, str]:
    """The finished run of a line, or None and what is wrong with the line."""
    try:
        return made(json_lines.value(line)), ""
    except Odd as fault:
        return None, str(fault)
    except (ValueError, TypeError):
        return None, f"{NO_RUN}: {line[:60]!r}"


def made(row: Any) -> Result:
    """The finished run of a line's value; raises TypeError or Odd, as `schema.record` does."""
    return schema.record(Result, row, WRITES)


def last(layout: Layout, *, role: str = "", feature: str | None = None) -> Result | None:
    """The newest finished run of a role and, where given, a feature."""
    for found in books(layout):
        if found.role == role and (feature is None or found.feature == feature):
            return found
    return None


def last_receipts(layout: Layout, feature: str) -> list[receipts.Receipt]:
    """The receipts of the newest run that judged the feature; [] where there is none."""
    newest = next((found for found in books(layout) if found.feature == feature and found.verdict), None)
    return receipts.load(layout.run(newest.run).receipts) if newest else []


def totals(layout: Layout) -> Totals:
    """The running totals as of the newest finished run, and of what a person has answered since."""
    return totals_of(next(books(layout), None), answered(layout))


def totals_of(newest: Result | None, after: str) -> Totals:
    """The running totals as of this run, where a person last answered `after` that one."""
    found = newest.total() if newest else Totals()
    return found.replace(since_green=0, rejected=0) if newest and newest.run == after else found


def seal(run: RunLayout) -> str:
    """A digest over the files of a run that must never change once it is finished."""
    parts = []
    for name in SEALED:
        data = _seen(os.path.join(run.folder, name))
        parts.append(f"{name} {files.digest(data) if data is not None else '-'}\n")
    return files.digest("".join(parts).encode())


def _seen(path: str) -> bytes | None:
    """The file; what is none in its place is told by what no file of a run holds."""
    try:
        return files.read(path)
    except BrokenFile:
        return b"\0 no file"


def broken_seals(layout: Layout, most: int) -> list[str]:
    """Ids of finished runs, looking at the newest `most`, whose files are not what they were when the run closed."""
    found = []
    lines = (line for _, line in json_lines.backwards(layout.books))
    for one, line in islice(zip(books(layout), lines, strict=True), most):
        run = layout.run(one.run)
        if one.seal and (one.seal != seal(run) or _seen(run.result) != line + b"\n"):  # format 1: no run
            found.append(one.run)
    return found
